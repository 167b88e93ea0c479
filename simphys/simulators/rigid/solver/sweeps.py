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

The tangent is in sweeps_tangent.py. speed [n + 1, D]: current velocities, the world's last. trace [sweeps, N]: impulses
after each sweep. An update concerns a group of rows: a joint's row, a contact's normal row, or its rows of friction.

Source: Catto 2005, Iterative Dynamics with Temporal Coherence; the adjoint is that of these very sweeps, converged or
not.
"""

from simphys.autograd.kernels.records import View
from simphys.autograd.kernels.runtime import ti

from .records import CHANGE, COUNTS, MISS, RHO, TRIAL, G, add_multiple, dot, entry, is_reached, slot

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
def velocities_of(block, model: ti.template(), D: ti.template()):
    """Return where the velocities of both bodies of a block are."""
    return model.row_bodies[2 * block] * D, slot(model.row_bodies[2 * block + 1], model.bodies) * D


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
def trial_length(record: ti.template(), p, count):
    """Return |lambda^| of a group."""
    square = 0.0
    for j in range(count):
        trial = record[p + (j + 1) * record.width + TRIAL]
        square += trial * trial
    return ti.sqrt(square)


@ti.func
def sweep(phase, model: ti.template(), x: ti.template()):
    """Sweep over all groups; `speed` is changed."""
    D, L = ti.static(x.speed.width, x.record.width)
    rho_, trial_ = ti.static(L + RHO, L + TRIAL)
    N = model.joint_rows + model.contacts * model.dim
    start = target_offset(phase, N)
    target, trace = ti.static(View(x.phase_target, start), View(x.trace, phase * model.sweeps * N))
    impulse = ti.static(View(x.impulse, phase * N))
    for i in range(N):
        impulse[i] = 0.0
    for s in range(model.sweeps):
        for k in range(count_groups(phase, model.joint_rows, x.order)):
            i, size, kind, block = group_at(k, phase, model, x.first, x.order)
            p, now = i * L, s * N + i
            va, vb = velocities_of(block, model, D)
            for j in range(size):
                q = p + j * L
                miss = dot(D, x.record, q, x.speed, va) + dot(D, x.record, q + D, x.speed, vb) - target[i + j]
                x.record[q + trial_] = impulse[i + j] - x.record[q + rho_] * miss
            factor = 1.0
            free = is_held(phase, kind, block, model.joint_rows, x.held)
            if kind == NORMAL and not free and x.record[p + trial_] <= 0.0:
                factor = 0.0
            if kind == FRICTION and not free:
                bound = x.limit[block - model.joint_rows] * impulse[i - 1]
                length = trial_length(x.record, p, size)
                if length >= bound:
                    factor = bound / ti.max(length, 1e-30)
            for j in range(size):
                q = p + j * L
                after = factor * x.record[q + trial_]
                change = after - impulse[i + j]
                add_multiple(D, x.speed, va, change, x.record, q + 2 * D)
                add_multiple(D, x.speed, vb, change, x.record, q + 3 * D)
                impulse[i + j] = after
                trace[now + j] = after


@ti.func
def undo(q, before, after, va, vb, x: ti.template()):
    """Restore the velocities before the update of a row, from its impulses before and after."""
    D, L = ti.static(x.speed.width, x.record.width)
    x.record[q + L + TRIAL] = before
    x.record[q + L + CHANGE] = after - before
    add_multiple(D, x.speed, va, before - after, x.record, q + 2 * D)
    add_multiple(D, x.speed, vb, before - after, x.record, q + 3 * D)


@ti.func
def adj_apply(q, k, va, vb, target: ti.template(), adj_impulse: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Compute u - t, lambda^ and adj_lambda' of row k, and subtract adj_Delta from adj_lambda."""
    D, L = ti.static(x.speed.width, x.record.width)
    rho_, trial_, miss_, g_ = ti.static(L + RHO, L + TRIAL, L + MISS, L + G)
    miss = dot(D, x.record, q, x.speed, va) + dot(D, x.record, q + D, x.speed, vb)
    miss -= target[k]
    x.record[q + miss_] = miss
    x.record[q + trial_] = x.record[q + trial_] - x.record[q + rho_] * miss
    projection = dot(D, x.record, q + 2 * D, adj_x.speed, va)
    projection += dot(D, x.record, q + 3 * D, adj_x.speed, vb)
    x.record[q + g_] = adj_impulse[k] + projection
    adj_impulse[k] = -projection


