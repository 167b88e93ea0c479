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

The tangent is in sweeps_tangent.py.

Source: Catto 2005, Iterative Dynamics with Temporal Coherence; the adjoint is that of these very sweeps, converged or
not.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.records import View
from simphys.autograd.kernels.runtime import ti

from . import islands
from .islands import IMPACT, REST

JOINT, NORMAL, FRICTION = range(3)
"""Projection of the rows of a group."""

PHASES = 4
WHOLE_STEP, BEFORE_IMPACT, AT_IMPACT, AFTER_IMPACT = range(PHASES)
"""Phases of a step: the whole step without an impact; or before the impact, at the impact, and after it."""


def record_length(dim: int) -> int:
    """Return how many numbers the record of a row has."""
    return 4 * (3 if dim == 2 else 6) + 5


COUNTS = 3
"""Number of counts at the beginning of `order`."""

EDGE = (1e-7, 1e-5)
"""Relative distance to the cone's edge within which a row still sticks, in double and in single precision."""


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the parts of a solve, see rows.py, with workspace that the adjoint needs again:

    order [M + COUNTS]: three counts (active candidates; those at rest; those at rest that no impact reaches), then the
    active candidates in the order of the solve. record [N, RECORD]: for each row J and P of both bodies with their
    signs, rho, and temporary values. speed [n + 1, D]: current velocities, the world's last. trace [sweeps, N]:
    impulses after each sweep. Rows of inactive candidates are never read.

    An update concerns a group of rows: a joint's row, a contact's normal row, or its rows of friction.
    """
    spins = 1 if dim == 2 else 3
    beyond = 1 + EDGE[real == ti.f32]
    D, W, L = dim + spins, dim + 2 * spins, record_length(dim)
    island = islands.loops(real)
    rho_, trial_, miss_, change_, g_ = (4 * D + k for k in range(5))  # offsets in a record after J_a, J_b, P_a, P_b

    @ti.func
    def dot(x: ti.template(), x0, y: ti.template(), y0) -> real:
        total = real(0.0)
        for e in range(D):
            total += x[x0 + e] * y[y0 + e]
        return total

    @ti.func
    def add(x: ti.template(), x0, factor: real, y: ti.template(), y0):
        """Compute x += factor y."""
        for e in range(D):
            x[x0 + e] = x[x0 + e] + factor * y[y0 + e]

    @ti.func
    def slot(body, n):
        """Return the index of the velocity of a body, or of the world."""
        return body if body >= 0 else n

    @ti.func
    def is_reached(block, bodies: ti.template(), first: ti.template()) -> bool:
        """Return True if an impact of the step reaches a row of this block."""
        return island.block_impact(block, bodies, first) >= 0

    @ti.func
    def entry(order: ti.template(), k):
        """Return an entry of `order`, which is an array of numbers, as an integer."""
        return ti.cast(order[k], ti.i32)

    @ti.func
    def sort_contacts(model: ti.template(), x: ti.template()):
        count = 0
        for kind in range(COUNTS):  # at rest and not reached, at rest and reached, impacts
            for c in range(model.contacts):
                state = x.active[c]
                belongs = state == IMPACT
                if kind < COUNTS - 1:
                    belongs = state == REST and is_reached(model.joint_rows + c, model.row_bodies, x.first) == (
                        kind == 1
                    )
                if belongs:
                    x.order[COUNTS + count] = c
                    count += 1
            x.order[COUNTS - 1 - kind] = count

    @ti.func
    def row_at(k, NJ, order: ti.template()):
        """Return the number of the k-th active row, and that of its block."""
        i, block = k, k
        if k >= NJ:
            c = entry(order, COUNTS + (k - NJ) // dim)
            i, block = NJ + c * dim + (k - NJ) % dim, NJ + c
        return i, block

    @ti.func
    def group_at(k, phase, model: ti.template(), first: ti.template(), order: ti.template()):
        """Return, for the k-th group of a phase: first row, number of rows, projection, and block."""
        i, count, kind, block = k, 1, JOINT, k
        if k >= model.joint_rows:
            skipped = 0
            if phase != WHOLE_STEP:
                skipped = entry(order, 2)
            c = entry(order, COUNTS + skipped + (k - model.joint_rows) // 2)
            i, kind, block = model.joint_rows + c * dim, NORMAL, model.joint_rows + c
            if (k - model.joint_rows) % 2 == 1:
                i, count, kind = i + 1, dim - 1, FRICTION
        elif phase != WHOLE_STEP and not is_reached(k, model.row_bodies, first):
            count = 0
        return i, count, kind, block

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
    def prepare(model: ti.template(), x: ti.template()):
        """Compute J, P and rho of all active rows."""
        for k in range(model.joint_rows + entry(x.order, 0) * dim):
            i, block = row_at(k, model.joint_rows, x.order)
            p, d = i * L, real(0.0)
            for side in range(2):
                body, sign, r = model.row_bodies[2 * block + side], real(1.0 - 2.0 * side), i * W
                J, P, m = p + side * D, p + (2 + side) * D, (2 * i + side) * spins
                inverse = real(0.0)
                if body >= 0:
                    inverse = x.inverse_mass[body]
                for e in range(dim):
                    x.record[J + e] = sign * x.row[r + e]
                    x.record[P + e] = sign * inverse * x.row[r + e]
                for e in range(spins):
                    x.record[J + dim + e] = sign * x.moment[m + e]
                    x.record[P + dim + e] = sign * x.spin_change[m + e]
                d += dot(x.record, J, x.record, P)
            x.record[p + rho_] = 1.0 / d
        if ti.static(dim == 3):
            for k in range(entry(x.order, 0)):
                p = (model.joint_rows + entry(x.order, COUNTS + k) * dim + 1) * L + rho_
                rho = 2.0 / (1.0 / x.record[p] + 1.0 / x.record[p + L])
                x.record[p] = rho
                x.record[p + L] = rho

    @ti.func
    def adj_prepare(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for k in range(model.joint_rows + entry(x.order, 0) * dim):
            i, block = row_at(k, model.joint_rows, x.order)
            p = i * L
            adj_rho, rho = adj_x.record[p + rho_], x.record[p + rho_]
            if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
                if k >= model.joint_rows and (k - model.joint_rows) % dim > 0:
                    other = 3 - 2 * ((k - model.joint_rows) % dim)  # rho of both friction rows depends on both d
                    adj_rho = 0.5 * (adj_rho + adj_x.record[p + other * L + rho_])
            adj_d = -rho * rho * adj_rho
            for side in range(2):
                body, sign, r, g = (
                    model.row_bodies[2 * block + side],
                    real(1.0 - 2.0 * side),
                    i * W,
                    (2 * i + side) * spins,
                )
                J, P = side * D, (2 + side) * D
                add(adj_x.record, p + J, adj_d, x.record, p + P)
                add(adj_x.record, p + P, adj_d, x.record, p + J)
                inverse = real(0.0)
                if body >= 0:
                    inverse = x.inverse_mass[body]
                    projection = real(0.0)
                    for e in range(dim):
                        projection += sign * x.row[r + e] * adj_x.record[p + P + e]
                    adj_x.inverse_mass[body] = adj_x.inverse_mass[body] + projection
                for e in range(dim):
                    change = sign * (adj_x.record[p + J + e] + inverse * adj_x.record[p + P + e])
                    adj_x.row[r + e] = adj_x.row[r + e] + change
                for e in range(spins):
                    k_e = g + e
                    adj_x.moment[k_e] = adj_x.moment[k_e] + sign * adj_x.record[p + J + dim + e]
                    adj_x.spin_change[k_e] = adj_x.spin_change[k_e] + sign * adj_x.record[p + P + dim + e]

    @ti.func
    def mark_held(model: ti.template(), x: ti.template()):
        """Set held [M] from a step without an impact: NORMAL if the contact presses, FRICTION if it sticks, too."""
        for k in range(entry(x.order, 2), entry(x.order, 1)):
            c = entry(x.order, COUNTS + k)
            i, square = model.joint_rows + c * dim, real(0.0)
            for j in range(1, dim):
                square += x.impulse[i + j] * x.impulse[i + j]
            x.held[c] = 0.0
            if x.impulse[i] > 0:
                x.held[c] = ti.select(ti.sqrt(square) * beyond < x.limit[c] * x.impulse[i], FRICTION, NORMAL)

    @ti.func
    def is_held(phase, kind, block, NJ, held: ti.template()) -> bool:
        found = False
        if phase == BEFORE_IMPACT and kind != JOINT:
            found = held[block - NJ] >= kind
        return found

    @ti.func
    def trial_length(record: ti.template(), p, count) -> real:
        """Return |lambda^| of a group."""
        square = real(0.0)
        for j in range(count):
            square += record[p + j * L + trial_] * record[p + j * L + trial_]
        return ti.sqrt(square)

    @ti.func
    def target_offset(phase, N):
        """Return the offset of the targets of a phase."""
        return ti.select(BEFORE_IMPACT <= phase <= AT_IMPACT, N, 0)

    @ti.func
    def sweep(phase, model: ti.template(), x: ti.template()):
        """Sweep over all groups; `speed` is changed."""
        N = model.joint_rows + model.contacts * dim
        start = target_offset(phase, N)
        target, trace = ti.static(View(x.phase_target, start), View(x.trace, phase * model.sweeps * N))
        impulse = ti.static(View(x.impulse, phase * N))
        for i in range(N):
            impulse[i] = 0.0
        for s in range(model.sweeps):
            for k in range(count_groups(phase, model.joint_rows, x.order)):
                i, size, kind, block = group_at(k, phase, model, x.first, x.order)
                p, now = i * L, s * N + i
                va, vb = model.row_bodies[2 * block] * D, slot(model.row_bodies[2 * block + 1], model.bodies) * D
                for j in range(size):
                    q = p + j * L
                    miss = dot(x.record, q, x.speed, va) + dot(x.record, q + D, x.speed, vb) - target[i + j]
                    x.record[q + trial_] = impulse[i + j] - x.record[q + rho_] * miss
                factor = real(1.0)
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
                    add(x.speed, va, change, x.record, q + 2 * D)
                    add(x.speed, vb, change, x.record, q + 3 * D)
                    impulse[i + j] = after
                    trace[now + j] = after

    @ti.func
    def adj_sweep(phase, model: ti.template(), x: ti.template(), adj_x: ti.template()):
        """Reverse the sweeps; `speed` and `adj_speed` are those after the sweeps on entry, those before on return."""
        N, count = model.joint_rows + model.contacts * dim, count_groups(phase, model.joint_rows, x.order)
        start = target_offset(phase, N)
        target, trace = ti.static(View(x.phase_target, start), View(x.trace, phase * model.sweeps * N))
        adj_impulse = ti.static(View(adj_x.impulse, phase * N))
        adj_target = ti.static(View(adj_x.phase_target, start))
        for back in range(model.sweeps):
            s = model.sweeps - 1 - back
            for k_back in range(count):
                i, size, kind, block = group_at(count - 1 - k_back, phase, model, x.first, x.order)
                p, now = i * L, s * N + i
                va, vb = model.row_bodies[2 * block] * D, slot(model.row_bodies[2 * block + 1], model.bodies) * D
                for j in range(size):
                    q, before = p + j * L, real(0.0)
                    if s > 0:
                        before = trace[now - N + j]
                    change = trace[now + j] - before
                    x.record[q + trial_] = before
                    x.record[q + change_] = change
                    add(x.speed, va, -change, x.record, q + 2 * D)
                    add(x.speed, vb, -change, x.record, q + 3 * D)
                for j in range(size):
                    q = p + j * L
                    miss = dot(x.record, q, x.speed, va) + dot(x.record, q + D, x.speed, vb)
                    miss -= target[i + j]
                    x.record[q + miss_] = miss
                    x.record[q + trial_] = x.record[q + trial_] - x.record[q + rho_] * miss
                    projection = dot(x.record, q + 2 * D, adj_x.speed, va)
                    projection += dot(x.record, q + 3 * D, adj_x.speed, vb)
                    x.record[q + g_] = adj_impulse[i + j] + projection
                    adj_impulse[i + j] = -projection

                factor, across, length = real(1.0), real(0.0), real(1.0)  # adj_lambda^ = factor (g - e across)
                free = is_held(phase, kind, block, model.joint_rows, x.held)
                if kind == NORMAL and not free and trace[now] <= 0.0:  # as found, whatever the rounding of lambda^
                    factor = 0.0
                if kind == FRICTION and not free:
                    c = block - model.joint_rows
                    bound = x.limit[c] * trace[now - 1]
                    if bound <= 0.0 or trial_length(x.record, p, size) > bound * beyond:
                        length = ti.max(trial_length(x.record, p, size), 1e-30)
                        factor = bound / length
                        for j in range(size):
                            across += x.record[p + j * L + trial_] / length * x.record[p + j * L + g_]
                        adj_x.limit[c] = adj_x.limit[c] + across * trace[now - 1]
                        normal = i - 1
                        adj_impulse[normal] = adj_impulse[normal] + across * x.limit[c]

                for j in range(size):
                    q, g = p + j * L, i + j
                    adj_trial = factor * (x.record[q + g_] - x.record[q + trial_] / length * across)
                    u = -x.record[q + rho_] * adj_trial
                    adj_impulse[g] = adj_impulse[g] + adj_trial
                    adj_target[i + j] = adj_target[i + j] - u
                    adj_x.record[q + rho_] = adj_x.record[q + rho_] - x.record[q + miss_] * adj_trial
                    x.record[q + g_] = u
                    add(adj_x.record, q, u, x.speed, va)
                    add(adj_x.record, q + D, u, x.speed, vb)
                    add(adj_x.record, q + 2 * D, x.record[q + change_], adj_x.speed, va)
                    add(adj_x.record, q + 3 * D, x.record[q + change_], adj_x.speed, vb)
                for j in range(size):
                    q = p + j * L
                    add(adj_x.speed, va, x.record[q + g_], x.record, q)
                    add(adj_x.speed, vb, x.record[q + g_], x.record, q + D)

    return SimpleNamespace(
        sort_contacts=sort_contacts, entry=entry,
        mark_held=mark_held, row_at=row_at, is_reached=is_reached, prepare=prepare,
        adj_prepare=adj_prepare, sweep=sweep, adj_sweep=adj_sweep, dot=dot, add=add, slot=slot, group_at=group_at,
        count_groups=count_groups, is_held=is_held, trial_length=trial_length, target_offset=target_offset,
        rho_=rho_, trial_=trial_, beyond=beyond,
    )  # fmt: skip
