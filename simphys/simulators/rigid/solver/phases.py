"""Phases of a step: before its first impact, at the impact, and after it; each phase solves for impulses.

V are the velocities before the forces of the step, V* those after them, dV = V* - V, and s the fraction of the step
before the impact (split_step.py). With `sweeps` the solve for impulses of sweeps.py,

    V_0 = sweeps(V*)                   joints and contacts at rest: the whole step, if there is no impact
    V_1 = sweeps(V + s dV)             the same rows, before the impact
    V_2 = sweeps(V_1)                  and all contacts with an impact, simultaneously
    V_3 = sweeps(V_2 + (1 - s) dV)     the same rows, after the impact

Each body has the s of its own first impact. Bodies that no impact reaches (islands.py) have V_0 only. For all others,
V_0 only tells which contacts press and which stick in such a step: these are held in V_1. Only the sign of a force is
needed for that. A short first phase alone would lose this sign: velocities follow a curved support by the directions in
the middle of the last step, half a step late, while forces have acted until its end.

In V_0 and V_3, joints and contacts at rest have their own targets t. In V_1 and V_2 the target of joints and held
contacts is 0: velocities along the constraints in their current directions. Other targets would correct errors and
rotate velocities from the middle of a step to its end, which must not look like a speed of impact. Contacts with an
impact have

    t = max(0, -e u) - d a,   u = J V_1 + d a,   a = J dV,   d = tau / h + 1/2 - s          normal, e the restitution
    t = -d a                                                                                tangents

in V_2, and 0 in V_3. u is the speed at the contact's own time of impact tau. t gives the speed of the rebound at that
time, expressed at the time of the first impact, at which d = 0.

A single solve instead of V_1 to V_3 would give one impulse per step to the supports and joints of a body. Derivatives
by the time of impact would then miss the change of these forces, for steps of any length.

Impulses act at times t_1 ... t_3 after the forces, but velocities change as if all acted with the forces. Positions
therefore need the correction `shift`, the sum of t P lambda,

    t_1 = (s - 1) h / 2      t_2 = (s - 1/2) h, for contacts with an impact tau      t_3 = s h / 2

Constraint impulses act together with the forces that they
balance: in the middle of their phase or at its beginning.

Adjoint: the phases in reverse (phases_adjoint.py). At u = 0 the target counts as the constant 0. A row of two bodies
has the s of body a, or that of b if no impact reaches a.
"""

from simphys.autograd.kernels.runtime import ti

from ..contacts.islands import IMPACT, REST
from ..rows import add_to_row, join, row_of
from .records import add_multiple, entry, is_reached, prepare, row_at, row_velocity, sort_contacts, velocities_of
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, PHASES, WHOLE_STEP, mark_held, sweep


@ti.func
def count_phases(order: ti.template()):
    return ti.select(entry(order, 0) > entry(order, 1), PHASES, 1)


@ti.func
def timing_body(block, bodies: ti.template(), first: ti.template()):
    """Return the body whose fraction of the step applies to a row."""
    a, b = bodies[2 * block], bodies[2 * block + 1]
    found = a
    if b >= 0 and first[a] < 0:
        found = b
    return found


@ti.func
def impulse_time(phase, s, h, is_impact, tau):
    """Time at which an impulse acts."""
    t = s * h / 2
    if phase < AT_IMPACT:
        t = (s - 1.0) * h / 2
    if phase == AT_IMPACT:
        t = ti.select(is_impact, tau, (s - 0.5) * h)
    return t


@ti.func
def has_own_target(i, model: ti.template(), active: ti.template(), held: ti.template()):
    """Return True if a row has its own target before an impact."""
    found = False
    if i >= model.joint_rows:
        c = (i - model.joint_rows) // model.dim
        found = active[c] == REST and held[c] == 0
    return found


