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

Source: Catto 2005, Iterative Dynamics with Temporal Coherence; the adjoint is that of these very sweeps, converged or
not.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import islands
from .islands import IMPACT, REST

JOINT, NORMAL, FRICTION = range(3)
"""Projection of the rows of a group."""

WHOLE_STEP, BEFORE_IMPACT, AT_IMPACT, AFTER_IMPACT = range(4)
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
    def is_reached(block, bodies: ti.template(), first: ti.template(), first0) -> bool:
        """Return True if an impact of the step reaches a row of this block."""
        return island.block_impact(block, bodies, first, first0) >= 0

    @ti.func
    def sort_contacts(
        active: ti.template(), active0, first: ti.template(), first0, bodies: ti.template(), NJ, M,
        order: ti.template(), order0,
    ):  # fmt: skip
        count = 0
        for kind in range(COUNTS):  # at rest and not reached, at rest and reached, impacts
            for c in range(M):
                state = active[active0 + c]
                belongs = state == IMPACT
                if kind < COUNTS - 1:
                    belongs = state == REST and is_reached(NJ + c, bodies, first, first0) == (kind == 1)
                if belongs:
                    order[order0 + COUNTS + count] = c
                    count += 1
            order[order0 + COUNTS - 1 - kind] = count

    @ti.func
    def row_at(k, NJ, order: ti.template(), order0):
        """Return the number of the k-th active row, and that of its block."""
        i, block = k, k
        if k >= NJ:
            c = order[order0 + COUNTS + (k - NJ) // dim]
            i, block = NJ + c * dim + (k - NJ) % dim, NJ + c
        return i, block

    @ti.func
    def group_at(k, phase, bodies: ti.template(), first: ti.template(), first0, NJ, order: ti.template(), order0):
        """Return, for the k-th group of a phase: first row, number of rows, projection, and block."""
        i, count, kind, block = k, 1, JOINT, k
        if k >= NJ:
            skipped = 0
            if phase != WHOLE_STEP:
                skipped = order[order0 + 2]
            c = order[order0 + COUNTS + skipped + (k - NJ) // 2]
            i, kind, block = NJ + c * dim, NORMAL, NJ + c
            if (k - NJ) % 2 == 1:
                i, count, kind = i + 1, dim - 1, FRICTION
        elif phase != WHOLE_STEP and not is_reached(k, bodies, first, first0):
            count = 0
        return i, count, kind, block

    @ti.func
    def count_groups(phase, NJ, order: ti.template(), order0):
        """Return the number of groups in a phase."""
        contacts = order[order0 + 1]
        if phase > BEFORE_IMPACT:
            contacts = order[order0]
        if phase != WHOLE_STEP:
            contacts -= order[order0 + 2]
        return NJ + 2 * contacts

    @ti.func
    def prepare(
        row: ti.template(), row0, moment: ti.template(), moment0, im: ti.template(), im0,
        spin_change: ti.template(), spin_change0, bodies: ti.template(), NJ, order: ti.template(), order0,
        record: ti.template(), record0,
    ):  # fmt: skip
        """Compute J, P and rho of all active rows."""
        for k in range(NJ + order[order0] * dim):
            i, block = row_at(k, NJ, order, order0)
            p, d = record0 + i * L, real(0.0)
            for side in range(2):
                body, sign, r = bodies[2 * block + side], real(1.0 - 2.0 * side), row0 + i * W
                J, P, m = p + side * D, p + (2 + side) * D, (2 * i + side) * spins
                inverse = real(0.0)
                if body >= 0:
                    inverse = im[im0 + body]
                for e in range(dim):
                    record[J + e] = sign * row[r + e]
                    record[P + e] = sign * inverse * row[r + e]
                for e in range(spins):
                    record[J + dim + e] = sign * moment[moment0 + m + e]
                    record[P + dim + e] = sign * spin_change[spin_change0 + m + e]
                d += dot(record, J, record, P)
            record[p + rho_] = 1.0 / d
        if ti.static(dim == 3):
            for k in range(order[order0]):
                p = record0 + (NJ + order[order0 + COUNTS + k] * dim + 1) * L + rho_
                rho = 2.0 / (1.0 / record[p] + 1.0 / record[p + L])
                record[p] = rho
                record[p + L] = rho

    @ti.func
    def adj_prepare(
        row: ti.template(), row0, im: ti.template(), im0, bodies: ti.template(), NJ, order: ti.template(), order0,
        record: ti.template(), record0, adj_record: ti.template(), adj_record0,
        adj_row: ti.template(), adj_row0, adj_moment: ti.template(), adj_moment0, adj_im: ti.template(), adj_im0,
        adj_spin_change: ti.template(), adj_spin_change0,
    ):  # fmt: skip
        for k in range(NJ + order[order0] * dim):
            i, block = row_at(k, NJ, order, order0)
            p, gp = record0 + i * L, adj_record0 + i * L
            adj_rho, rho = adj_record[gp + rho_], record[p + rho_]
            if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
                if k >= NJ and (k - NJ) % dim > 0:
                    other = 3 - 2 * ((k - NJ) % dim)  # rho of both friction rows depends on both d
                    adj_rho = 0.5 * (adj_rho + adj_record[gp + other * L + rho_])
            adj_d = -rho * rho * adj_rho
            for side in range(2):
                body, sign, r, g = bodies[2 * block + side], real(1.0 - 2.0 * side), i * W, (2 * i + side) * spins
                J, P = side * D, (2 + side) * D
                add(adj_record, gp + J, adj_d, record, p + P)
                add(adj_record, gp + P, adj_d, record, p + J)
                inverse = real(0.0)
                if body >= 0:
                    inverse = im[im0 + body]
                    projection = real(0.0)
                    for e in range(dim):
                        projection += sign * row[row0 + r + e] * adj_record[gp + P + e]
                    adj_im[adj_im0 + body] = adj_im[adj_im0 + body] + projection
                for e in range(dim):
                    change = sign * (adj_record[gp + J + e] + inverse * adj_record[gp + P + e])
                    adj_row[adj_row0 + r + e] = adj_row[adj_row0 + r + e] + change
                for e in range(spins):
                    m_k, t_k = adj_moment0 + g + e, adj_spin_change0 + g + e
                    adj_moment[m_k] = adj_moment[m_k] + sign * adj_record[gp + J + dim + e]
                    adj_spin_change[t_k] = adj_spin_change[t_k] + sign * adj_record[gp + P + dim + e]

    @ti.func
    def mark_held(
        NJ, limit: ti.template(), mu0, impulse: ti.template(), impulse0, order: ti.template(), order0,
        held: ti.template(), held0,
    ):  # fmt: skip
        """Set held [M] from a step without an impact: NORMAL if the contact presses, FRICTION if it sticks, too."""
        for k in range(order[order0 + 2], order[order0 + 1]):
            c = order[order0 + COUNTS + k]
            i, square = impulse0 + NJ + c * dim, real(0.0)
            for j in range(1, dim):
                square += impulse[i + j] * impulse[i + j]
            held[held0 + c] = 0.0
            if impulse[i] > 0:
                held[held0 + c] = ti.select(ti.sqrt(square) * beyond < limit[mu0 + c] * impulse[i], FRICTION, NORMAL)

    @ti.func
    def is_held(phase, kind, block, NJ, held: ti.template(), held0) -> bool:
        found = False
        if phase == BEFORE_IMPACT and kind != JOINT:
            found = held[held0 + block - NJ] >= kind
        return found

    @ti.func
    def trial_length(record: ti.template(), p, count) -> real:
        """Return |lambda^| of a group."""
        square = real(0.0)
        for j in range(count):
            square += record[p + j * L + trial_] * record[p + j * L + trial_]
        return ti.sqrt(square)

    @ti.func
    def sweep(
        phase, target: ti.template(), t0, limit: ti.template(), mu0, bodies: ti.template(),
        first: ti.template(), first0, held: ti.template(), held0, NJ, M, n, sweeps, order: ti.template(), order0,
        record: ti.template(), record0, speed: ti.template(), speed0, trace: ti.template(), trace0,
        impulse: ti.template(), impulse0,
    ):  # fmt: skip
        """Sweep over all groups; `speed` is changed."""
        N = NJ + M * dim
        for i in range(N):
            impulse[impulse0 + i] = 0.0
        for s in range(sweeps):
            for k in range(count_groups(phase, NJ, order, order0)):
                i, size, kind, block = group_at(k, phase, bodies, first, first0, NJ, order, order0)
                p, now = record0 + i * L, trace0 + s * N + i
                va, vb = speed0 + bodies[2 * block] * D, speed0 + slot(bodies[2 * block + 1], n) * D
                for j in range(size):
                    q = p + j * L
                    miss = dot(record, q, speed, va) + dot(record, q + D, speed, vb) - target[t0 + i + j]
                    record[q + trial_] = impulse[impulse0 + i + j] - record[q + rho_] * miss
                factor = real(1.0)
                free = is_held(phase, kind, block, NJ, held, held0)
                if kind == NORMAL and not free and record[p + trial_] <= 0.0:
                    factor = 0.0
                if kind == FRICTION and not free:
                    bound = limit[mu0 + block - NJ] * impulse[impulse0 + i - 1]
                    length = trial_length(record, p, size)
                    if length >= bound:
                        factor = bound / ti.max(length, 1e-30)
                for j in range(size):
                    q = p + j * L
                    after = factor * record[q + trial_]
                    change = after - impulse[impulse0 + i + j]
                    add(speed, va, change, record, q + 2 * D)
                    add(speed, vb, change, record, q + 3 * D)
                    impulse[impulse0 + i + j] = after
                    trace[now + j] = after

    @ti.func
    def adj_sweep(
        phase, target: ti.template(), t0, limit: ti.template(), mu0, bodies: ti.template(),
        first: ti.template(), first0, held: ti.template(), held0, NJ, M, n, sweeps, order: ti.template(), order0,
        record: ti.template(), record0, speed: ti.template(), speed0, trace: ti.template(), trace0,
        adj_record: ti.template(), adj_record0, adj_speed: ti.template(), adj_speed0,
        adj_impulse: ti.template(), adj_impulse0, adj_target: ti.template(), adj_t0,
        adj_limit: ti.template(), adj_mu0,
    ):  # fmt: skip
        """Reverse the sweeps; `speed` and `adj_speed` are those after the sweeps on entry, those before on return."""
        N, count = NJ + M * dim, count_groups(phase, NJ, order, order0)
        for back in range(sweeps):
            s = sweeps - 1 - back
            for k_back in range(count):
                i, size, kind, block = group_at(count - 1 - k_back, phase, bodies, first, first0, NJ, order, order0)
                p, gp, now = record0 + i * L, adj_record0 + i * L, trace0 + s * N + i
                va, vb = bodies[2 * block] * D, slot(bodies[2 * block + 1], n) * D
                for j in range(size):
                    q, before = p + j * L, real(0.0)
                    if s > 0:
                        before = trace[now - N + j]
                    change = trace[now + j] - before
                    record[q + trial_] = before
                    record[q + change_] = change
                    add(speed, speed0 + va, -change, record, q + 2 * D)
                    add(speed, speed0 + vb, -change, record, q + 3 * D)
                for j in range(size):
                    q = p + j * L
                    miss = dot(record, q, speed, speed0 + va) + dot(record, q + D, speed, speed0 + vb)
                    miss -= target[t0 + i + j]
                    record[q + miss_] = miss
                    record[q + trial_] = record[q + trial_] - record[q + rho_] * miss
                    projection = dot(record, q + 2 * D, adj_speed, adj_speed0 + va)
                    projection += dot(record, q + 3 * D, adj_speed, adj_speed0 + vb)
                    record[q + g_] = adj_impulse[adj_impulse0 + i + j] + projection
                    adj_impulse[adj_impulse0 + i + j] = -projection

                factor, across, length = real(1.0), real(0.0), real(1.0)  # adj_lambda^ = factor (g - e across)
                free = is_held(phase, kind, block, NJ, held, held0)
                if kind == NORMAL and not free and record[p + trial_] <= 0.0:
                    factor = 0.0
                if kind == FRICTION and not free:
                    c = block - NJ
                    bound = limit[mu0 + c] * trace[now - 1]
                    if bound <= 0.0 or trial_length(record, p, size) > bound * beyond:
                        length = ti.max(trial_length(record, p, size), 1e-30)
                        factor = bound / length
                        for j in range(size):
                            across += record[p + j * L + trial_] / length * record[p + j * L + g_]
                        adj_limit[adj_mu0 + c] = adj_limit[adj_mu0 + c] + across * trace[now - 1]
                        normal = adj_impulse0 + i - 1
                        adj_impulse[normal] = adj_impulse[normal] + across * limit[mu0 + c]

                for j in range(size):
                    q, gq, g = p + j * L, gp + j * L, adj_impulse0 + i + j
                    adj_trial = factor * (record[q + g_] - record[q + trial_] / length * across)
                    u = -record[q + rho_] * adj_trial
                    adj_impulse[g] = adj_impulse[g] + adj_trial
                    adj_target[adj_t0 + i + j] = adj_target[adj_t0 + i + j] - u
                    adj_record[gq + rho_] = adj_record[gq + rho_] - record[q + miss_] * adj_trial
                    record[q + g_] = u
                    add(adj_record, gq, u, speed, speed0 + va)
                    add(adj_record, gq + D, u, speed, speed0 + vb)
                    add(adj_record, gq + 2 * D, record[q + change_], adj_speed, adj_speed0 + va)
                    add(adj_record, gq + 3 * D, record[q + change_], adj_speed, adj_speed0 + vb)
                for j in range(size):
                    q = p + j * L
                    add(adj_speed, adj_speed0 + va, record[q + g_], record, q)
                    add(adj_speed, adj_speed0 + vb, record[q + g_], record, q + D)

    return SimpleNamespace(
        sort_contacts=sort_contacts, mark_held=mark_held, row_at=row_at, is_reached=is_reached, prepare=prepare,
        adj_prepare=adj_prepare, sweep=sweep, adj_sweep=adj_sweep, dot=dot, add=add, slot=slot,
    )  # fmt: skip
