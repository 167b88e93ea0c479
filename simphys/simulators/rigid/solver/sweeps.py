"""Impulses of all rows (rows.py) by projected Gauss-Seidel: a fixed number of sweeps over the rows in a fixed order.

With J = (l, m_a), (-l, -m_b), an impulse lambda of a row changes the velocities V of its two bodies by lambda P with
P = M^-1 J^T, where M holds masses and inertias (mobility.py). It changes its own u = J V by lambda d, d = J P. All
lambda start at 0. A row, or the rows of friction of a contact together, are updated so that u becomes the target t,
then projected:

    lambda^ = lambda - rho (u - t)                                          rho = 1 / d, friction (dim - 1) / sum d
    joint      lambda' = lambda^
    normal     lambda' = max(0, lambda^)
    friction   lambda' = lambda^ if |lambda^| < mu lambda_n (it sticks), else mu lambda_n lambda^ / |lambda^| (slides)
    V' = V + P (lambda' - lambda)

A step with an impact has several such solves, its phases (phases.py). In the phase before the impact, contacts are held
that would press, or press and stick, in a step without it: they are not projected, and sliding friction is mu lambda_n
of any sign.

In space, both rows of friction share one rho, so that the circular cone has no preferred directions. At the kinks: a
normal row with lambda^ = 0 counts as separated; friction at the cone's edge, within EDGE, counts as sticking. The
corners of a standing box can push against each other up to their limits, and the box still stands.

Adjoint, in reverse over the updates with Delta = lambda' - lambda; V = V' - P Delta is reconstructed, lambda is stored:

    adj_Delta = P.adj_V'      adj_P += Delta adj_V'      adj_lambda' += adj_Delta      adj_lambda = -adj_Delta
    adj_lambda^ = adj_lambda' where free, 0 where separated; sliding, with e = lambda^ / |lambda^|:
        adj_lambda^ = mu lambda_n / |lambda^| (adj_lambda' - e e.adj_lambda'),   adj_(mu lambda_n) += e.adj_lambda'
    adj_lambda += adj_lambda^      adj_u = -rho adj_lambda^      adj_t += rho adj_lambda^
    adj_rho -= (u - t) adj_lambda^      adj_V = adj_V' + J^T adj_u      adj_J += adj_u V

The tangent follows the sweeps, too. speed [n + 1, D]: current velocities, the world's last. trace [sweeps, N]: impulses
after each sweep. An update concerns a group of rows: a joint's row, a contact's normal row, or its rows of friction.

Source: Catto 2005, Iterative Dynamics with Temporal Coherence; the adjoint is that of these very sweeps, converged or
not.
"""

from simphys.autograd.kernels.records import View
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element

from .records import (
    CHANGE,
    COUNTS,
    MISS,
    RHO,
    TRIAL,
    G,
    add_row,
    add_velocities,
    entry,
    is_reached,
    row_velocity,
    velocities_of,
)

JOINT, NORMAL, FRICTION = range(3)
"""Projection of the rows of a group."""

PHASES = 4
WHOLE_STEP, BEFORE_IMPACT, AT_IMPACT, AFTER_IMPACT = range(PHASES)
"""Phases of a step: the whole step without an impact; or before the impact, at the impact, and after it."""


EDGE = (1e-7, 1e-5)
"""Relative distance to the cone's edge within which a row still sticks, in double and in single precision."""


@ti.func
def count_groups(phase, NJ, order: ti.template()):
    """Return the number of groups in a phase."""
    contacts = entry(order, 1)
    if phase > BEFORE_IMPACT:
        contacts = entry(order, 0)
    if phase != WHOLE_STEP:
        contacts -= entry(order, 2)
    return NJ + 2 * contacts


@ti.func
def is_held(phase, kind, block, NJ, held: ti.template()):
    found = False
    if phase == BEFORE_IMPACT and kind != JOINT:
        found = held[block - NJ] >= kind
    return found


@ti.func
def target_offset(phase, N):
    """Return the offset of the targets of a phase."""
    return ti.select(BEFORE_IMPACT <= phase <= AT_IMPACT, N, 0)


