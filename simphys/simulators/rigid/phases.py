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
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, WHOLE_STEP

PHASES = 4


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
        return ti.select(order[0] > order[1], PHASES, 1)

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
    def solve_phases(h, system: ti.template(), member: ti.template()):
        contacts, rows, impact, solver = ti.static(member.contacts, member.rows, member.impact, member.solver)
        change, motion = ti.static(member.change, member.stage)
        n, NJ, N = system.n, system.NJ, system.NJ + system.M * dim
        f.sort_contacts(system, contacts, solver.order)
        f.prepare(system, rows, solver)
        phase_count = count_phases(solver.order)
        for e in range(D):
            solver.speed[n * D + e] = 0.0
            solver.delta_v[n * D + e] = 0.0
        for b in range(n):
            for e in range(dim):
                solver.delta_v[b * D + e] = change.twist[b * D + e] - motion.v[b * dim + e]
            for e in range(at.spins):
                k = b * D + dim + e
                solver.delta_v[k] = change.twist[k] - motion.w[b * at.spins + e]
        for i in range(N):
            solver.phase_target[i] = rows.target[i]
            solver.phase_target[N + i] = 0.0
        for phase in range(phase_count):
            for e in range(n * D):
                remainder, reached = 1.0 - impact.fraction[e // D], contacts.first[e // D] >= 0
                if phase == WHOLE_STEP or (phase == BEFORE_IMPACT and reached):
                    solver.speed[e] = change.twist[e]
                if reached and phase == BEFORE_IMPACT:
                    solver.speed[e] = solver.speed[e] - remainder * solver.delta_v[e]
                if phase == AFTER_IMPACT:
                    solver.speed[e] = solver.speed[e] + remainder * solver.delta_v[e]
            if phase == AT_IMPACT:
                for k in range(solver.order[1] * dim, solver.order[0] * dim):
                    i, block = f.row_at(NJ + k, NJ, solver.order)
                    a, b = system.bodies[2 * block], f.slot(system.bodies[2 * block + 1], n)
                    body = timing_body(block, system.bodies, contacts.first)
                    d = contacts.time[block - NJ] / h + 0.5 - impact.fraction[body]
                    lag = d * row_velocity(solver.record, i * L, solver.delta_v, a, b)
                    rebound = real(0.0)
                    if k % dim == 0:
                        u = row_velocity(solver.record, i * L, solver.speed, a, b) + lag
                        rebound = ti.max(0.0, -rows.bounce[block - NJ] * u)
                    solver.phase_target[N + i] = rebound - lag
            f.sweep(phase, system, rows, contacts, solver)
            if phase == WHOLE_STEP and phase_count > 1:
                f.mark_held(system, rows, solver)
                for k in range(NJ + solver.order[1] * dim):
                    i, block = f.row_at(k, NJ, solver.order)
                    if f.is_reached(block, system.bodies, contacts.first):
                        solver.impulse[i] = 0.0  # it only served to find the held contacts
                        if has_own_target(i, NJ, contacts.active, solver.held):
                            solver.phase_target[N + i] = rows.target[i]
            for e in range(n * D):
                solver.result[phase * n * D + e] = solver.speed[e]
        for i in range(phase_count * N, PHASES * N):
            solver.impulse[i] = 0.0
        for e in range(n * D):
            change.new[e] = solver.speed[e]
            change.shift[e] = 0.0
        if phase_count > 1:
            for k in range(NJ + solver.order[0] * dim):
                i, block = f.row_at(k, NJ, solver.order)
                s, tau = impact.fraction[timing_body(block, system.bodies, contacts.first)], real(0.0)
                is_met = is_impact_row(i, NJ, contacts.active)
                if is_met:
                    tau = contacts.time[block - NJ]
                total = real(0.0)
                for phase in range(PHASES):
                    total += impulse_time(phase, s, h, is_met, tau) * solver.impulse[phase * N + i]
                for side in range(2):
                    body = system.bodies[2 * block + side]
                    if body >= 0:
                        f.add(change.shift, body * D, total, solver.record, i * L + (2 + side) * D)

    @ti.func
    def adj_solve_phases(h, system: ti.template(), member: ti.template(), adj_member: ti.template()):
        """Reverse all phases; the adjoint of the solver changes, in which that of the impulses is given."""
        contacts, rows, impact, solver = ti.static(member.contacts, member.rows, member.impact, member.solver)
        adj_contacts, adj_rows, adj_impact = ti.static(adj_member.contacts, adj_member.rows, adj_member.impact)
        adj_change, adj_motion, adj_solver = ti.static(adj_member.change, adj_member.stage, adj_member.solver)
        n, NJ, N, phase_count = system.n, system.NJ, system.NJ + system.M * dim, count_phases(solver.order)
        for k in range(NJ + solver.order[0] * dim):
            i, block = f.row_at(k, NJ, solver.order)
            for e in range(L):
                adj_solver.record[i * L + e] = 0.0
        for i in range(2 * N):
            adj_solver.phase_target[i] = 0.0
        for e in range((n + 1) * D):
            adj_solver.delta_v[e] = 0.0
        for e in range(D):
            adj_solver.speed[n * D + e] = 0.0
        for e in range(n * D):
            adj_solver.speed[e] = adj_change.new[e]

        if phase_count > 1:
            for k in range(NJ + solver.order[0] * dim):
                i, block = f.row_at(k, NJ, solver.order)
                body, tau = timing_body(block, system.bodies, contacts.first), real(0.0)
                is_met = is_impact_row(i, NJ, contacts.active)
                s, total, adj_total = impact.fraction[body], real(0.0), real(0.0)
                if is_met:
                    tau = contacts.time[block - NJ]
                for side in range(2):
                    if system.bodies[2 * block + side] >= 0:
                        P_offset = i * L + (2 + side) * D
                        shift_offset = system.bodies[2 * block + side] * D
                        adj_total += f.dot(solver.record, P_offset, adj_change.shift, shift_offset)
                for phase in range(PHASES):
                    t, after = impulse_time(phase, s, h, is_met, tau), solver.impulse[phase * N + i]
                    total += t * after
                    impulse_k = phase * N + i
                    adj_solver.impulse[impulse_k] = adj_solver.impulse[impulse_k] + t * adj_total
                    dt_ds = h / 2
                    if phase == AT_IMPACT:
                        dt_ds = ti.select(is_met, 0.0, h)
                        if is_met:
                            c = block - NJ
                            adj_contacts.time[c] = adj_contacts.time[c] + after * adj_total
                    adj_impact.fraction[body] = adj_impact.fraction[body] + dt_ds * after * adj_total
                for side in range(2):
                    if system.bodies[2 * block + side] >= 0:
                        P_offset, shift_offset = i * L + (2 + side) * D, system.bodies[2 * block + side] * D
                        f.add(adj_solver.record, P_offset, total, adj_change.shift, shift_offset)

        if phase_count > 1:
            for k in range(NJ + solver.order[1] * dim):
                i, block = f.row_at(k, NJ, solver.order)
                if f.is_reached(block, system.bodies, contacts.first):
                    adj_solver.impulse[i] = 0.0  # these impulses are discarded

        for back in range(phase_count):
            phase = phase_count - 1 - back
            for e in range(n * D):
                solver.speed[e] = solver.result[phase * n * D + e]
            f.adj_sweep(phase, system, rows, contacts, solver, adj_solver, adj_rows)
            if phase == AT_IMPACT:
                for k in range(solver.order[1] * dim, solver.order[0] * dim):
                    i, block = f.row_at(NJ + k, NJ, solver.order)
                    c, p = block - NJ, i * L
                    a, b = system.bodies[2 * block], f.slot(system.bodies[2 * block + 1], n)
                    body = timing_body(block, system.bodies, contacts.first)
                    d = contacts.time[c] / h + 0.5 - impact.fraction[body]
                    gain = row_velocity(solver.record, p, solver.delta_v, a, b)
                    g = adj_solver.phase_target[N + i]
                    u, g_u = row_velocity(solver.record, p, solver.speed, a, b) + d * gain, real(0.0)
                    if k % dim == 0 and -rows.bounce[c] * u > 0:
                        g_u = -rows.bounce[c] * g
                        adj_rows.bounce[c] = adj_rows.bounce[c] - u * g
                    g_d, g_gain = gain * (g_u - g), d * (g_u - g)
                    adj_contacts.time[c] = adj_contacts.time[c] + g_d / h
                    adj_impact.fraction[body] = adj_impact.fraction[body] - g_d
                    for side in range(2):
                        J_offset, body_offset = side * D, (a + side * (b - a)) * D
                        f.add(adj_solver.record, p + J_offset, g_gain, solver.delta_v, body_offset)
                        f.add(adj_solver.delta_v, body_offset, g_gain, solver.record, p + J_offset)
                        f.add(adj_solver.record, p + J_offset, g_u, solver.speed, body_offset)
                        f.add(adj_solver.speed, body_offset, g_u, solver.record, p + J_offset)
            for e in range(n * D):
                g, sign = adj_solver.speed[e], real(0.0)
                if phase == AFTER_IMPACT:
                    sign = 1.0
                if phase == BEFORE_IMPACT and contacts.first[e // D] >= 0:
                    sign = -1.0
                if phase == WHOLE_STEP or sign < 0:
                    adj_change.twist[e] = adj_change.twist[e] + g
                if sign < 0:
                    adj_solver.speed[e] = 0.0
                g_fraction, remainder = sign * solver.delta_v[e] * g, 1.0 - impact.fraction[e // D]
                adj_solver.delta_v[e] = adj_solver.delta_v[e] + sign * remainder * g
                adj_impact.fraction[e // D] = adj_impact.fraction[e // D] - g_fraction

        for i in range(N):
            g_target = adj_solver.phase_target[i]
            if has_own_target(i, NJ, contacts.active, solver.held):
                g_target += adj_solver.phase_target[N + i]
            adj_rows.target[i] = adj_rows.target[i] + g_target
        for b in range(n):
            for e in range(dim):
                g = adj_solver.delta_v[b * D + e]
                adj_change.twist[b * D + e] = adj_change.twist[b * D + e] + g
                adj_motion.v[b * dim + e] = adj_motion.v[b * dim + e] - g
            for e in range(at.spins):
                k, s = b * D + dim + e, b * at.spins + e
                adj_change.twist[k] = adj_change.twist[k] + adj_solver.delta_v[k]
                adj_motion.w[s] = adj_motion.w[s] - adj_solver.delta_v[k]
        f.adj_prepare(system, rows, solver, adj_solver, adj_rows)

    return SimpleNamespace(
        solve_phases=solve_phases, adj=adj_solve_phases, count_phases=count_phases, row_velocity=row_velocity,
        has_own_target=has_own_target, timing_body=timing_body, is_impact_row=is_impact_row, impulse_time=impulse_time,
    )  # fmt: skip
