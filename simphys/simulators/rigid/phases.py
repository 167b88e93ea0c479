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

Adjoint: the phases in reverse; the tangent is in phases_tangent.py. At u = 0 the target counts as the constant 0. A row
of two bodies has the s of body a, or that of b if no impact reaches a.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import rows, sweeps
from .islands import IMPACT, REST
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, PHASES, WHOLE_STEP


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return `solve_phases` and its adjoint, see arrays.py and sweeps.py.

    Workspace that the adjoint needs again: order, held [M], record, trace [PHASES sweeps, N], phase_target [2, N],
    delta_v [n + 1, D] (dV), and result [PHASES, n, D] (velocities after each phase).
    """
    at, f = rows.functions(real, dim), sweeps.loops(real, dim)
    D, L = dim + at.spins, sweeps.record_length(dim)

    @ti.func
    def count_phases(order: ti.template()):
        return ti.select(f.entry(order, 0) > f.entry(order, 1), PHASES, 1)

    @ti.func
    def row_velocity(record: ti.template(), p, speed: ti.template(), a, b) -> real:
        """Return J V of a row; a, b are the indices of its bodies in `speed`."""
        return f.dot(record, p, speed, a * D) + f.dot(record, p + D, speed, b * D)

    @ti.func
    def has_own_target(i, NJ, active: ti.template(), held: ti.template()) -> bool:
        """Return True if a row has its own target before an impact."""
        found = False
        if i >= NJ:
            c = (i - NJ) // dim
            found = active[c] == REST and held[c] == 0
        return found

    @ti.func
    def timing_body(block, bodies: ti.template(), first: ti.template()):
        """Return the body whose fraction of the step applies to a row."""
        a, b = bodies[2 * block], bodies[2 * block + 1]
        found = a
        if b >= 0 and first[a] < 0:
            found = b
        return found

    @ti.func
    def is_impact_row(i, NJ, active: ti.template()) -> bool:
        found = False
        if i >= NJ:
            found = active[(i - NJ) // dim] == IMPACT
        return found

    @ti.func
    def impulse_time(phase, s: real, h: real, is_impact: bool, tau: real) -> real:
        """Time at which an impulse acts."""
        t = s * h / 2
        if phase < AT_IMPACT:
            t = (s - 1.0) * h / 2
        if phase == AT_IMPACT:
            t = ti.select(is_impact, tau, (s - 0.5) * h)
        return t

    @ti.func
    def solve_phases(model: ti.template(), x: ti.template()):
        h = model.dt
        n, NJ, N = model.bodies, model.joint_rows, model.joint_rows + model.contacts * dim
        f.sort_contacts(model, x)
        f.prepare(model, x)
        phase_count = count_phases(x.order)
        for e in range(D):
            x.speed[n * D + e] = 0.0
            x.delta_v[n * D + e] = 0.0
        for b in range(n):
            for e in range(dim):
                x.delta_v[b * D + e] = x.twist[b * D + e] - x.velocity[b * dim + e]
            for e in range(at.spins):
                k = b * D + dim + e
                x.delta_v[k] = x.twist[k] - x.angular_velocity[b * at.spins + e]
        for i in range(N):
            x.phase_target[i] = x.target[i]
            x.phase_target[N + i] = 0.0
        for phase in range(phase_count):
            for e in range(n * D):
                remainder, reached = 1.0 - x.fraction[e // D], x.first[e // D] >= 0
                if phase == WHOLE_STEP or (phase == BEFORE_IMPACT and reached):
                    x.speed[e] = x.twist[e]
                if reached and phase == BEFORE_IMPACT:
                    x.speed[e] = x.speed[e] - remainder * x.delta_v[e]
                if phase == AFTER_IMPACT:
                    x.speed[e] = x.speed[e] + remainder * x.delta_v[e]
            if phase == AT_IMPACT:
                for k in range(f.entry(x.order, 1) * dim, f.entry(x.order, 0) * dim):
                    i, block = f.row_at(NJ + k, NJ, x.order)
                    a, b = model.row_bodies[2 * block], f.slot(model.row_bodies[2 * block + 1], n)
                    body = timing_body(block, model.row_bodies, x.first)
                    d = x.time[block - NJ] / h + 0.5 - x.fraction[body]
                    lag = d * row_velocity(x.record, i * L, x.delta_v, a, b)
                    rebound = real(0.0)
                    if k % dim == 0:
                        u = row_velocity(x.record, i * L, x.speed, a, b) + lag
                        rebound = ti.max(0.0, -x.bounce[block - NJ] * u)
                    x.phase_target[N + i] = rebound - lag
            f.sweep(phase, model, x)
            if phase == WHOLE_STEP and phase_count > 1:
                f.mark_held(model, x)
                for k in range(NJ + f.entry(x.order, 1) * dim):
                    i, block = f.row_at(k, NJ, x.order)
                    if f.is_reached(block, model.row_bodies, x.first):
                        x.impulse[i] = 0.0  # it only served to find the held contacts
                        if has_own_target(i, NJ, x.active, x.held):
                            x.phase_target[N + i] = x.target[i]
            for e in range(n * D):
                x.result[phase * n * D + e] = x.speed[e]
        for i in range(phase_count * N, PHASES * N):
            x.impulse[i] = 0.0
        for e in range(n * D):
            x.new[e] = x.speed[e]
            x.shift[e] = 0.0
        if phase_count > 1:
            for k in range(NJ + f.entry(x.order, 0) * dim):
                i, block = f.row_at(k, NJ, x.order)
                s, tau = x.fraction[timing_body(block, model.row_bodies, x.first)], real(0.0)
                is_met = is_impact_row(i, NJ, x.active)
                if is_met:
                    tau = x.time[block - NJ]
                total = real(0.0)
                for phase in range(PHASES):
                    total += impulse_time(phase, s, h, is_met, tau) * x.impulse[phase * N + i]
                for side in range(2):
                    body = model.row_bodies[2 * block + side]
                    if body >= 0:
                        f.add(x.shift, body * D, total, x.record, i * L + (2 + side) * D)

    @ti.func
    def adj_solve_phases(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        """Reverse all phases; the adjoint of the solver changes, in which that of the impulses is given."""
        h, n, NJ = model.dt, model.bodies, model.joint_rows
        N, phase_count = NJ + model.contacts * dim, count_phases(x.order)
        for k in range(NJ + f.entry(x.order, 0) * dim):
            i, block = f.row_at(k, NJ, x.order)
            for e in range(L):
                adj_x.record[i * L + e] = 0.0
        for i in range(2 * N):
            adj_x.phase_target[i] = 0.0
        for e in range((n + 1) * D):
            adj_x.delta_v[e] = 0.0
        for e in range(D):
            x.speed[n * D + e] = 0.0
            adj_x.speed[n * D + e] = 0.0
        for e in range(n * D):
            adj_x.speed[e] = adj_x.new[e]

        if phase_count > 1:
            for k in range(NJ + f.entry(x.order, 0) * dim):
                i, block = f.row_at(k, NJ, x.order)
                body, tau = timing_body(block, model.row_bodies, x.first), real(0.0)
                is_met = is_impact_row(i, NJ, x.active)
                s, total, adj_total = x.fraction[body], real(0.0), real(0.0)
                if is_met:
                    tau = x.time[block - NJ]
                for side in range(2):
                    if model.row_bodies[2 * block + side] >= 0:
                        P_offset = i * L + (2 + side) * D
                        shift_offset = model.row_bodies[2 * block + side] * D
                        adj_total += f.dot(x.record, P_offset, adj_x.shift, shift_offset)
                for phase in range(PHASES):
                    t, after = impulse_time(phase, s, h, is_met, tau), x.impulse[phase * N + i]
                    total += t * after
                    impulse_k = phase * N + i
                    adj_x.impulse[impulse_k] = adj_x.impulse[impulse_k] + t * adj_total
                    dt_ds = h / 2
                    if phase == AT_IMPACT:
                        dt_ds = ti.select(is_met, 0.0, h)
                        if is_met:
                            c = block - NJ
                            adj_x.time[c] = adj_x.time[c] + after * adj_total
                    adj_x.fraction[body] = adj_x.fraction[body] + dt_ds * after * adj_total
                for side in range(2):
                    if model.row_bodies[2 * block + side] >= 0:
                        P_offset, shift_offset = i * L + (2 + side) * D, model.row_bodies[2 * block + side] * D
                        f.add(adj_x.record, P_offset, total, adj_x.shift, shift_offset)

        if phase_count > 1:
            for k in range(NJ + f.entry(x.order, 1) * dim):
                i, block = f.row_at(k, NJ, x.order)
                if f.is_reached(block, model.row_bodies, x.first):
                    adj_x.impulse[i] = 0.0  # these impulses are discarded

        for back in range(phase_count):
            phase = phase_count - 1 - back
            for e in range(n * D):
                x.speed[e] = x.result[phase * n * D + e]
            f.adj_sweep(phase, model, x, adj_x)
            if phase == AT_IMPACT:
                for k in range(f.entry(x.order, 1) * dim, f.entry(x.order, 0) * dim):
                    i, block = f.row_at(NJ + k, NJ, x.order)
                    c, p = block - NJ, i * L
                    a, b = model.row_bodies[2 * block], f.slot(model.row_bodies[2 * block + 1], n)
                    body = timing_body(block, model.row_bodies, x.first)
                    d = x.time[c] / h + 0.5 - x.fraction[body]
                    gain = row_velocity(x.record, p, x.delta_v, a, b)
                    g = adj_x.phase_target[N + i]
                    u, g_u = row_velocity(x.record, p, x.speed, a, b) + d * gain, real(0.0)
                    if k % dim == 0 and -x.bounce[c] * u > 0:
                        g_u = -x.bounce[c] * g
                        adj_x.bounce[c] = adj_x.bounce[c] - u * g
                    g_d, g_gain = gain * (g_u - g), d * (g_u - g)
                    adj_x.time[c] = adj_x.time[c] + g_d / h
                    adj_x.fraction[body] = adj_x.fraction[body] - g_d
                    for side in range(2):
                        J_offset, body_offset = side * D, (a + side * (b - a)) * D
                        f.add(adj_x.record, p + J_offset, g_gain, x.delta_v, body_offset)
                        f.add(adj_x.delta_v, body_offset, g_gain, x.record, p + J_offset)
                        f.add(adj_x.record, p + J_offset, g_u, x.speed, body_offset)
                        f.add(adj_x.speed, body_offset, g_u, x.record, p + J_offset)
            for e in range(n * D):
                g, sign = adj_x.speed[e], real(0.0)
                if phase == AFTER_IMPACT:
                    sign = 1.0
                if phase == BEFORE_IMPACT and x.first[e // D] >= 0:
                    sign = -1.0
                if phase == WHOLE_STEP or sign < 0:
                    adj_x.twist[e] = adj_x.twist[e] + g
                if sign < 0:
                    adj_x.speed[e] = 0.0
                g_fraction, remainder = sign * x.delta_v[e] * g, 1.0 - x.fraction[e // D]
                adj_x.delta_v[e] = adj_x.delta_v[e] + sign * remainder * g
                adj_x.fraction[e // D] = adj_x.fraction[e // D] - g_fraction

        for i in range(N):
            g_target = adj_x.phase_target[i]
            if has_own_target(i, NJ, x.active, x.held):
                g_target += adj_x.phase_target[N + i]
            adj_x.target[i] = adj_x.target[i] + g_target
        for b in range(n):
            for e in range(dim):
                g = adj_x.delta_v[b * D + e]
                adj_x.twist[b * D + e] = adj_x.twist[b * D + e] + g
                adj_x.velocity[b * dim + e] = adj_x.velocity[b * dim + e] - g
            for e in range(at.spins):
                k, s = b * D + dim + e, b * at.spins + e
                adj_x.twist[k] = adj_x.twist[k] + adj_x.delta_v[k]
                adj_x.angular_velocity[s] = adj_x.angular_velocity[s] - adj_x.delta_v[k]
        f.adj_prepare(model, x, adj_x)

    return SimpleNamespace(
        solve_phases=solve_phases, adj=adj_solve_phases, count_phases=count_phases, row_velocity=row_velocity,
        has_own_target=has_own_target, timing_body=timing_body, is_impact_row=is_impact_row, impulse_time=impulse_time,
    )  # fmt: skip
