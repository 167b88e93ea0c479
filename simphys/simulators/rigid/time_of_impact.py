"""Time of impact of features in a step of the impulse law: gap and frame of each candidate at its own time.

Forces act at x, q: at the start of the step, t_0 = 0, or in its middle, t_0 = -h/2 (`RigidBodies.integrator`). With the
velocities v, w after the forces and before impulses, g(t) is the gap a time t later and u(t) = g'(t). A contact is
active if g(t_0) < h max(-u(t_0), v_rest), with a threshold v_rest. It is

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

At the kinks, g = h max(-u, v_rest) is no contact; u = -v_rest and tau = t_0 - 2 h are at rest. At a graze, u(tau) = 0,
the derivative is unbounded. Source: time of impact in a step, Hu et al. 2020, DiffTaichi, section 4; its effect on
derivatives, Bernardo et al. 2008, Piecewise-smooth Dynamical Systems, section 2.5.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import islands, rows
from .geometry import feature, pair
from .islands import IMPACT, NONE, REST
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten

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
    numbers, Feature, R, S, vec = feature.numbers(dim), part.Feature, at.rotations, at.spins, at.vec
    close = CLOSE[real == ti.f32]

    @ti.func
    def feature_at(c, second, constants: ti.template(), attitude: ti.template(), attitude0) -> Feature:
        """Return the first or the second feature of candidate c."""
        rotated = rotate.matrix(at.rotation_at(attitude, attitude0 + (2 * c + second) * R))
        return part.read(constants, (2 * c + second) * numbers, rotated)

    @ti.func
    def centre_offset(x: ti.template(), x0, twist: ti.template(), twist0, i, j, tau: real) -> vec:
        """Return the vector from the centre of body j to that of i."""
        still = at.vec_of(x, x0, i) - at.vec_of(x, x0, j)
        return still + tau * (at.linear(twist, twist0, i) - at.linear(twist, twist0, j))

    @ti.func
    def speed(frame: ti.template(), start, twist: ti.template(), twist0, i, j) -> real:
        """Return u for features with this frame."""
        r_a, r_b = at.vec_at(frame, start + dim), at.vec_at(frame, start + 2 * dim)
        u_a = at.linear(twist, twist0, i) + rotate.cross(at.angular(twist, twist0, i), r_a)
        u_b = at.linear(twist, twist0, j) + rotate.cross(at.angular(twist, twist0, j), r_b)
        return at.vec_at(frame, start).dot(u_a - u_b)

    @ti.func
    def time_of_impact(
        kind: ti.template(), body_a: ti.template(), body_b: ti.template(), constants: ti.template(), M, h, span, v_rest,
        free: ti.template(), n, bodies: ti.template(), NJ,
        x: ti.template(), x0, q: ti.template(), q0, twist: ti.template(), twist0,
        gap: ti.template(), gap0, frame: ti.template(), frame0, attitude: ti.template(), attitude0,
        time: ti.template(), time0, active: ti.template(), active0, first: ti.template(), first0,
        gap_normal: ti.template(), gap_normal0,
    ):  # fmt: skip
        begin = span - h
        for search_pass in range(2):  # first the state of each candidate, then those at rest at the time of an impact
            for c in range(M):
                i, j, start, saved_gap = body_a[c], body_b[c], frame0 + c * 3 * dim, gap[gap0 + c]
                tau, found, state, stage, overlap, earliest = begin, begin, NONE, FIRST, False, begin - LOOK_BACK * h
                if search_pass == 1:
                    impact, stage = island.block_impact(NJ + c, bodies, first, first0), DONE
                    if active[active0 + c] == REST and impact >= 0:
                        tau, stage = time[time0 + impact], LAST
                is_retimed = stage == LAST
                if is_retimed:
                    at.put_vec(gap_normal, gap_normal0 + c * dim, at.vec_at(frame, start))
                iterations = 0
                while stage != DONE:
                    for second in range(2):
                        body = i + second * (j - i)
                        rotated = rotate.advance(at.rotation_of(q, q0, body), tau * at.angular(twist, twist0, body))
                        at.put_rotation(attitude, attitude0 + (2 * c + second) * R, rotated)
                    a, b = (
                        feature_at(c, 0, constants, attitude, attitude0),
                        feature_at(c, 1, constants, attitude, attitude0),
                    )
                    g, n_c, r_a, r_b, is_valid = f.contact(
                        kind[c], centre_offset(x, x0, twist, twist0, i, j, tau), a, b
                    )
                    gap[gap0 + c] = g
                    at.put_vec(frame, start, n_c)
                    at.put_vec(frame, start + dim, r_a)
                    at.put_vec(frame, start + 2 * dim, r_b)
                    u = speed(frame, start, twist, twist0, i, j)
                    if stage == SEARCH:
                        found = ti.max(tau - g / ti.min(u, -1e-30), earliest)
                        is_last = ti.abs(found - tau) <= close * h or iterations == MAX_ITERATIONS
                        if u >= 0 or found > span or found == earliest or (is_last and not is_valid):
                            stage, tau = LAST, begin
                            if overlap:
                                tau, state = 0.0, REST
                        elif is_last:
                            stage, state = DONE, IMPACT
                        else:
                            tau = found
                    elif stage == FIRST and g < h * ti.max(-u, v_rest) and u < -v_rest:
                        stage, tau, overlap = SEARCH, ti.max(begin - g / u, earliest), g < 0 and is_valid
                    elif stage == FIRST and g < h * v_rest and is_valid:
                        stage, tau, state = ti.select(begin < 0, LAST, DONE), 0.0, REST
                    elif is_retimed and tau != 0 and not is_valid:
                        tau = 0.0
                    else:
                        stage = DONE
                    iterations += 1
                if search_pass == 0:
                    time[time0 + c] = tau
                    active[active0 + c] = state
                elif is_retimed:
                    time[time0 + c] = tau
                    gap[gap0 + c] = saved_gap
            if search_pass == 0:
                for c in range(M):
                    if active[active0 + c] == IMPACT:
                        for e in range(M):
                            one_pair = body_a[e] == body_a[c] and body_b[e] == body_b[c]
                            one_pair = one_pair or (body_a[e] == body_b[c] and body_b[e] == body_a[c])
                            is_impact = one_pair and active[active0 + e] == IMPACT
                            if is_impact and time[time0 + e] < time[time0 + c] - SIMULTANEOUS * h:
                                active[active0 + c] = NONE
                island.find_first_impacts(free, n, bodies, NJ, M, time, time0, active, active0, first, first0)

    @ti.func
    def adj_time_of_impact(
        kind: ti.template(), body_a: ti.template(), body_b: ti.template(), constants: ti.template(), M,
        bodies: ti.template(), NJ, x: ti.template(), x0, q: ti.template(), q0, twist: ti.template(), twist0,
        gap: ti.template(), gap0, frame: ti.template(), frame0, attitude: ti.template(), attitude0,
        time: ti.template(), time0, active: ti.template(), active0, first: ti.template(), first0,
        gap_normal: ti.template(), gap_normal0,
        adj_gap: ti.template(), adj_gap0, adj_frame: ti.template(), adj_frame0,
        adj_attitude: ti.template(), adj_attitude0, adj_time: ti.template(), adj_time0,
        adj_x: ti.template(), adj_x0, adj_theta: ti.template(), adj_theta0, adj_twist: ti.template(), adj_twist0,
    ):  # fmt: skip
        """Add to the adjoints; adj_attitude [M, 2 S] is by small rotations. Skip candidates with zero adjoints."""
        for impacts_pass in range(2):  # contacts at rest come first, as they add to adj_time of impacts
            for c in range(M):
                start, g_start, g_rotation0 = frame0 + c * 3 * dim, adj_frame0 + c * 3 * dim, adj_attitude0 + 2 * c * S
                is_idle = adj_gap[adj_gap0 + c] == 0 and adj_time[adj_time0 + c] == 0  # False for NaN
                for e in range(3 * dim):
                    is_idle = is_idle and adj_frame[g_start + e] == 0
                for e in range(2 * S):
                    is_idle = is_idle and adj_attitude[g_rotation0 + e] == 0
                poses = 1
                impact = island.block_impact(NJ + c, bodies, first, first0)
                if active[active0 + c] == REST and impact >= 0:  # noqa: SIM102 - read only if it exists
                    if time[time0 + c] == time[time0 + impact]:
                        poses = 2  # that of the frame, then that of the gap
                if is_idle or (active[active0 + c] == IMPACT) != (impacts_pass == 1):
                    poses = 0
                for pose in range(poses):
                    i, j, tau = body_a[c], body_b[c], time[time0 + c]
                    if pose == 1:
                        tau = 0.0
                    p_d, p_a, p_b = vec(0.0), at.spin(0.0), at.spin(0.0)
                    g_gap, g_n, g_ra, g_rb = real(0.0), vec(0.0), vec(0.0), vec(0.0)
                    if pose == 0:
                        p_a, p_b = at.spin_at(adj_attitude, g_rotation0), at.spin_at(adj_attitude, g_rotation0 + S)
                        g_n, g_ra = at.vec_at(adj_frame, g_start), at.vec_at(adj_frame, g_start + dim)
                        g_rb = at.vec_at(adj_frame, g_start + 2 * dim)
                    if pose == poses - 1:
                        g_gap = adj_gap[adj_gap0 + c]
                    rotated_a = rotate.advance(at.rotation_of(q, q0, i), tau * at.angular(twist, twist0, i))
                    rotated_b = rotate.advance(at.rotation_of(q, q0, j), tau * at.angular(twist, twist0, j))
                    a = part.read(constants, 2 * c * numbers, rotate.matrix(rotated_a))
                    b = part.read(constants, (2 * c + 1) * numbers, rotate.matrix(rotated_b))
                    d = centre_offset(x, x0, twist, twist0, i, j, tau)
                    g, n, r_a = gap[gap0 + c], at.vec_at(frame, start), at.vec_at(frame, start + dim)
                    if pose == 1:
                        n = at.vec_at(gap_normal, gap_normal0 + c * dim)
                    elif poses > 1:
                        g = n.dot(d + r_a - at.vec_at(frame, start + 2 * dim))
                    if g < pair.FAR:
                        g_d, g_a, g_b = f.adj(kind[c], d, a, b, g, n, g_gap, g_n, g_ra, g_rb)
                        p_d += g_d
                        p_a += g_a
                        p_b += g_b
                    if poses == 2 or active[active0 + c] == IMPACT:
                        g_tau = p_d.dot(at.linear(twist, twist0, i) - at.linear(twist, twist0, j))
                        g_tau += p_a.dot(at.angular(twist, twist0, i)) + p_b.dot(at.angular(twist, twist0, j))
                        if pose == 0:
                            g_tau += adj_time[adj_time0 + c]
                        if active[active0 + c] == IMPACT:
                            p_gap = -g_tau / speed(frame, start, twist, twist0, i, j)
                            p_d += p_gap * n
                            p_a += p_gap * rotate.moment(r_a, n)
                            p_b -= p_gap * rotate.moment(at.vec_at(frame, start + 2 * dim), n)
                        elif pose == 0:
                            adj_time[adj_time0 + impact] = adj_time[adj_time0 + impact] + g_tau
                    at.add_vec_of(adj_x, adj_x0, i, p_d)
                    at.add_vec_of(adj_x, adj_x0, j, -p_d)
                    for second in range(2):
                        body, rotated = i + second * (j - i), p_a + second * (p_b - p_a)
                        still, now = at.rotation_of(q, q0, body), rotated_a + second * (rotated_b - rotated_a)
                        g_q, g_phi = rotate.adj_advance(
                            still, tau * at.angular(twist, twist0, body), rotate.adj_turn(now, rotated)
                        )
                        at.add_spin_of(adj_theta, adj_theta0, body, rotate.adj_theta(still, g_q))
                        at.add_twist(adj_twist, adj_twist0, body, (1 - 2 * second) * tau * p_d, tau * g_phi)

    return SimpleNamespace(time_of_impact=time_of_impact, adj=adj_time_of_impact)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim, kinds), orientation_adjoint(real, dim)
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)

    @kernel
    def forward(
        kind: ints, body_a: ints, body_b: ints, constants: reals, M: ti.i32, h: real, span: real, v_rest: real,
        free: ints, n: ti.i32, bodies: ints, NJ: ti.i32, x: reals, q: reals, twist: reals,
        gap: reals, frame: reals, attitude: reals, time: reals, active: reals, first: reals, gap_normal: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.time_of_impact(
                kind, body_a, body_b, constants, M, h, span, v_rest, free, n, bodies, NJ, x, 0, q, 0, twist, 0,
                gap, 0, frame, 0, attitude, 0, time, 0, active, 0, first, 0, gap_normal, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        kind: ints, body_a: ints, body_b: ints, constants: reals, M: ti.i32, n: ti.i32, bodies: ints, NJ: ti.i32,
        x: reals, q: reals, twist: reals,
        gap: reals, frame: reals, attitude: reals, time: reals, active: reals, first: reals, gap_normal: reals,
        adj_time: reals, adj_gap: reals, adj_frame: reals, adj_attitude: reals,
        adj_rotations: reals, adj_theta: reals, adj_x: reals, adj_q: reals, adj_twist: reals,
    ):  # fmt: skip
        for _ in range(1):
            for k in range(2 * M):
                g_rotation = rotate.adj_theta(
                    at.rotation_at(attitude, k * at.rotations), at.rotation_at(adj_attitude, k * at.rotations)
                )
                at.put_spin(adj_rotations, k * at.spins, g_rotation)
            f.adj(
                kind, body_a, body_b, constants, M, bodies, NJ, x, 0, q, 0, twist, 0,
                gap, 0, frame, 0, attitude, 0, time, 0, active, 0, first, 0, gap_normal, 0,
                adj_gap, 0, adj_frame, 0, adj_rotations, 0, adj_time, 0, adj_x, 0, adj_theta, 0, adj_twist, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class TimeOfImpact(Function):
    """Gap [M], frame [M, 3 dim], orientations of both bodies [M, 2 R], time [M] and state [M] of contacts.

    The last output is the first impact that reaches each body, [n]: the number of its candidate, or -1. Inputs:
    position [n, dim], orientation [n, R], twist [n, D]. Saved: all of these, and the normals at which gaps at rest are
    measured. The states and the first impacts have no gradient.
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *inputs: Tensor) -> tuple[Any, ...]:
        M, dim, dtype = model.contacts, model.dim, inputs[0].dtype
        shapes = ((M,), (M, 3 * dim), (M, 2 * model.rotations), (M,), (M,), (model.bodies,))
        *found, active, first = [np.zeros(shape, dtype) for shape in shapes]
        gap_normal = np.zeros((M, dim), dtype)
        _kernels(model).forward(
            *flatten(*model.candidates.arrays()), M, model.dt, model.span, model.rest_speed, model.free, model.bodies,
            model.row_bodies, model.joint_rows, *flatten(*inputs, *found, active, first, gap_normal),
        )  # fmt: skip
        ctx.model = model
        ctx.save_for_backward(*inputs, *found, active, first, gap_normal)
        choices = Tensor(active), Tensor(first)
        ctx.mark_non_differentiable(*choices)
        return *found, *choices

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        M, n, S, dtype = model.contacts, model.bodies, model.spins, adjoints[0].dtype
        work = np.zeros(2 * M * S, dtype), np.zeros(n * S, dtype)
        found = zeros_like(*ctx.saved_tensors[:3])
        *others, adj_time = adjoints[:4]
        _kernels(model).adjoint(
            *flatten(*model.candidates.arrays()), M, n, model.row_bodies, model.joint_rows,
            *flatten(*ctx.saved_tensors),
            *flatten(adj_time.data.copy(), *others, *work, *found),
        )  # fmt: skip
        return None, *found


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.candidates.kinds if model.contacts else frozenset())
