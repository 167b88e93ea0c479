"""Time of impact of features in a step of the impulse law: gap and frame of each candidate at its own time.

Forces act at x, q, in the middle of the step; its start is t_0 = -h/2. With the velocities v, w after the forces and
before impulses, g(t) is the gap a time t later and u(t) = g'(t). A contact is active if g(t_0) < h max(-u(t_0),
v_rest), with a threshold v_rest. It is

    at rest      if u(t_0) >= -v_rest, and evaluated when forces act, tau = 0
    an impact    if u(t_0) < -v_rest, and evaluated at the time of impact tau, g(tau) = 0

Gap, frame and the orientations `attitude` of both bodies are those at tau. Evaluated at the start of the step, normals
and arms would not change with the time of impact. Derivatives through it would then be wrong for any h, however they
are computed. tau < t_0 if features overlap slightly: they met before the step. The gap of an impact is exactly 0, and
so are its derivatives: what rounding leaves of it is no number that could be compared or weighted.

Newton's method finds tau, starting from t_0. For bodies that do not rotate it converges from one side, as g is convex.
Features miss each other if it leads beyond the step, or to a time at which they separate, u >= 0, or are not opposite
each other (flat.py, segments.py). Then there is no contact. Features that overlap and have no such time after t_0 - 2 h
are at rest. For a pair of bodies, only the first impact is active, with those less than h / 10 later. The others depend
on its result, and the next step handles them.

An impact also changes contacts at rest of the bodies that it reaches (islands.py). They have frame and orientations at
its time tau, if features are opposite each other then. Impulses pass through them at that time. The rotation of their
directions until then represents the force that keeps a body on a curved path. Their gap stays that at the forces.

With the new poses x + tau v and e(tau w) q, the row J = (n, r_a x n, -n, -r_b x n), du = J dV and dg = J (dx, dtheta):
the adjoint p by the pose at tau (pair.py, and adj_attitude) is first taken at fixed tau,

    adj_tau += p V,      p -= adj_tau / u J                     the second if tau solves g(tau) = 0
    adj_x, adj_theta from p      adj_v = tau adj_x      adj_w = tau adj_(tau w), see numerics/rotation.py

For contacts at rest, adj_tau goes to the impact that sets their time, and the adjoint of the gap to the pose at the
forces.

Tangent: with dp = (dx, dtheta) at fixed tau, dtau = -(n.dx_a - n.dx_b + (r_a x n).dtheta_a - (r_b x n).dtheta_b) / u if
tau solves g(tau) = 0, that of the impact for contacts at rest that it times, else 0. Then dp + V dtau is the tangent of
the pose at tau, from which follow those of gap and frame. The loops are in time_of_impact_adjoint.py and
time_of_impact_tangent.py.

At the kinks, g = h max(-u, v_rest) is no contact; u = -v_rest and tau = t_0 - 2 h are at rest. At a graze, u(tau) = 0,
the derivative is unbounded. Source: time of impact in a step, Hu et al. 2020, DiffTaichi, section 4; its effect on
derivatives, Bernardo et al. 2008, Piecewise-smooth Dynamical Systems, section 2.5.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.substep import Fields, Functions, routine

from ..arrays import SETTING
from ..rows import frame_of, half_of, put, put_frame
from . import islands, pair
from .feature import read_features
from .islands import IMPACT, NONE, REST
from .relative_motion import centre_offset, rotated_at, speed
from .time_of_impact_adjoint import adj_time_of_impact
from .time_of_impact_tangent import jvp_time_of_impact

MAX_ITERATIONS = 40
"""Maximum number of Newton iterations. Each squares the error, or halves it if features hardly touch."""
SIMULTANEOUS = 0.1
"""Fraction of h within which impacts of a pair of bodies act together."""
LOOK_BACK = 2.0
"""Multiple of h before t_0 in which overlapping features may have met: one, or more if they have slowed down."""
FIRST, SEARCH, LAST, DONE = range(4)


@ti.func
def are_one_pair(c, e, bodies_a: ti.template(), bodies_b: ti.template()):
    """Return True if two candidates are of the same two bodies."""
    same = bodies_a[e] == bodies_a[c] and bodies_b[e] == bodies_b[c]
    return same or (bodies_a[e] == bodies_b[c] and bodies_b[e] == bodies_a[c])


@ti.func
def drop_later_impacts(model: ti.template(), x: ti.template()):
    """Drop the impacts of a pair of bodies that come after another one of that pair."""
    for c in range(model.candidates.count):
        if x.active[c] == IMPACT:
            for e in range(model.candidates.count):
                one_pair = are_one_pair(c, e, model.candidates.body_a, model.candidates.body_b)
                is_impact = one_pair and x.active[e] == IMPACT
                if is_impact and x.time[e] < x.time[c] - SIMULTANEOUS * model.dt:
                    x.active[c] = NONE


@ti.func
def close_gaps(model: ti.template(), x: ti.template()):
    """Set the gaps of impacts to 0, which are those at their times but for rounding."""
    for c in range(model.candidates.count):
        if x.active[c] == IMPACT:
            x.gap[c] = 0.0


@ti.func
def find_contact(c, tau, model: ti.template(), x: ti.template()):
    """Set attitude, gap and frame of a candidate at a time tau; return the gap, u and True if it is valid."""
    i, j = model.candidates.body_a[c], model.candidates.body_b[c]
    for second in range(2):
        put(x.attitude, (2 * c + second) * x.orientation.width, rotated_at(i + second * (j - i), tau, x))
    a, b = read_features(c, model, x, half_of(x.attitude, c, 0), half_of(x.attitude, c, 1))
    d = centre_offset(x.position, x.twist, i, j, tau)
    g, n, r_a, r_b, is_valid = pair.contact(model.candidates.kind[c], d, a, b, model.candidates.kinds)
    x.gap[c] = g
    put_frame(x.frame, c, n, r_a, r_b)
    return g, speed(x.frame, c, x.twist, i, j), is_valid


@ti.func
def time_of_impact(model: ti.template(), x: ti.template()):
    h = model.dt
    begin = -h / 2
    for search_pass in range(2):  # first the state of each candidate, then those at rest at the time of an impact
        for c in range(model.candidates.count):
            tau, found, state, stage, overlap, earliest = begin, begin, NONE, FIRST, False, begin - LOOK_BACK * h
            saved_gap, iterations = x.gap[c], 0
            if search_pass == 1:
                impact, stage = islands.block_impact(model.joint_rows + c, model.row_bodies, x.first), DONE
                if x.active[c] == REST and impact >= 0:
                    tau, stage = x.time[impact], LAST
            is_retimed = stage == LAST
            if is_retimed:
                n, _, _ = frame_of(x.frame, c)
                put(x.gap_normal, c * model.dim, n)
            while stage != DONE:
                g, u, is_valid = find_contact(c, tau, model, x)
                if stage == SEARCH:
                    found = ti.max(tau - g / ti.min(u, -1e-30), earliest)
                    is_last = ti.abs(found - tau) <= model.close * h or iterations == MAX_ITERATIONS
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
            drop_later_impacts(model, x)
            close_gaps(model, x)
            islands.find_first_impacts(model, x)


TimeOfImpact = routine(
    "TimeOfImpact",
    Functions(time_of_impact, adj_time_of_impact, jvp_time_of_impact),
    Fields(
        given=("position", "orientation", "twist", "centre_of_mass"),
        results=("gap", "frame", "attitude", "time", "active", "first"),
        tape=("gap_normal",),
        choices=("active", "first"),
    ),
    SETTING,
    of_model=(
        *("bodies", "free", "row_bodies", "joint_rows", "contacts", "candidates", "dt", "rest_speed"),
        *("dim", "is_single", "close", "free_anchors"),
    ),
)
"""Gap [M], frame [M, 3 dim], orientations of both bodies [M, 2 R], time [M] and state [M] of contacts.

The last result is the first impact that reaches each body, [n]: the number of its candidate, or -1. The states and the
first impacts have no gradient.
"""
