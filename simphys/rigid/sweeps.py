"""Impulses of all rows (rows.py) by projected Gauss-Seidel: a fixed number of sweeps over the rows in their order.

With J = (l, m_a), (-l, -m_b), an impulse lambda of a row changes the velocities V of its two bodies by lambda P,
P = M^-1 J^T, M their masses and inertias (mobility.py), and its own u = J V by lambda d, d = J P. All lambda begin at
0. A row, or both rows of friction of a contact, are updated by what makes u the target t, then projected:

    lambda^ = lambda - rho (u - t)                                          rho = 1 / d, friction (dim - 1) / sum d
    joint      lambda' = lambda^
    normal     lambda' = max(0, lambda^)
    friction   lambda' = lambda^ if |lambda^| < mu lambda_n (it sticks), else mu lambda_n lambda^ / |lambda^| (slides)
    V' = V + P (lambda' - lambda)

In the end s = sum tau P lambda over the rows of contacts is the shift that drift.py takes from positions, as an impulse
acts at its time of impact tau in the step, see meeting.py.

Both rows of friction in space take one rho, so that the circular cone has no preferred directions. At the kinks: where
lambda^ = 0 a normal row counts as separated; at the cone's edge, within EDGE, friction counts as sticking: the corners
of a box that stands can push against each other up to their limits, and it stands all the same.

Adjoint, backward over the updates with Delta = lambda' - lambda, V = V' - P Delta rebuilt on the way, lambda kept:

    adj_Delta = P.adj_V'      adj_P += Delta adj_V'      adj_lambda' += adj_Delta      adj_lambda = -adj_Delta
    adj_lambda^ = adj_lambda' where free, 0 where separated; sliding, with e = lambda^ / |lambda^|:
        adj_lambda^ = mu lambda_n / |lambda^| (adj_lambda' - e e.adj_lambda'),   adj_(mu lambda_n) += e.adj_lambda'
    adj_lambda += adj_lambda^      adj_u = -rho adj_lambda^      adj_t += rho adj_lambda^
    adj_rho -= (u - t) adj_lambda^      adj_V = adj_V' + J^T adj_u      adj_J += adj_u V

begun with what comes through s: adj_lambda += tau P.adj_s, adj_tau = lambda P.adj_s, adj_P += tau lambda adj_s.

Source: Catto 2005, Iterative Dynamics with Temporal Coherence; the adjoint is that of these very sweeps, converged or
not.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from ..autograd import runtime
from ..autograd.runtime import ti

JOINT, NORMAL, FRICTION = range(3)
"""How the rows of a group are projected."""


def record_length(dim: int) -> int:
    """Numbers that are kept of a row while it is solved for."""
    return 4 * (3 if dim == 2 else 6) + 5


EDGE = (1e-7, 1e-5)
"""How near to the cone's edge a row still sticks, relatively, in double and in single precision."""


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """`solve` and `adj_solve`, see rows.py; these are work space that the adjoint needs again:

    order [M + 1], the candidates that count behind their number; record [N, RECORD], of each row J and P of both bodies
    with their signs, rho, and numbers of the moment; speed [n + 1, D], velocities while they change, the world's last;
    trace [sweeps, N], the impulses of all sweeps. Rows of candidates that do not count are never read.

    An update concerns a group of rows: a joint's row, a contact's normal row, or its rows of friction.
    """
    spins = 1 if dim == 2 else 3
    beyond = 1 + EDGE[runtime.real_dtype() == np.float32]
    D, W, L = dim + spins, dim + 2 * spins, record_length(dim)
    rho_, trial_, miss_, change_, g_ = (4 * D + k for k in range(5))  # places in a record behind J_a, J_b, P_a, P_b

    @ti.func
    def dot(x: ti.template(), x0, y: ti.template(), y0) -> real:
        total = real(0.0)
        for e in range(D):
            total += x[x0 + e] * y[y0 + e]
        return total

    @ti.func
    def add(x: ti.template(), x0, factor: real, y: ti.template(), y0):
        """x += factor y."""
        for e in range(D):
            x[x0 + e] = x[x0 + e] + factor * y[y0 + e]

    @ti.func
    def slot(body, n):
        """Where the velocity of a body, or of the world, lies."""
        return body if body >= 0 else n

    @ti.func
    def row_of(k, NJ, order: ti.template(), order0):
        """The number of the k-th row that counts, and that of its bodies."""
        i, block = k, k
        if k >= NJ:
            c = order[order0 + 1 + (k - NJ) // dim]
            i, block = NJ + c * dim + (k - NJ) % dim, NJ + c
        return i, block

    @ti.func
    def group_of(k, NJ, order: ti.template(), order0):
        """Of the k-th group: its first row, how many, how they are projected, and the candidate."""
        i, count, kind, c = k, 1, JOINT, 0
        if k >= NJ:
            c = order[order0 + 1 + (k - NJ) // 2]
            i, kind = NJ + c * dim, NORMAL
            if (k - NJ) % 2 == 1:
                i, count, kind = i + 1, dim - 1, FRICTION
        return i, count, kind, c

    @ti.func
    def prepare(
        row: ti.template(), r, im: ti.template(), im0, turned: ti.template(), t, a, b, record: ti.template(), p
    ):
        """J, P and 1/d of a row."""
        d = real(0.0)
        for side in range(2):
            body, sign = a, real(1.0)
            if side == 1:
                body, sign = b, real(-1.0)
            J, P, m = p + side * D, p + (2 + side) * D, r + dim + side * spins
            inverse = real(0.0)
            if body >= 0:
                inverse = im[im0 + body]
            for e in range(dim):
                record[J + e] = sign * row[r + e]
                record[P + e] = sign * inverse * row[r + e]
            for e in range(spins):
                record[J + dim + e] = sign * row[m + e]
                record[P + dim + e] = sign * turned[t + side * spins + e]
            d += dot(record, J, record, P)
        record[p + rho_] = 1.0 / d

    @ti.func
    def adj_prepare(
        row: ti.template(), r, im: ti.template(), im0, a, b, record: ti.template(), p,
        adj_d: real, adj_record: ti.template(), gp, adj_row: ti.template(), gr, adj_im: ti.template(), adj_im0,
        adj_turned: ti.template(), gt,
    ):  # fmt: skip
        for side in range(2):
            body, sign = a, real(1.0)
            if side == 1:
                body, sign = b, real(-1.0)
            J, P, gm, g = side * D, (2 + side) * D, gr + dim + side * spins, gt + side * spins
            add(adj_record, gp + J, adj_d, record, p + P)
            add(adj_record, gp + P, adj_d, record, p + J)
            inverse = real(0.0)
            if body >= 0:
                inverse = im[im0 + body]
                along = real(0.0)
                for e in range(dim):
                    along += sign * row[r + e] * adj_record[gp + P + e]
                adj_im[adj_im0 + body] = adj_im[adj_im0 + body] + along
            for e in range(dim):
                adj_row[gr + e] = adj_row[gr + e] + sign * (adj_record[gp + J + e] + inverse * adj_record[gp + P + e])
            for e in range(spins):
                adj_row[gm + e] = adj_row[gm + e] + sign * adj_record[gp + J + dim + e]
                adj_turned[g + e] = adj_turned[g + e] + sign * adj_record[gp + P + dim + e]

    @ti.func
    def length_of(record: ti.template(), p, count) -> real:
        """|lambda^| of a group."""
        square = real(0.0)
        for j in range(count):
            square += record[p + j * L + trial_] * record[p + j * L + trial_]
        return ti.sqrt(square)

    @ti.func
    def solve(
        row: ti.template(), row0, target: ti.template(), t0, limit: ti.template(), mu0, im: ti.template(), im0,
        turned: ti.template(), turned0, twist: ti.template(), twist0, active: ti.template(), active0,
        time: ti.template(), time0, bodies: ti.template(), NJ, M, n, sweeps,
        order: ti.template(), order0, record: ti.template(), record0, speed: ti.template(), speed0,
        trace: ti.template(), trace0, impulse: ti.template(), impulse0, new: ti.template(), new0,
        shift: ti.template(), shift0,
    ):  # fmt: skip
        N = NJ + M * dim
        count = 0
        for c in range(M):
            if active[active0 + c] > 0.5:
                count += 1
                order[order0 + count] = c
        order[order0] = count
        for e in range(D):
            speed[speed0 + n * D + e] = 0.0
        for e in range(n * D):
            speed[speed0 + e] = twist[twist0 + e]
        for i in range(N):
            impulse[impulse0 + i] = 0.0

        for k in range(NJ + count * dim):
            i, block = row_of(k, NJ, order, order0)
            a, b = bodies[2 * block], bodies[2 * block + 1]
            prepare(row, row0 + i * W, im, im0, turned, turned0 + 2 * i * spins, a, b, record, record0 + i * L)
        if ti.static(dim == 3):
            for k in range(count):
                p = record0 + (NJ + order[order0 + 1 + k] * dim + 1) * L + rho_
                rho = 2.0 / (1.0 / record[p] + 1.0 / record[p + L])
                record[p] = rho
                record[p + L] = rho

        for s in range(sweeps):
            for k in range(NJ + 2 * count):
                i, size, kind, c = group_of(k, NJ, order, order0)
                block = k if kind == JOINT else NJ + c
                p, now = record0 + i * L, trace0 + s * N + i
                va, vb = speed0 + bodies[2 * block] * D, speed0 + slot(bodies[2 * block + 1], n) * D
                for j in range(size):
                    q = p + j * L
                    miss = dot(record, q, speed, va) + dot(record, q + D, speed, vb) - target[t0 + i + j]
                    record[q + trial_] = impulse[impulse0 + i + j] - record[q + rho_] * miss
                factor = real(1.0)
                if kind == NORMAL and record[p + trial_] <= 0.0:
                    factor = 0.0
                if kind == FRICTION:
                    bound, length = limit[mu0 + c] * impulse[impulse0 + i - 1], length_of(record, p, size)
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
        for e in range(n * D):
            new[new0 + e] = speed[speed0 + e]
            shift[shift0 + e] = 0.0
        for k in range(count * dim):
            i, block = row_of(NJ + k, NJ, order, order0)
            part = time[time0 + block - NJ] * impulse[impulse0 + i]
            for side in range(2):
                body = bodies[2 * block + side]
                if body >= 0:
                    add(shift, shift0 + body * D, part, record, record0 + i * L + (2 + side) * D)

    @ti.func
    def adj_solve(
        row: ti.template(), row0, target: ti.template(), t0, limit: ti.template(), mu0, im: ti.template(), im0,
        time: ti.template(), time0, bodies: ti.template(), NJ, M, n, sweeps,
        order: ti.template(), order0, record: ti.template(), record0, speed: ti.template(), speed0,
        trace: ti.template(), trace0, adj_record: ti.template(), adj_record0, adj_speed: ti.template(), adj_speed0,
        adj_impulse: ti.template(), adj_impulse0, adj_new: ti.template(), adj_new0,
        adj_shift: ti.template(), adj_shift0,
        adj_row: ti.template(), adj_row0, adj_target: ti.template(), adj_t0, adj_limit: ti.template(), adj_mu0,
        adj_im: ti.template(), adj_im0, adj_turned: ti.template(), adj_turned0,
        adj_twist: ti.template(), adj_twist0, adj_time: ti.template(), adj_time0,
    ):  # fmt: skip
        """`speed` holds the new velocities on entry. adj_record, adj_speed: work space; adj_impulse is used up."""
        N = NJ + M * dim
        count = order[order0]
        for k in range(NJ + count * dim):
            i, block = row_of(k, NJ, order, order0)
            for e in range(L):
                adj_record[adj_record0 + i * L + e] = 0.0
        for e in range(D):
            adj_speed[adj_speed0 + n * D + e] = 0.0
        for e in range(n * D):
            adj_speed[adj_speed0 + e] = adj_new[adj_new0 + e]

        for k in range(count * dim):
            i, block = row_of(NJ + k, NJ, order, order0)
            c, after, along = block - NJ, trace[trace0 + (sweeps - 1) * N + i], real(0.0)
            for side in range(2):
                body, P = bodies[2 * block + side], (2 + side) * D
                if body >= 0:
                    along += dot(record, record0 + i * L + P, adj_shift, adj_shift0 + body * D)
                    part = time[time0 + c] * after
                    add(adj_record, adj_record0 + i * L + P, part, adj_shift, adj_shift0 + body * D)
            adj_impulse[adj_impulse0 + i] = adj_impulse[adj_impulse0 + i] + time[time0 + c] * along
            adj_time[adj_time0 + c] = adj_time[adj_time0 + c] + after * along

        for back in range(sweeps):
            s = sweeps - 1 - back
            for k_back in range(NJ + 2 * count):
                k = NJ + 2 * count - 1 - k_back
                i, size, kind, c = group_of(k, NJ, order, order0)
                block = k if kind == JOINT else NJ + c
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
                    along = dot(record, q + 2 * D, adj_speed, adj_speed0 + va)
                    along += dot(record, q + 3 * D, adj_speed, adj_speed0 + vb)
                    record[q + g_] = adj_impulse[adj_impulse0 + i + j] + along
                    adj_impulse[adj_impulse0 + i + j] = -along

                factor, across, length = real(1.0), real(0.0), real(1.0)  # adj_lambda^ = factor (g - e across)
                if kind == NORMAL and record[p + trial_] <= 0.0:
                    factor = 0.0
                if kind == FRICTION:
                    bound = limit[mu0 + c] * trace[now - 1]
                    if bound <= 0.0 or length_of(record, p, size) > bound * beyond:
                        length = ti.max(length_of(record, p, size), 1e-30)
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

        for k in range(NJ + count * dim):
            i, block = row_of(k, NJ, order, order0)
            p, gp = record0 + i * L, adj_record0 + i * L
            adj_rho, rho = adj_record[gp + rho_], record[p + rho_]
            if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
                if k >= NJ and (k - NJ) % dim > 0:
                    other = 3 - 2 * ((k - NJ) % dim)  # rho of both rows of friction comes from both d
                    adj_rho = 0.5 * (adj_rho + adj_record[gp + other * L + rho_])
            adj_prepare(
                row, row0 + i * W, im, im0, bodies[2 * block], bodies[2 * block + 1], record, p,
                -rho * rho * adj_rho, adj_record, gp, adj_row, adj_row0 + i * W, adj_im, adj_im0,
                adj_turned, adj_turned0 + 2 * i * spins,
            )  # fmt: skip
        for e in range(n * D):
            adj_twist[adj_twist0 + e] = adj_twist[adj_twist0 + e] + adj_speed[adj_speed0 + e]

    return SimpleNamespace(solve=solve, adj_solve=adj_solve)
