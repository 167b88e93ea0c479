"""Time of impact of features in a step of the impulse law: gap and frame of each candidate at its own time.

Forces act at x, q, in the middle of the step; its start is t_0 = -h/2. With the velocities v, w after the forces and
before impulses, g(t) is the gap a time t later and u(t) = g'(t). A contact is active if g(t_0) < h max(-u(t_0),
v_rest), with a threshold v_rest. It is

    at rest      if u(t_0) >= -v_rest, and evaluated when forces act, tau = 0
    an impact    if u(t_0) < -v_rest, and evaluated at the time of impact tau, g(tau) = 0

Gap, frame and the orientations `attitude` of both bodies are those at tau. Evaluated at the start of the step, normals
and arms would not change with the time of impact. Derivatives through it would then be wrong for any h, however they
are computed. tau < t_0 if features overlap slightly: they met before the step.

Newton's method finds tau, starting from t_0. For bodies that do not rotate it converges from one side, as g is convex.
Features miss each other if it leads beyond the step, or to a time at which they separate, u >= 0, or are not opposite
each other (flat.py, segments.py). Then there is no contact. Features that overlap and have no such time after t_0 - 2 h
are at rest. For a pair of bodies, only the first impact is active, with those less than h / 10 later. The others depend
on its result, and the next step handles them.

An impact also changes contacts at rest of the bodies that it reaches (islands.py). They have frame and orientations at
its time tau, if features are opposite each other then. Impulses pass through them at that time. The rotation of their
directions until then represents the force that keeps a body on a curved path. Their gap stays that at the forces.

With the new poses x + tau v and e(tau w) q, the row J = (n, r_a x n, -n, -r_b x n), du = J dV and dg = J (dx, dtheta):
the adjoint p by the pose at tau (geometry/pair.py, and adj_attitude) is first taken at fixed tau,

    adj_tau += p V,      p -= adj_tau / u J                     the second if tau solves g(tau) = 0
    adj_x, adj_theta from p      adj_v = tau adj_x      adj_w = tau adj_(tau w), see numerics/rotation.py

For contacts at rest, adj_tau goes to the impact that sets their time, and the adjoint of the gap to the pose at the
forces.

Tangent: with dp = (dx, dtheta) at fixed tau, dtau = -(n.dx_a - n.dx_b + (r_a x n).dtheta_a - (r_b x n).dtheta_b) / u if
tau solves g(tau) = 0, that of the impact for contacts at rest that it times, else 0. Then dp + V dtau is the tangent of
the pose at tau, from which follow those of gap and frame.

At the kinks, g = h max(-u, v_rest) is no contact; u = -v_rest and tau = t_0 - 2 h are at rest. At a graze, u(tau) = 0,
the derivative is unbounded. Source: time of impact in a step, Hu et al. 2020, DiffTaichi, section 4; its effect on
derivatives, Bernardo et al. 2008, Piecewise-smooth Dynamical Systems, section 2.5.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from . import islands, rows
from .arrays import SETTING
from .geometry import feature, pair
from .islands import IMPACT, NONE, REST

MAX_ITERATIONS = 40
"""Maximum number of Newton iterations. Each squares the error, or halves it if features hardly touch."""
CLOSE = (1e-14, 1e-6)
"""Convergence tolerance of tau as a fraction of h, in double and in single precision."""
SIMULTANEOUS = 0.1
"""Fraction of h within which impacts of a pair of bodies act together."""
LOOK_BACK = 2.0
"""Multiple of h before t_0 in which overlapping features may have met: one, or more if they have slowed down."""
FIRST, SEARCH, LAST, DONE = range(4)


@functools.cache
@no_type_check
def loops(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the loops over all candidates of these kinds; for the arguments see rows.py and `Candidates`."""
    at, part, rotate = rows.functions(real, dim), feature.functions(real, dim), rotation.functions(real, dim)
    f, island = pair.functions(real, dim, kinds), islands.loops(real)
    numbers, Feature, R, vec = feature.numbers(dim), part.Feature, at.rotations, at.vec
    close = CLOSE[real == ti.f32]

    @ti.func
    def feature_at(c, second, constants: ti.template(), attitude: ti.template()) -> Feature:
        """Return the first or the second feature of candidate c."""
        rotated = rotate.matrix(at.rotation_at(attitude, (2 * c + second) * R))
        return part.read(constants, (2 * c + second) * numbers, rotated)

    @ti.func
    def centre_offset(position: ti.template(), twist: ti.template(), i, j, tau: real) -> vec:
        """Return the vector from the centre of body j to that of i."""
        still = at.vec_of(position, i) - at.vec_of(position, j)
        return still + tau * (at.linear(twist, i) - at.linear(twist, j))

    @ti.func
    def speed(frame: ti.template(), start, twist: ti.template(), i, j) -> real:
        """Return u for features with this frame."""
        r_a, r_b = at.vec_at(frame, start + dim), at.vec_at(frame, start + 2 * dim)
        u_a = at.linear(twist, i) + rotate.cross(at.angular(twist, i), r_a)
        u_b = at.linear(twist, j) + rotate.cross(at.angular(twist, j), r_b)
        return at.vec_at(frame, start).dot(u_a - u_b)

    @ti.func
    def time_of_impact(model: ti.template(), x: ti.template()):
        h = model.dt
        begin = -h / 2
        for search_pass in range(2):  # first the state of each candidate, then those at rest at the time of an impact
            for c in range(model.candidates.count):
                i, j, start, saved_gap = model.candidates.body_a[c], model.candidates.body_b[c], c * 3 * dim, x.gap[c]
                tau, found, state, stage, overlap, earliest = begin, begin, NONE, FIRST, False, begin - LOOK_BACK * h
                if search_pass == 1:
                    impact, stage = island.block_impact(model.joint_rows + c, model.row_bodies, x.first), DONE
                    if x.active[c] == REST and impact >= 0:
                        tau, stage = x.time[impact], LAST
                is_retimed = stage == LAST
                if is_retimed:
                    at.put_vec(x.gap_normal, c * dim, at.vec_at(x.frame, start))
                iterations = 0
                while stage != DONE:
                    for second in range(2):
                        body = i + second * (j - i)
                        rotated = rotate.advance(at.rotation_of(x.orientation, body), tau * at.angular(x.twist, body))
                        at.put_rotation(x.attitude, (2 * c + second) * R, rotated)
                    a, b = (
                        feature_at(c, 0, model.candidates.constants, x.attitude),
                        feature_at(c, 1, model.candidates.constants, x.attitude),
                    )
                    g, n_c, r_a, r_b, is_valid = f.contact(
                        model.candidates.kind[c], centre_offset(x.position, x.twist, i, j, tau), a, b
                    )
                    x.gap[c] = g
                    at.put_vec(x.frame, start, n_c)
                    at.put_vec(x.frame, start + dim, r_a)
                    at.put_vec(x.frame, start + 2 * dim, r_b)
                    u = speed(x.frame, start, x.twist, i, j)
                    if stage == SEARCH:
                        found = ti.max(tau - g / ti.min(u, -1e-30), earliest)
                        is_last = ti.abs(found - tau) <= close * h or iterations == MAX_ITERATIONS
                        if u >= 0 or found > -begin or found == earliest or (is_last and not is_valid):
                            stage, tau = LAST, begin
                            if overlap:
                                tau, state = 0.0, REST
                        elif is_last:
                            stage, state = DONE, IMPACT
                        else:
                            tau = found
                    elif stage == FIRST and g < h * ti.max(-u, model.rest_speed) and u < -model.rest_speed:
                        stage, tau, overlap = SEARCH, ti.max(begin - g / u, earliest), g < 0 and is_valid
                    elif stage == FIRST and g < h * model.rest_speed and is_valid:
                        stage, tau, state = ti.select(begin < 0, LAST, DONE), 0.0, REST
                    elif is_retimed and tau != 0 and not is_valid:
                        tau = 0.0
                    else:
                        stage = DONE
                    iterations += 1
                if search_pass == 0:
                    x.time[c] = tau
                    x.active[c] = state
                elif is_retimed:
                    x.time[c] = tau
                    x.gap[c] = saved_gap
            if search_pass == 0:
                for c in range(model.candidates.count):
                    if x.active[c] == IMPACT:
                        for e in range(model.candidates.count):
                            one_pair = (
                                model.candidates.body_a[e] == model.candidates.body_a[c]
                                and model.candidates.body_b[e] == model.candidates.body_b[c]
                            )
                            one_pair = one_pair or (
                                model.candidates.body_a[e] == model.candidates.body_b[c]
                                and model.candidates.body_b[e] == model.candidates.body_a[c]
                            )
                            is_impact = one_pair and x.active[e] == IMPACT
                            if is_impact and x.time[e] < x.time[c] - SIMULTANEOUS * h:
                                x.active[c] = NONE
                island.find_first_impacts(model, x)

    @ti.func
    def attitude_adjoint(x: ti.template(), adj_x: ti.template(), k):
        """Return the adjoint of a small rotation from that of an orientation."""
        return rotate.adj_theta(at.rotation_at(x.attitude, k * R), at.rotation_at(adj_x.attitude, k * R))

    @ti.func
    def adj_time_of_impact(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        """Add to the adjoints. Skip candidates with zero adjoints."""
        for impacts_pass in range(2):  # contacts at rest come first, as they add to adj_time of impacts
            for c in range(model.candidates.count):
                start, turns = c * 3 * dim, 2 * c * R
                is_idle = adj_x.gap[c] == 0 and adj_x.time[c] == 0  # False for NaN
                for e in range(3 * dim):
                    is_idle = is_idle and adj_x.frame[start + e] == 0
                for e in range(2 * R):
                    is_idle = is_idle and adj_x.attitude[turns + e] == 0
                poses = 1
                impact = island.block_impact(model.joint_rows + c, model.row_bodies, x.first)
                if x.active[c] == REST and impact >= 0:  # noqa: SIM102 - read only if it exists
                    if x.time[c] == x.time[impact]:
                        poses = 2  # that of the frame, then that of the gap
                if is_idle or (x.active[c] == IMPACT) != (impacts_pass == 1):
                    poses = 0
                for pose in range(poses):
                    i, j, tau = model.candidates.body_a[c], model.candidates.body_b[c], x.time[c]
                    if pose == 1:
                        tau = 0.0
                    p_d, p_a, p_b = vec(0.0), at.spin(0.0), at.spin(0.0)
                    g_gap, g_n, g_ra, g_rb = real(0.0), vec(0.0), vec(0.0), vec(0.0)
                    if pose == 0:
                        p_a, p_b = (
                            attitude_adjoint(x, adj_x, 2 * c),
                            attitude_adjoint(x, adj_x, 2 * c + 1),
                        )
                        g_n, g_ra = at.vec_at(adj_x.frame, start), at.vec_at(adj_x.frame, start + dim)
                        g_rb = at.vec_at(adj_x.frame, start + 2 * dim)
                    if pose == poses - 1:
                        g_gap = adj_x.gap[c]
                    rotated_a = rotate.advance(at.rotation_of(x.orientation, i), tau * at.angular(x.twist, i))
                    rotated_b = rotate.advance(at.rotation_of(x.orientation, j), tau * at.angular(x.twist, j))
                    a = part.read(model.candidates.constants, 2 * c * numbers, rotate.matrix(rotated_a))
                    b = part.read(model.candidates.constants, (2 * c + 1) * numbers, rotate.matrix(rotated_b))
                    d = centre_offset(x.position, x.twist, i, j, tau)
                    g, n, r_a = (
                        x.gap[c],
                        at.vec_at(x.frame, start),
                        at.vec_at(x.frame, start + dim),
                    )
                    if pose == 1:
                        n = at.vec_at(x.gap_normal, c * dim)
                    elif poses > 1:
                        g = n.dot(d + r_a - at.vec_at(x.frame, start + 2 * dim))
                    if g < pair.FAR:
                        g_d, g_a, g_b = f.adj(model.candidates.kind[c], d, a, b, g, n, g_gap, g_n, g_ra, g_rb)
                        p_d += g_d
                        p_a += g_a
                        p_b += g_b
                    if poses == 2 or x.active[c] == IMPACT:
                        g_tau = p_d.dot(at.linear(x.twist, i) - at.linear(x.twist, j))
                        g_tau += p_a.dot(at.angular(x.twist, i)) + p_b.dot(at.angular(x.twist, j))
                        if pose == 0:
                            g_tau += adj_x.time[c]
                        if x.active[c] == IMPACT:
                            p_gap = -g_tau / speed(x.frame, start, x.twist, i, j)
                            p_d += p_gap * n
                            p_a += p_gap * rotate.moment(r_a, n)
                            p_b -= p_gap * rotate.moment(at.vec_at(x.frame, start + 2 * dim), n)
                        elif pose == 0:
                            adj_x.time[impact] = adj_x.time[impact] + g_tau
                    at.add_vec_of(adj_x.position, i, p_d)
                    at.add_vec_of(adj_x.position, j, -p_d)
                    for second in range(2):
                        body, rotated = i + second * (j - i), p_a + second * (p_b - p_a)
                        still, now = at.rotation_of(x.orientation, body), rotated_a + second * (rotated_b - rotated_a)
                        g_q, g_phi = rotate.adj_advance(
                            still, tau * at.angular(x.twist, body), rotate.adj_turn(now, rotated)
                        )
                        at.add_rotation_of(adj_x.orientation, body, g_q)
                        at.add_twist(adj_x.twist, body, (1 - 2 * second) * tau * p_d, tau * g_phi)

    @ti.func
    def jvp_contact_at(c, tau, dtau, gap, n, model: ti.template(), x: ti.template(), dx: ti.template()):
        """Return the tangents of gap, n, r_a and r_b at a time tau, then those of the poses there."""
        i, j, kind = model.candidates.body_a[c], model.candidates.body_b[c], model.candidates.kind[c]
        w_a, w_b = at.angular(x.twist, i), at.angular(x.twist, j)
        dw_a, dw_b = at.angular(dx.twist, i), at.angular(dx.twist, j)
        q_a, q_b = at.rotation_of(x.orientation, i), at.rotation_of(x.orientation, j)
        rotated_a, rotated_b = rotate.advance(q_a, tau * w_a), rotate.advance(q_b, tau * w_b)
        drotated_a = rotate.jvp_advance(q_a, tau * w_a, at.drotation_of(dx.orientation, i), tau * dw_a + dtau * w_a)
        drotated_b = rotate.jvp_advance(q_b, tau * w_b, at.drotation_of(dx.orientation, j), tau * dw_b + dtau * w_b)
        a = part.read(model.candidates.constants, 2 * c * numbers, rotate.matrix(rotated_a))
        b = part.read(model.candidates.constants, (2 * c + 1) * numbers, rotate.matrix(rotated_b))
        dd = centre_offset(dx.position, dx.twist, i, j, tau)
        dd += dtau * (at.linear(x.twist, i) - at.linear(x.twist, j))
        dgap, dn, dr_a, dr_b = real(0.0), vec(0.0), vec(0.0), vec(0.0)
        da, db = rotate.jvp_turn(rotated_a, drotated_a), rotate.jvp_turn(rotated_b, drotated_b)
        if gap < pair.FAR:
            dgap, dn, dr_a, dr_b = f.jvp(kind, centre_offset(x.position, x.twist, i, j, tau), a, b, gap, n, dd, da, db)
        return dgap, dn, dr_a, dr_b, drotated_a, drotated_b, dd, da, db

    @ti.func
    def jvp_time_of_impact(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Compute the tangents of the results `contacts`."""
        for rest_pass in range(2):  # impacts come first, as they time contacts at rest
            for c in range(model.candidates.count):
                i, j, start, tau = model.candidates.body_a[c], model.candidates.body_b[c], c * 3 * dim, x.time[c]
                is_impact, is_timed, dtau = x.active[c] == IMPACT, False, real(0.0)
                impact = island.block_impact(model.joint_rows + c, model.row_bodies, x.first)
                g, n = x.gap[c], at.vec_at(x.frame, start)
                r_a, r_b = at.vec_at(x.frame, start + dim), at.vec_at(x.frame, start + 2 * dim)
                if x.active[c] == REST and impact >= 0:  # noqa: SIM102 - read only if it exists
                    if tau == x.time[impact]:
                        is_timed = True
                        dtau = dx.time[impact]
                        d = centre_offset(x.position, x.twist, i, j, tau)
                        g = n.dot(d + r_a - r_b)
                if is_impact == (rest_pass == 0):
                    for settled in range(ti.select(is_impact, 2, 1)):  # at fixed tau, which gives dtau; then with it
                        dgap, dn, dr_a, dr_b, drotated_a, drotated_b, dd, da, db = jvp_contact_at(
                            c, tau, dtau, g, n, model, x, dx
                        )  # fmt: skip
                        if is_impact and settled == 0:
                            approach = n.dot(dd) + rotate.moment(r_a, n).dot(da) - rotate.moment(r_b, n).dot(db)
                            dtau = -approach / speed(x.frame, start, x.twist, i, j)
                        dx.gap[c] = dgap
                        at.put_vec(dx.frame, start, dn)
                        at.put_vec(dx.frame, start + dim, dr_a)
                        at.put_vec(dx.frame, start + 2 * dim, dr_b)
                        at.put_rotation(dx.attitude, 2 * c * R, drotated_a)
                        at.put_rotation(dx.attitude, (2 * c + 1) * R, drotated_b)
                        dx.time[c] = dtau
                    if is_timed:
                        normal = at.vec_at(x.gap_normal, c * dim)
                        dgap, _n, _r_a, _r_b, _q_a, _q_b, _d, _a, _b = jvp_contact_at(
                            c, 0.0, 0.0, x.gap[c], normal, model, x, dx
                        )  # fmt: skip
                        dx.gap[c] = dgap

    return SimpleNamespace(forward=time_of_impact, adjoint=adj_time_of_impact, tangent=jvp_time_of_impact)


TimeOfImpact = routine(
    "TimeOfImpact",
    loops,
    Fields(
        given=("position", "orientation", "twist"),
        results=("gap", "frame", "attitude", "time", "active", "first"),
        tape=("gap_normal",),
        choices=("active", "first"),
    ),
    SETTING,
    of_model=("bodies", "free", "row_bodies", "joint_rows", "contacts", "candidates", "dt", "rest_speed"),
    choose=lambda model: (model.dim, model.candidates.kinds),
)
"""Gap [M], frame [M, 3 dim], orientations of both bodies [M, 2 R], time [M] and state [M] of contacts.

The last result is the first impact that reaches each body, [n]: the number of its candidate, or -1. The states and the
first impacts have no gradient.
"""
