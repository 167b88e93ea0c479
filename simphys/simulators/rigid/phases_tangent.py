"""Tangent of the phases of a step (phases.py): the phases once more, each line with its tangent."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import phases, rows, sweeps, sweeps_tangent
from .phases import PHASES
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, WHOLE_STEP


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the tangent of `solve_phases`; its arguments are in phases.py."""
    at, f = rows.functions(real, dim), sweeps.loops(real, dim)
    step, tangents = phases.loops(real, dim), sweeps_tangent.loops(real, dim)
    D, L = dim + at.spins, sweeps.record_length(dim)

    @ti.func
    def jvp_start(phase, system: ti.template(), member: ti.template(), dmember: ti.template()):
        """Set the velocities with which a phase begins, and their tangents."""
        contacts, impact, solver = ti.static(member.contacts, member.impact, member.solver)
        change, dchange = ti.static(member.change, dmember.change)
        dimpact, dsolver = ti.static(dmember.impact, dmember.solver)
        for e in range(system.n * D):
            remainder, dremainder = 1.0 - impact.fraction[e // D], -dimpact.fraction[e // D]
            reached, sign = contacts.first[e // D] >= 0, real(0.0)
            if phase == WHOLE_STEP or (phase == BEFORE_IMPACT and reached):
                solver.speed[e] = change.twist[e]
                dsolver.speed[e] = dchange.twist[e]
            if reached and phase == BEFORE_IMPACT:
                sign = -1.0
            if phase == AFTER_IMPACT:
                sign = 1.0
            part = dremainder * solver.delta_v[e] + remainder * dsolver.delta_v[e]
            solver.speed[e] = solver.speed[e] + sign * remainder * solver.delta_v[e]
            dsolver.speed[e] = dsolver.speed[e] + sign * part

    @ti.func
    def jvp_impact_targets(h, system: ti.template(), member: ti.template(), dmember: ti.template()):
        """Set the targets of contacts with an impact, and their tangents."""
        contacts, rows, impact, solver = ti.static(member.contacts, member.rows, member.impact, member.solver)
        dcontacts, drows, dimpact = ti.static(dmember.contacts, dmember.rows, dmember.impact)
        dsolver = ti.static(dmember.solver)
        n, NJ, N = system.n, system.NJ, system.NJ + system.M * dim
        for k in range(solver.order[1] * dim, solver.order[0] * dim):
            i, block = f.row_at(NJ + k, NJ, solver.order)
            a, b, c, p = system.bodies[2 * block], f.slot(system.bodies[2 * block + 1], n), block - NJ, i * L
            body = step.timing_body(block, system.bodies, contacts.first)
            d = contacts.time[c] / h + 0.5 - impact.fraction[body]
            dd = dcontacts.time[c] / h - dimpact.fraction[body]
            gain = step.row_velocity(solver.record, p, solver.delta_v, a, b)
            dgain = step.row_velocity(dsolver.record, p, solver.delta_v, a, b)
            dgain += step.row_velocity(solver.record, p, dsolver.delta_v, a, b)
            lag, dlag, rebound, drebound = d * gain, dd * gain + d * dgain, real(0.0), real(0.0)
            if k % dim == 0:
                u = step.row_velocity(solver.record, p, solver.speed, a, b) + lag
                du = step.row_velocity(dsolver.record, p, solver.speed, a, b) + dlag
                du += step.row_velocity(solver.record, p, dsolver.speed, a, b)
                if -rows.bounce[c] * u > 0:
                    rebound = -rows.bounce[c] * u
                    drebound = -drows.bounce[c] * u - rows.bounce[c] * du
            solver.phase_target[N + i] = rebound - lag
            dsolver.phase_target[N + i] = drebound - dlag

    @ti.func
    def jvp_shift(h, system: ti.template(), member: ti.template(), dmember: ti.template()):
        """Compute the tangent of the shift in a step with an impact."""
        contacts, impact, solver = ti.static(member.contacts, member.impact, member.solver)
        dcontacts, dimpact, dsolver = ti.static(dmember.contacts, dmember.impact, dmember.solver)
        NJ, N = system.NJ, system.NJ + system.M * dim
        for k in range(NJ + solver.order[0] * dim):
            i, block = f.row_at(k, NJ, solver.order)
            body = step.timing_body(block, system.bodies, contacts.first)
            s, ds, tau, dtau = impact.fraction[body], dimpact.fraction[body], real(0.0), real(0.0)
            is_met = step.is_impact_row(i, NJ, contacts.active)
            if is_met:
                tau = contacts.time[block - NJ]
                dtau = dcontacts.time[block - NJ]
            total, dtotal = real(0.0), real(0.0)
            for phase in range(PHASES):
                t, dt = step.impulse_time(phase, s, h, is_met, tau), h / 2 * ds
                if phase == AT_IMPACT:
                    dt = ti.select(is_met, dtau, h * ds)
                total += t * solver.impulse[phase * N + i]
                dtotal += dt * solver.impulse[phase * N + i] + t * dsolver.impulse[phase * N + i]
            for side in range(2):
                side_body, P = system.bodies[2 * block + side], i * L + (2 + side) * D
                if side_body >= 0:
                    f.add(dmember.change.shift, side_body * D, dtotal, solver.record, P)
                    f.add(dmember.change.shift, side_body * D, total, dsolver.record, P)

    @ti.func
    def jvp_solve_phases(h, system: ti.template(), member: ti.template(), dmember: ti.template()):
        """Solve all phases again, with tangents; the shift of `member` is not computed."""
        contacts, rows, solver, change = ti.static(member.contacts, member.rows, member.solver, member.change)
        motion, drows, dsolver = ti.static(member.stage, dmember.rows, dmember.solver)
        dchange, dmotion = ti.static(dmember.change, dmember.stage)
        n, NJ, N = system.n, system.NJ, system.NJ + system.M * dim
        f.sort_contacts(system, contacts, solver.order)
        f.prepare(system, rows, solver)
        tangents.prepare(system, rows, solver, drows, dsolver)
        phase_count = step.count_phases(solver.order)
        for e in range(n * D, (n + 1) * D):
            solver.speed[e] = 0.0
            solver.delta_v[e] = 0.0
            dsolver.speed[e] = 0.0
            dsolver.delta_v[e] = 0.0
        for b in range(n):
            for e in range(D):
                k = b * D + e
                solver.delta_v[k] = change.twist[k]
                dsolver.delta_v[k] = dchange.twist[k]
            at.add_twist(solver.delta_v, b, -at.vec_of(motion.v, b), -at.spin_of(motion.w, b))
            at.add_twist(dsolver.delta_v, b, -at.vec_of(dmotion.v, b), -at.spin_of(dmotion.w, b))
        for i in range(N):
            solver.phase_target[i] = rows.target[i]
            dsolver.phase_target[i] = drows.target[i]
            solver.phase_target[N + i] = 0.0
            dsolver.phase_target[N + i] = 0.0
        for phase in range(phase_count):
            jvp_start(phase, system, member, dmember)
            if phase == AT_IMPACT:
                jvp_impact_targets(h, system, member, dmember)
            tangents.sweep(phase, system, rows, contacts, solver, drows, dsolver)
            if phase == WHOLE_STEP and phase_count > 1:
                f.mark_held(system, rows, solver)
                for k in range(NJ + solver.order[1] * dim):
                    i, block = f.row_at(k, NJ, solver.order)
                    if f.is_reached(block, system.bodies, contacts.first):
                        solver.impulse[i] = 0.0  # it only served to find the held contacts
                        dsolver.impulse[i] = 0.0
                        if step.has_own_target(i, NJ, contacts.active, solver.held):
                            solver.phase_target[N + i] = rows.target[i]
                            dsolver.phase_target[N + i] = drows.target[i]
        for e in range(phase_count * N, PHASES * N):
            solver.impulse[e] = 0.0
            dsolver.impulse[e] = 0.0
        for e in range(n * D):
            dchange.new[e] = dsolver.speed[e]
            dchange.shift[e] = 0.0
        if phase_count > 1:
            jvp_shift(h, system, member, dmember)

    return SimpleNamespace(jvp=jvp_solve_phases)
