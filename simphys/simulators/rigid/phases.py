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
time, expressed at the time of the first impact. At the first impact itself d = 0 for variational steps, and d = 1/2 for
semi-implicit Euler, whose velocities are those of the middle of a step.

For semi-implicit Euler in space, dV includes the gyroscopic torque at the start (kick.py). After the impact, the spin
of V_2 applies instead: (1 - s) (G(w_2) - G(w)) is added, with G(w) the change of a spin w in a step.

A single solve instead of V_1 to V_3 would give one impulse per step to the supports and joints of a body. Derivatives
by the time of impact would then miss the change of these forces, for steps of any length.

Impulses act at times t_1 ... t_3 after the forces, but velocities change as if all acted with the forces. Positions
therefore need the correction `shift`, the sum of t P lambda,

    t_1 = (s - 1) b      t_2 = s h - b, for contacts with an impact tau      t_3 = s b          b = h / 2 or 0

with b the time from the start of the step to the forces. Constraint impulses act together with the forces that they
balance: in the middle of their phase or at its beginning.

Adjoint: the phases in reverse. At u = 0 the target counts as the constant 0. A row of two bodies has the s of
body a, or that of b if no impact reaches a.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import kick, rows, sweeps
from .islands import IMPACT, REST
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, WHOLE_STEP

PHASES = 4