@ti.func
def group_at(k, phase, model: ti.template(), first: ti.template(), order: ti.template()):
    """Return, for the k-th group of a phase: first row, number of rows, projection, and block."""
    i, count, kind, block = k, 1, JOINT, k
    if k >= model.joint_rows:
        skipped = 0
        if phase != WHOLE_STEP:
            skipped = entry(order, 2)
        c = entry(order, COUNTS + skipped + (k - model.joint_rows) // 2)
        i, kind, block = model.joint_rows + c * model.dim, NORMAL, model.joint_rows + c
        if (k - model.joint_rows) % 2 == 1:
            i, count, kind = i + 1, model.dim - 1, FRICTION
    elif phase != WHOLE_STEP and not is_reached(k, model.row_bodies, first):
        count = 0
    return i, count, kind, block


@ti.func
def mark_held(model: ti.template(), x: ti.template()):
    """Set held [M] from a step without an impact: NORMAL if the contact presses, FRICTION if it sticks, too."""
    for k in range(entry(x.order, 2), entry(x.order, 1)):
        c = entry(x.order, COUNTS + k)
        i, square = model.joint_rows + c * model.dim, 0.0
        for j in range(1, model.dim):
            square += x.impulse[i + j] * x.impulse[i + j]
        x.held[c] = 0.0
        if x.impulse[i] > 0:
            x.held[c] = ti.select(ti.sqrt(square) * model.beyond < x.limit[c] * x.impulse[i], FRICTION, NORMAL)


@ti.func
def trial_square(record: ti.template(), i, count):
    """Return |lambda^|^2 of a group, whose first row is i."""
    square = 0.0
    for j in range(count):
        trial = record[(i + j) * record.width + TRIAL]
        square += trial * trial
    return square


@element
def slide(trial, square, bound, beyond):
    """Project a component of lambda^ on the circle of radius `bound`, given |lambda^|^2."""
    length, factor = ti.sqrt(square), 1.0
    if length >= bound:
        factor = bound / ti.max(length, 1e-30)
    return factor * trial


@slide.tangent
def jvp_slide(trial, square, bound, beyond, dtrial, dsquare, dbound):
    """Friction at the edge of the cone sticks, as in the adjoint."""
    length, moved = ti.max(ti.sqrt(square), 1e-30), dtrial
    if bound <= 0.0 or length > bound * beyond:
        factor = bound / length
        moved = factor * dtrial + (dbound - factor * (0.5 * dsquare / length)) / length * trial
    return moved


@ti.func
def sweep(phase, model: ti.template(), x: ti.template()):
    """Sweep over all groups; `speed` is changed."""
    L, N = ti.static(x.record.width), model.joint_rows + model.contacts * model.dim
    start = target_offset(phase, N)
    target, trace = ti.static(View(x.phase_target, start), View(x.trace, phase * model.sweeps * N))
    impulse = ti.static(View(x.impulse, phase * N))
    for i in range(N):
        impulse[i] = 0.0
    for s in range(model.sweeps):
        for k in range(count_groups(phase, model.joint_rows, x.order)):
            i, size, kind, block = group_at(k, phase, model, x.first, x.order)
            va, vb = velocities_of(block, model)
            for r in range(i, i + size):
                miss = row_velocity(r, x.jacobian, x.speed, va, vb) - target[r]
                x.record[r * L + TRIAL] = impulse[r] - x.record[r * L + RHO] * miss
            bound, square = 0.0, 0.0
            free = is_held(phase, kind, block, model.joint_rows, x.held)
            if kind == FRICTION and not free:
                bound = x.limit[block - model.joint_rows] * impulse[i - 1]
                square = trial_square(x.record, i, size)
            for r in range(i, i + size):
                after = x.record[r * L + TRIAL]
                if kind == FRICTION and not free:
                    after = slide(after, square, bound, model.beyond)
                elif kind == NORMAL and not free and after <= 0.0:
                    after = 0.0
                add_row(r, after - impulse[r], x.response, x.speed, va, vb)
                impulse[r] = after
                trace[s * N + r] = after


@ti.func
def undo(r, before, after, va, vb, x: ti.template()):
    """Restore the velocities before the update of row r, from its impulses before and after."""
    x.record[r * x.record.width + TRIAL] = before
    x.record[r * x.record.width + CHANGE] = after - before
    add_row(r, before - after, x.response, x.speed, va, vb)


@ti.func
def adj_apply(r, va, vb, target: ti.template(), adj_impulse: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Compute u - t, lambda^ and adj_lambda' of row r, and subtract adj_Delta from adj_lambda."""
    q = r * x.record.width
    miss = row_velocity(r, x.jacobian, x.speed, va, vb) - target[r]
    x.record[q + MISS] = miss
    x.record[q + TRIAL] = x.record[q + TRIAL] - x.record[q + RHO] * miss
    projection = row_velocity(r, x.response, adj_x.speed, va, vb)
    x.record[q + G] = adj_impulse[r] + projection
    adj_impulse[r] = -projection


@ti.func
def adj_slide(
    i, size, c, impulse, adj_impulse: ti.template(), model: ti.template(), x: ti.template(), adj_x: ti.template()
):
    """Return factor, e.adj_lambda' and |lambda^| of friction, from row i on, by the `impulse` of the normal before it.

    The friction may stick.
    """
    factor, across, length = 1.0, 0.0, 1.0
    bound = x.limit[c] * impulse
    found = ti.sqrt(trial_square(x.record, i, size))
    if bound <= 0.0 or found > bound * model.beyond:
        length = ti.max(found, 1e-30)
        factor = bound / length
        for r in range(i, i + size):
            across += x.record[r * x.record.width + TRIAL] / length * x.record[r * x.record.width + G]
        adj_x.limit[c] = adj_x.limit[c] + across * impulse
        adj_impulse[i - 1] = adj_impulse[i - 1] + across * x.limit[c]
    return factor, across, length


@ti.func
def adj_sweep(phase, model: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Reverse the sweeps; `speed` and `adj_speed` are those after the sweeps on entry, those before on return."""
    L, N = ti.static(x.record.width), model.joint_rows + model.contacts * model.dim
    start, count = target_offset(phase, N), count_groups(phase, model.joint_rows, x.order)
    target, trace = ti.static(View(x.phase_target, start), View(x.trace, phase * model.sweeps * N))
    adj_impulse, adj_target = ti.static(View(adj_x.impulse, phase * N), View(adj_x.phase_target, start))
    for back in range(model.sweeps):
        s = model.sweeps - 1 - back
        for k_back in range(count):
            i, size, kind, block = group_at(count - 1 - k_back, phase, model, x.first, x.order)
            va, vb = velocities_of(block, model)
            for r in range(i, i + size):
                before = 0.0
                if s > 0:
                    before = trace[(s - 1) * N + r]
                undo(r, before, trace[s * N + r], va, vb, x)
            for r in range(i, i + size):
                adj_apply(r, va, vb, target, adj_impulse, x, adj_x)

            factor, across, length = 1.0, 0.0, 1.0  # adj_lambda^ = factor (g - e across)
            free = is_held(phase, kind, block, model.joint_rows, x.held)
            if kind == NORMAL and not free and trace[s * N + i] <= 0.0:  # as found, whatever the rounding of lambda^
                factor = 0.0
            if kind == FRICTION and not free:
                c, normal = block - model.joint_rows, trace[s * N + i - 1]
                factor, across, length = adj_slide(i, size, c, normal, adj_impulse, model, x, adj_x)

            for r in range(i, i + size):
                q = r * L
                adj_trial = factor * (x.record[q + G] - x.record[q + TRIAL] / length * across)
                adj_u = -x.record[q + RHO] * adj_trial
                adj_impulse[r] = adj_impulse[r] + adj_trial
                adj_target[r] = adj_target[r] - adj_u
                adj_x.record[q + RHO] = adj_x.record[q + RHO] - x.record[q + MISS] * adj_trial
                x.record[q + G] = adj_u
                add_velocities(r, adj_u, adj_x.jacobian, x.speed, va, vb)
                add_velocities(r, x.record[q + CHANGE], adj_x.response, adj_x.speed, va, vb)
            for r in range(i, i + size):
                add_row(r, x.record[r * L + G], x.jacobian, adj_x.speed, va, vb)