@ti.func
def is_impact_row(i, model: ti.template(), active: ti.template()):
    found = False
    if i >= model.joint_rows:
        found = active[(i - model.joint_rows) // model.dim] == IMPACT
    return found


@ti.func
def begin(model: ti.template(), x: ti.template()):
    """Set dV, and the targets of phases without an impact."""
    dim, D = ti.static(model.dim, model.freedoms)
    n, N = model.bodies, model.joint_rows + model.contacts * dim
    for e in range(n * D, (n + 1) * D):
        x.speed[e] = 0.0
        x.delta_v[e] = 0.0
    for e in range(n * D):
        x.delta_v[e] = x.twist[e]
    for b in range(n):
        add_to_row(x.delta_v, b, join(-row_of(x.velocity, b), -row_of(x.angular_velocity, b)))
    for i in range(N):
        x.phase_target[i] = x.target[i]
        x.phase_target[N + i] = 0.0


@ti.func
def end_whole_step(model: ti.template(), x: ti.template()):
    """Set the targets of the contacts that are held before the impact."""
    N = model.joint_rows + model.contacts * model.dim
    for k in range(model.joint_rows + entry(x.order, 1) * model.dim):
        i, block = row_at(k, model, x.order)
        if is_reached(block, model.row_bodies, x.first):
            x.impulse[i] = 0.0  # it only served to find the held contacts
            if has_own_target(i, model, x.active, x.held):
                x.phase_target[N + i] = x.target[i]


@ti.func
def begin_phase(phase, model: ti.template(), x: ti.template()):
    """Set the velocities with which a phase begins."""
    D = ti.static(model.freedoms)
    for e in range(model.bodies * D):
        remainder, reached = 1.0 - x.fraction[e // D], x.first[e // D] >= 0
        if phase == WHOLE_STEP or (phase == BEFORE_IMPACT and reached):
            x.speed[e] = x.twist[e]
        if reached and phase == BEFORE_IMPACT:
            x.speed[e] = x.speed[e] - remainder * x.delta_v[e]
        if phase == AFTER_IMPACT:
            x.speed[e] = x.speed[e] + remainder * x.delta_v[e]


@ti.func
def aim_at_impact(model: ti.template(), x: ti.template()):
    """Set the targets of contacts with an impact."""
    dim = ti.static(model.dim)
    NJ, N = model.joint_rows, model.joint_rows + model.contacts * dim
    for k in range(entry(x.order, 1) * dim, entry(x.order, 0) * dim):
        i, block = row_at(NJ + k, model, x.order)
        va, vb = velocities_of(block, model)
        d = x.time[block - NJ] / model.dt + 0.5 - x.fraction[timing_body(block, model.row_bodies, x.first)]
        lag = d * row_velocity(i, x.jacobian, x.delta_v, va, vb)
        rebound = 0.0
        if k % dim == 0:
            u = row_velocity(i, x.jacobian, x.speed, va, vb) + lag
            rebound = ti.max(0.0, -x.bounce[block - NJ] * u)
        x.phase_target[N + i] = rebound - lag


@ti.func
def time_of_row(i, block, model: ti.template(), x: ti.template()):
    """Return the body that times a row, True for a row of an impact, and the time of that."""
    is_met, tau = is_impact_row(i, model, x.active), 0.0
    if is_met:
        tau = x.time[block - model.joint_rows]
    return timing_body(block, model.row_bodies, x.first), is_met, tau


@ti.func
def add_shift(i, block, total, model: ti.template(), shift: ti.template(), response: ti.template()):
    """Add a multiple of P of a row to the shift of both bodies."""
    D = ti.static(model.freedoms)
    for side in range(2):
        body = model.row_bodies[2 * block + side]
        if body >= 0:
            add_multiple(D, shift, body * D, total, response, (2 * i + side) * D)


@ti.func
def sum_shift(model: ti.template(), x: ti.template()):
    """Add up the shift of a step with an impact."""
    N = model.joint_rows + model.contacts * model.dim
    for k in range(model.joint_rows + entry(x.order, 0) * model.dim):
        i, block = row_at(k, model, x.order)
        body, is_met, tau = time_of_row(i, block, model, x)
        total = 0.0
        for phase in range(PHASES):
            total += impulse_time(phase, x.fraction[body], model.dt, is_met, tau) * x.impulse[phase * N + i]
        add_shift(i, block, total, model, x.shift, x.response)


@ti.func
def solve_phases(model: ti.template(), x: ti.template()):
    dim, D = ti.static(model.dim, model.freedoms)
    n, N = model.bodies, model.joint_rows + model.contacts * dim
    sort_contacts(model, x)
    prepare(model, x)
    begin(model, x)
    phase_count = count_phases(x.order)
    for phase in range(phase_count):
        begin_phase(phase, model, x)
        if phase == AT_IMPACT:
            aim_at_impact(model, x)
        sweep(phase, model, x)
        if phase == WHOLE_STEP and phase_count > 1:
            mark_held(model, x)
            end_whole_step(model, x)
        for e in range(n * D):
            x.result[phase * n * D + e] = x.speed[e]
    for i in range(phase_count * N, PHASES * N):
        x.impulse[i] = 0.0
    for e in range(n * D):
        x.new[e] = x.speed[e]
        x.shift[e] = 0.0
    if phase_count > 1:
        sum_shift(model, x)