@functools.cache
@no_type_check
def loops(real: Any, dim: int, gyroscopic: bool) -> SimpleNamespace:
    """Return `solve_phases` and its adjoint, see rows.py and sweeps.py; gyroscopic: kicks include that torque.

    Workspace that the adjoint needs again: order, held [M], record, trace [PHASES sweeps, N], phase_target [2, N],
    delta_v [n + 1, D] (dV), and result [PHASES, n, D] (velocities after each phase).
    """
    at, f, spins = rows.functions(real, dim), sweeps.loops(real, dim), kick.functions(real, dim, gyroscopic)
    has_torque = gyroscopic and dim == 3
    D, L = dim + at.spins, sweeps.record_length(dim)

    @ti.func
    def count_phases(order: ti.template(), order0):
        return ti.select(order[order0] > order[order0 + 1], PHASES, 1)

    @ti.func
    def row_velocity(record: ti.template(), p, speed: ti.template(), speed0, a, b) -> real:
        """Return J V of a row; a, b are the indices of its bodies in `speed`."""
        return f.dot(record, p, speed, speed0 + a * D) + f.dot(record, p + D, speed, speed0 + b * D)

    @ti.func
    def target_offset(phase, N):
        """Return the offset of the targets of a phase."""
        return ti.select(BEFORE_IMPACT <= phase <= AT_IMPACT, N, 0)

    @ti.func
    def has_own_target(i, NJ, active: ti.template(), active0, held: ti.template(), held0) -> bool:
        """Return True if a row has its own target before an impact."""
        found = False
        if i >= NJ:
            c = (i - NJ) // dim
            found = active[active0 + c] == REST and held[held0 + c] == 0
        return found

    @ti.func
    def timing_body(block, bodies: ti.template(), first: ti.template(), first0):
        """Return the body whose fraction of the step applies to a row."""
        a, b = bodies[2 * block], bodies[2 * block + 1]
        found = a
        if b >= 0 and first[first0 + a] < 0:
            found = b
        return found

    @ti.func
    def is_impact_row(i, NJ, active: ti.template(), active0) -> bool:
        found = False
        if i >= NJ:
            found = active[active0 + (i - NJ) // dim] == IMPACT
        return found

    @ti.func
    def impulse_time(phase, s: real, h: real, before: real, is_impact: bool, tau: real) -> real:
        """Time at which an impulse acts."""
        t = s * before
        if phase < AT_IMPACT:
            t = (s - 1.0) * before
        if phase == AT_IMPACT:
            t = ti.select(is_impact, tau, s * h - before)
        return t

    @ti.func
    def solve_phases(
        h, before, row: ti.template(), row0, target: ti.template(), t0, limit: ti.template(), mu0,
        bounce: ti.template(), bounce0, im: ti.template(), im0, spin_change: ti.template(), spin_change0,
        moment: ti.template(), moment0, time: ti.template(), time0, fraction: ti.template(), fraction0,
        twist: ti.template(), twist0, v: ti.template(), v0, w: ti.template(), w0,
        q: ti.template(), q0, inertia: ti.template(), inertia0,
        active: ti.template(), active0, first: ti.template(), first0, bodies: ti.template(), NJ, M, n, count,
        order: ti.template(), order0, held: ti.template(), held0, record: ti.template(), record0,
        speed: ti.template(), speed0,
        trace: ti.template(), trace0, phase_target: ti.template(), phase_target0, delta_v: ti.template(), delta_v0,
        result: ti.template(), result0, impulse: ti.template(), impulse0, new: ti.template(), new0,
        shift: ti.template(), shift0,
    ):  # fmt: skip
        N = NJ + M * dim
        f.sort_contacts(active, active0, first, first0, bodies, NJ, M, order, order0)
        f.prepare(
            row, row0, moment, moment0, im, im0, spin_change, spin_change0, bodies, NJ, order, order0, record, record0
        )  # fmt: skip
        phase_count = count_phases(order, order0)
        for e in range(D):
            speed[speed0 + n * D + e] = 0.0
            delta_v[delta_v0 + n * D + e] = 0.0
        for b in range(n):
            for e in range(dim):
                delta_v[delta_v0 + b * D + e] = twist[twist0 + b * D + e] - v[v0 + b * dim + e]
            for e in range(at.spins):
                k = b * D + dim + e
                delta_v[delta_v0 + k] = twist[twist0 + k] - w[w0 + b * at.spins + e]
        for i in range(N):
            phase_target[phase_target0 + i] = target[t0 + i]
            phase_target[phase_target0 + N + i] = 0.0
        for phase in range(phase_count):
            if ti.static(has_torque):
                for b in range(n):
                    if phase == AFTER_IMPACT and first[first0 + b] >= 0:
                        pose, J = at.rotation_of(q, q0, b), at.spin_of(inertia, inertia0, b)
                        change = at.spin(0.0)
                        for then in range(2):
                            spin = at.spin_of(w, w0, b)
                            if then == 1:
                                spin = at.angular(speed, speed0, b)
                            change += (2 * then - 1) * spins.gyrate(spin, pose, J, h)
                        at.add_twist(speed, speed0, b, at.vec(0.0), (1.0 - fraction[fraction0 + b]) * change)
            for e in range(n * D):
                remainder, reached = 1.0 - fraction[fraction0 + e // D], first[first0 + e // D] >= 0
                if phase == WHOLE_STEP or (phase == BEFORE_IMPACT and reached):
                    speed[speed0 + e] = twist[twist0 + e]
                if reached and phase == BEFORE_IMPACT:
                    speed[speed0 + e] = speed[speed0 + e] - remainder * delta_v[delta_v0 + e]
                if phase == AFTER_IMPACT:
                    speed[speed0 + e] = speed[speed0 + e] + remainder * delta_v[delta_v0 + e]
            if phase == AT_IMPACT:
                for k in range(order[order0 + 1] * dim, order[order0] * dim):
                    i, block = f.row_at(NJ + k, NJ, order, order0)
                    a, b = bodies[2 * block], f.slot(bodies[2 * block + 1], n)
                    body = timing_body(block, bodies, first, first0)
                    d = time[time0 + block - NJ] / h + 0.5 - fraction[fraction0 + body]
                    lag = d * row_velocity(record, record0 + i * L, delta_v, delta_v0, a, b)
                    rebound = real(0.0)
                    if k % dim == 0:
                        u = row_velocity(record, record0 + i * L, speed, speed0, a, b) + lag
                        rebound = ti.max(0.0, -bounce[bounce0 + block - NJ] * u)
                    phase_target[phase_target0 + N + i] = rebound - lag
            f.sweep(
                phase, phase_target, phase_target0 + target_offset(phase, N), limit, mu0, bodies, first, first0,
                held, held0, NJ, M, n, count, order, order0, record, record0, speed, speed0,
                trace, trace0 + phase * count * N, impulse, impulse0 + phase * N,
            )  # fmt: skip
            if phase == WHOLE_STEP and phase_count > 1:
                f.mark_held(NJ, limit, mu0, impulse, impulse0, order, order0, held, held0)
                for k in range(NJ + order[order0 + 1] * dim):
                    i, block = f.row_at(k, NJ, order, order0)
                    if f.is_reached(block, bodies, first, first0):
                        impulse[impulse0 + i] = 0.0  # it only served to find the held contacts
                        if has_own_target(i, NJ, active, active0, held, held0):
                            phase_target[phase_target0 + N + i] = target[t0 + i]
            for e in range(n * D):
                result[result0 + phase * n * D + e] = speed[speed0 + e]
        for i in range(phase_count * N, PHASES * N):
            impulse[impulse0 + i] = 0.0
        for e in range(n * D):
            new[new0 + e] = speed[speed0 + e]
            shift[shift0 + e] = 0.0
        if phase_count > 1:
            for k in range(NJ + order[order0] * dim):
                i, block = f.row_at(k, NJ, order, order0)
                s, tau = fraction[fraction0 + timing_body(block, bodies, first, first0)], real(0.0)
                is_met = is_impact_row(i, NJ, active, active0)
                if is_met:
                    tau = time[time0 + block - NJ]
                total = real(0.0)
                for phase in range(PHASES):
                    total += impulse_time(phase, s, h, before, is_met, tau) * impulse[impulse0 + phase * N + i]
                for side in range(2):
                    body = bodies[2 * block + side]
                    if body >= 0:
                        f.add(shift, shift0 + body * D, total, record, record0 + i * L + (2 + side) * D)

    @ti.func
    def adj_solve_phases(
        h, before, row: ti.template(), row0, limit: ti.template(), mu0, bounce: ti.template(), bounce0,
        im: ti.template(), im0, time: ti.template(), time0, fraction: ti.template(), fraction0,
        w: ti.template(), w0, q: ti.template(), q0, inertia: ti.template(), inertia0,
        active: ti.template(), active0, first: ti.template(), first0, bodies: ti.template(), NJ, M, n, count,
        order: ti.template(), order0, held: ti.template(), held0, record: ti.template(), record0,
        speed: ti.template(), speed0,
        trace: ti.template(), trace0, phase_target: ti.template(), phase_target0, delta_v: ti.template(), delta_v0,
        result: ti.template(), result0, impulse: ti.template(), impulse0,
        adj_record: ti.template(), adj_record0,
        adj_speed: ti.template(), adj_speed0, adj_phase_target: ti.template(), adj_phase_target0,
        adj_delta_v: ti.template(), adj_delta_v0, adj_impulse: ti.template(), adj_impulse0,
        adj_new: ti.template(), adj_new0, adj_shift: ti.template(), adj_shift0,
        adj_row: ti.template(), adj_row0, adj_target: ti.template(), adj_t0, adj_limit: ti.template(), adj_mu0,
        adj_bounce: ti.template(), adj_bounce0, adj_im: ti.template(), adj_im0,
        adj_spin_change: ti.template(), adj_spin_change0, adj_moment: ti.template(), adj_moment0,
        adj_time: ti.template(), adj_time0, adj_fraction: ti.template(), adj_fraction0,
        adj_twist: ti.template(), adj_twist0, adj_v: ti.template(), adj_v0, adj_w: ti.template(), adj_w0,
        adj_theta: ti.template(), adj_theta0, adj_inertia: ti.template(), adj_inertia0,
    ):  # fmt: skip
        """Reverse all phases. adj_impulse and the workspace (adj_record, adj_speed, adj_phase_target, ...) change."""
        N, phase_count = NJ + M * dim, count_phases(order, order0)
        for k in range(NJ + order[order0] * dim):
            i, block = f.row_at(k, NJ, order, order0)
            for e in range(L):
                adj_record[adj_record0 + i * L + e] = 0.0
        for i in range(2 * N):
            adj_phase_target[adj_phase_target0 + i] = 0.0
        for e in range((n + 1) * D):
            adj_delta_v[adj_delta_v0 + e] = 0.0
        for e in range(D):
            adj_speed[adj_speed0 + n * D + e] = 0.0
        for e in range(n * D):
            adj_speed[adj_speed0 + e] = adj_new[adj_new0 + e]

        if phase_count > 1:
            for k in range(NJ + order[order0] * dim):
                i, block = f.row_at(k, NJ, order, order0)
                body, tau = timing_body(block, bodies, first, first0), real(0.0)
                is_met = is_impact_row(i, NJ, active, active0)
                s, total, adj_total = fraction[fraction0 + body], real(0.0), real(0.0)
                if is_met:
                    tau = time[time0 + block - NJ]
                for side in range(2):
                    if bodies[2 * block + side] >= 0:
                        P_offset = record0 + i * L + (2 + side) * D
                        shift_offset = adj_shift0 + bodies[2 * block + side] * D
                        adj_total += f.dot(record, P_offset, adj_shift, shift_offset)
                for phase in range(PHASES):
                    t, after = impulse_time(phase, s, h, before, is_met, tau), impulse[impulse0 + phase * N + i]
                    total += t * after
                    impulse_k = adj_impulse0 + phase * N + i
                    adj_impulse[impulse_k] = adj_impulse[impulse_k] + t * adj_total
                    dt_ds = before
                    if phase == AT_IMPACT:
                        dt_ds = ti.select(is_met, 0.0, h)
                        if is_met:
                            c = adj_time0 + block - NJ
                            adj_time[c] = adj_time[c] + after * adj_total
                    adj_fraction[adj_fraction0 + body] = adj_fraction[adj_fraction0 + body] + dt_ds * after * adj_total
                for side in range(2):
                    if bodies[2 * block + side] >= 0:
                        P_offset, shift_offset = i * L + (2 + side) * D, adj_shift0 + bodies[2 * block + side] * D
                        f.add(adj_record, adj_record0 + P_offset, total, adj_shift, shift_offset)

        if phase_count > 1:
            for k in range(NJ + order[order0 + 1] * dim):
                i, block = f.row_at(k, NJ, order, order0)
                if f.is_reached(block, bodies, first, first0):
                    adj_impulse[adj_impulse0 + i] = 0.0  # these impulses are discarded

        for back in range(phase_count):
            phase = phase_count - 1 - back
            for e in range(n * D):
                speed[speed0 + e] = result[result0 + phase * n * D + e]
            f.adj_sweep(
                phase, phase_target, phase_target0 + target_offset(phase, N), limit, mu0, bodies, first, first0,
                held, held0, NJ, M, n, count, order, order0, record, record0, speed, speed0,
                trace, trace0 + phase * count * N, adj_record, adj_record0, adj_speed, adj_speed0,
                adj_impulse, adj_impulse0 + phase * N, adj_phase_target, adj_phase_target0 + target_offset(phase, N),
                adj_limit, adj_mu0,
            )  # fmt: skip
            if phase == AT_IMPACT:
                for k in range(order[order0 + 1] * dim, order[order0] * dim):
                    i, block = f.row_at(NJ + k, NJ, order, order0)
                    c, p, gp = block - NJ, record0 + i * L, adj_record0 + i * L
                    a, b = bodies[2 * block], f.slot(bodies[2 * block + 1], n)
                    body = timing_body(block, bodies, first, first0)
                    d = time[time0 + c] / h + 0.5 - fraction[fraction0 + body]
                    gain = row_velocity(record, p, delta_v, delta_v0, a, b)
                    g = adj_phase_target[adj_phase_target0 + N + i]
                    u, g_u = row_velocity(record, p, speed, speed0, a, b) + d * gain, real(0.0)
                    if k % dim == 0 and -bounce[bounce0 + c] * u > 0:
                        g_u = -bounce[bounce0 + c] * g
                        adj_bounce[adj_bounce0 + c] = adj_bounce[adj_bounce0 + c] - u * g
                    g_d, g_gain = gain * (g_u - g), d * (g_u - g)
                    adj_time[adj_time0 + c] = adj_time[adj_time0 + c] + g_d / h
                    adj_fraction[adj_fraction0 + body] = adj_fraction[adj_fraction0 + body] - g_d
                    for side in range(2):
                        J_offset, body_offset = side * D, (a + side * (b - a)) * D
                        f.add(adj_record, gp + J_offset, g_gain, delta_v, delta_v0 + body_offset)
                        f.add(adj_delta_v, adj_delta_v0 + body_offset, g_gain, record, p + J_offset)
                        f.add(adj_record, gp + J_offset, g_u, speed, speed0 + body_offset)
                        f.add(adj_speed, adj_speed0 + body_offset, g_u, record, p + J_offset)
            for e in range(n * D):
                g, sign = adj_speed[adj_speed0 + e], real(0.0)
                if phase == AFTER_IMPACT:
                    sign = 1.0
                if phase == BEFORE_IMPACT and first[first0 + e // D] >= 0:
                    sign = -1.0
                if phase == WHOLE_STEP or sign < 0:
                    adj_twist[adj_twist0 + e] = adj_twist[adj_twist0 + e] + g
                if sign < 0:
                    adj_speed[adj_speed0 + e] = 0.0
                g_fraction, remainder = sign * delta_v[delta_v0 + e] * g, 1.0 - fraction[fraction0 + e // D]
                adj_delta_v[adj_delta_v0 + e] = adj_delta_v[adj_delta_v0 + e] + sign * remainder * g
                adj_fraction[adj_fraction0 + e // D] = adj_fraction[adj_fraction0 + e // D] - g_fraction
            if ti.static(has_torque):
                for b in range(n):
                    if phase == AFTER_IMPACT and first[first0 + b] >= 0:
                        remainder, g = 1.0 - fraction[fraction0 + b], at.angular(adj_speed, adj_speed0, b)
                        pose, J = at.rotation_of(q, q0, b), at.spin_of(inertia, inertia0, b)
                        for then in range(2):
                            spin, sign = at.spin_of(w, w0, b), real(-1.0)
                            if then == 1:
                                spin, sign = at.angular(result, result0 + AT_IMPACT * n * D, b), real(1.0)
                            g_w, g_theta, g_J = spins.adj_gyrate(spin, pose, J, h, sign * remainder * g)
                            if then == 1:
                                at.add_twist(adj_speed, adj_speed0, b, at.vec(0.0), g_w)
                            else:
                                at.add_spin_of(adj_w, adj_w0, b, g_w)
                            at.add_spin_of(adj_theta, adj_theta0, b, g_theta)
                            at.add_spin_of(adj_inertia, adj_inertia0, b, g_J)
                            g_fraction = sign * spins.gyrate(spin, pose, J, h).dot(g)
                            adj_fraction[adj_fraction0 + b] = adj_fraction[adj_fraction0 + b] - g_fraction

        for i in range(N):
            g_target = adj_phase_target[adj_phase_target0 + i]
            if has_own_target(i, NJ, active, active0, held, held0):
                g_target += adj_phase_target[adj_phase_target0 + N + i]
            adj_target[adj_t0 + i] = adj_target[adj_t0 + i] + g_target
        for b in range(n):
            for e in range(dim):
                g = adj_delta_v[adj_delta_v0 + b * D + e]
                adj_twist[adj_twist0 + b * D + e] = adj_twist[adj_twist0 + b * D + e] + g
                adj_v[adj_v0 + b * dim + e] = adj_v[adj_v0 + b * dim + e] - g
            for e in range(at.spins):
                k, s = b * D + dim + e, b * at.spins + e
                adj_twist[adj_twist0 + k] = adj_twist[adj_twist0 + k] + adj_delta_v[adj_delta_v0 + k]
                adj_w[adj_w0 + s] = adj_w[adj_w0 + s] - adj_delta_v[adj_delta_v0 + k]
        f.adj_prepare(
            row, row0, im, im0, bodies, NJ, order, order0, record, record0, adj_record, adj_record0,
            adj_row, adj_row0, adj_moment, adj_moment0, adj_im, adj_im0, adj_spin_change, adj_spin_change0,
        )  # fmt: skip

    return SimpleNamespace(solve_phases=solve_phases, adj=adj_solve_phases)