@ti.func
def adj_slide(
    p, size, c, i, impulse, adj_impulse: ti.template(), model: ti.template(), x: ti.template(), adj_x: ti.template()
):
    """Return factor, e.adj_lambda' and |lambda^| of friction by the `impulse` of the normal row i, which may stick."""
    factor, across, length = 1.0, 0.0, 1.0
    bound = x.limit[c] * impulse
    if bound <= 0.0 or trial_length(x.record, p, size) > bound * model.beyond:
        length = ti.max(trial_length(x.record, p, size), 1e-30)
        factor = bound / length
        for j in range(size):
            end = p + (j + 1) * x.record.width
            across += x.record[end + TRIAL] / length * x.record[end + G]
        adj_x.limit[c] = adj_x.limit[c] + across * impulse
        adj_impulse[i] = adj_impulse[i] + across * x.limit[c]
    return factor, across, length


@ti.func
def add_record_adjoints(q, adj_u, va, vb, x: ti.template(), adj_x: ti.template()):
    """Add the adjoints of J and P of a row."""
    D, L = ti.static(x.speed.width, x.record.width)
    add_multiple(D, adj_x.record, q, adj_u, x.speed, va)
    add_multiple(D, adj_x.record, q + D, adj_u, x.speed, vb)
    add_multiple(D, adj_x.record, q + 2 * D, x.record[q + L + CHANGE], adj_x.speed, va)
    add_multiple(D, adj_x.record, q + 3 * D, x.record[q + L + CHANGE], adj_x.speed, vb)


@ti.func
def adj_sweep(phase, model: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Reverse the sweeps; `speed` and `adj_speed` are those after the sweeps on entry, those before on return."""
    D, L = ti.static(x.speed.width, x.record.width)
    rho_, trial_, miss_, g_ = ti.static(L + RHO, L + TRIAL, L + MISS, L + G)
    N, count = model.joint_rows + model.contacts * model.dim, count_groups(phase, model.joint_rows, x.order)
    start = target_offset(phase, N)
    target, trace = ti.static(View(x.phase_target, start), View(x.trace, phase * model.sweeps * N))
    adj_impulse, adj_target = ti.static(View(adj_x.impulse, phase * N), View(adj_x.phase_target, start))
    for back in range(model.sweeps):
        s = model.sweeps - 1 - back
        for k_back in range(count):
            i, size, kind, block = group_at(count - 1 - k_back, phase, model, x.first, x.order)
            p, now = i * L, s * N + i
            va, vb = velocities_of(block, model, D)
            for j in range(size):
                before = 0.0
                if s > 0:
                    before = trace[now - N + j]
                undo(p + j * L, before, trace[now + j], va, vb, x)
            for j in range(size):
                adj_apply(p + j * L, i + j, va, vb, target, adj_impulse, x, adj_x)

            factor, across, length = 1.0, 0.0, 1.0  # adj_lambda^ = factor (g - e across)
            free = is_held(phase, kind, block, model.joint_rows, x.held)
            if kind == NORMAL and not free and trace[now] <= 0.0:  # as found, whatever the rounding of lambda^
                factor = 0.0
            if kind == FRICTION and not free:
                c = block - model.joint_rows
                factor, across, length = adj_slide(p, size, c, i - 1, trace[now - 1], adj_impulse, model, x, adj_x)

            for j in range(size):
                q, g = p + j * L, i + j
                adj_trial = factor * (x.record[q + g_] - x.record[q + trial_] / length * across)
                u = -x.record[q + rho_] * adj_trial
                adj_impulse[g] = adj_impulse[g] + adj_trial
                adj_target[i + j] = adj_target[i + j] - u
                adj_x.record[q + rho_] = adj_x.record[q + rho_] - x.record[q + miss_] * adj_trial
                x.record[q + g_] = u
                add_record_adjoints(q, u, va, vb, x, adj_x)
            for j in range(size):
                q = p + j * L
                add_multiple(D, adj_x.speed, va, x.record[q + g_], x.record, q)
                add_multiple(D, adj_x.speed, vb, x.record[q + g_], x.record, q + D)
