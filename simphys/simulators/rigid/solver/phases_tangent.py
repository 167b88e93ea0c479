"""Tangent of the phases of a step (phases.py): the phases once more, each line with its tangent."""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

from .. import rows
from . import phases, records, sweeps_tangent
from .phases import count_phases, impulse_time, row_functions, timing_body
from .records import entry, is_reached, record_length, slot, sort_contacts, twist_length, vectors
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, PHASES, WHOLE_STEP


def whole_step(real: Any, dim: int) -> SimpleNamespace:
    """Return what begins and ends the solve of a whole step, with tangents."""
    at, step = rows.functions(real, dim), phases.whole_step(real, dim)
    f, row, D = vectors(real, dim), row_functions(real, dim), twist_length(dim)

    @ti.func
    def jvp_begin(model: ti.template(), x: ti.template(), dx: ti.template()):
        n, N = model.bodies, model.joint_rows + model.contacts * dim
        step.begin(model, x)
        for e in range(n * D, (n + 1) * D):
            dx.speed[e] = 0.0
            dx.delta_v[e] = 0.0
        for e in range(n * D):
            dx.delta_v[e] = dx.twist[e]
        for b in range(n):
            at.add_twist(dx.delta_v, b, -at.vec_of(dx.velocity, b), -at.spin_of(dx.angular_velocity, b))
        for i in range(N):
            dx.phase_target[i] = dx.target[i]
            dx.phase_target[N + i] = 0.0

    @ti.func
    def jvp_end_whole_step(model: ti.template(), x: ti.template(), dx: ti.template()):
        NJ, N = model.joint_rows, model.joint_rows + model.contacts * dim
        step.end_whole_step(model, x)
        for k in range(NJ + entry(x.order, 1) * dim):
            i, block = f.row_at(k, NJ, x.order)
            if is_reached(block, model.row_bodies, x.first):
                dx.impulse[i] = 0.0
                if row.has_own_target(i, NJ, x.active, x.held):
                    dx.phase_target[N + i] = dx.target[i]

    return SimpleNamespace(begin=jvp_begin, end_whole_step=jvp_end_whole_step)


def shift(real: Any, dim: int) -> Any:
    """Return the tangent of `sum_shift`."""
    f, row, D, L = vectors(real, dim), row_functions(real, dim), twist_length(dim), record_length(dim)

    @ti.func
    def jvp_sum_shift(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Compute the tangent of the shift in a step with an impact."""
        NJ, N = model.joint_rows, model.joint_rows + model.contacts * dim
        for k in range(NJ + entry(x.order, 0) * dim):
            i, block = f.row_at(k, NJ, x.order)
            body = timing_body(block, model.row_bodies, x.first)
            s, ds, tau, dtau = x.fraction[body], dx.fraction[body], real(0.0), real(0.0)
            is_met = row.is_impact_row(i, NJ, x.active)
            if is_met:
                tau = x.time[block - NJ]
                dtau = dx.time[block - NJ]
            total, dtotal = real(0.0), real(0.0)
            for phase in range(PHASES):
                t, dt = impulse_time(phase, s, model.dt, is_met, tau), model.dt / 2 * ds
                if phase == AT_IMPACT:
                    dt = ti.select(is_met, dtau, model.dt * ds)
                total += t * x.impulse[phase * N + i]
                dtotal += dt * x.impulse[phase * N + i] + t * dx.impulse[phase * N + i]
            for side in range(2):
                side_body, P = model.row_bodies[2 * block + side], i * L + (2 + side) * D
                if side_body >= 0:
                    f.add(dx.shift, side_body * D, dtotal, x.record, P)
                    f.add(dx.shift, side_body * D, total, dx.record, P)

    return jvp_sum_shift


def impacts(real: Any, dim: int) -> SimpleNamespace:
    """Return the velocities with which a phase begins, and the targets at an impact, with tangents."""
    f, row, D, L = vectors(real, dim), row_functions(real, dim), twist_length(dim), record_length(dim)

    @ti.func
    def jvp_begin_phase(phase, model: ti.template(), x: ti.template(), dx: ti.template()):
        """Set the velocities with which a phase begins, and their tangents."""
        for e in range(model.bodies * D):
            remainder, dremainder = 1.0 - x.fraction[e // D], -dx.fraction[e // D]
            reached, sign = x.first[e // D] >= 0, real(0.0)
            if phase == WHOLE_STEP or (phase == BEFORE_IMPACT and reached):
                x.speed[e] = x.twist[e]
                dx.speed[e] = dx.twist[e]
            if reached and phase == BEFORE_IMPACT:
                sign = -1.0
            if phase == AFTER_IMPACT:
                sign = 1.0
            part = dremainder * x.delta_v[e] + remainder * dx.delta_v[e]
            x.speed[e] = x.speed[e] + sign * remainder * x.delta_v[e]
            dx.speed[e] = dx.speed[e] + sign * part

    @ti.func
    def jvp_aim_at_impact(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Set the targets of contacts with an impact, and their tangents."""
        n, NJ, N = model.bodies, model.joint_rows, model.joint_rows + model.contacts * dim
        for k in range(entry(x.order, 1) * dim, entry(x.order, 0) * dim):
            i, block = f.row_at(NJ + k, NJ, x.order)
            a, b, c, p = model.row_bodies[2 * block], slot(model.row_bodies[2 * block + 1], n), block - NJ, i * L
            body = timing_body(block, model.row_bodies, x.first)
            d = x.time[c] / model.dt + 0.5 - x.fraction[body]
            dd = dx.time[c] / model.dt - dx.fraction[body]
            gain = row.row_velocity(x.record, p, x.delta_v, a, b)
            dgain = row.row_velocity(dx.record, p, x.delta_v, a, b)
            dgain += row.row_velocity(x.record, p, dx.delta_v, a, b)
            lag, dlag, rebound, drebound = d * gain, dd * gain + d * dgain, real(0.0), real(0.0)
            if k % dim == 0:
                u = row.row_velocity(x.record, p, x.speed, a, b) + lag
                du = row.row_velocity(dx.record, p, x.speed, a, b) + dlag
                du += row.row_velocity(x.record, p, dx.speed, a, b)
                if -x.bounce[c] * u > 0:
                    rebound = -x.bounce[c] * u
                    drebound = -dx.bounce[c] * u - x.bounce[c] * du
            x.phase_target[N + i] = rebound - lag
            dx.phase_target[N + i] = drebound - dlag

    return SimpleNamespace(begin_phase=jvp_begin_phase, aim_at_impact=jvp_aim_at_impact)


@functools.cache
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the tangent of `solve_phases`; its arguments are in phases.py."""
    record, whole, impact = records.loops(real, dim), whole_step(real, dim), impacts(real, dim)
    jvp_sweep, jvp_sum_shift = sweeps_tangent.loops(real, dim).sweep, shift(real, dim)
    D = twist_length(dim)

    @ti.func
    def jvp_solve_phases(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Solve all phases again, with tangents; the shift of `member` is not computed."""
        n, N = model.bodies, model.joint_rows + model.contacts * dim
        sort_contacts(model, x)
        record.prepare(model, x)
        record.jvp_prepare(model, x, dx)
        whole.begin(model, x, dx)
        phase_count = count_phases(x.order)
        for phase in range(phase_count):
            impact.begin_phase(phase, model, x, dx)
            if phase == AT_IMPACT:
                impact.aim_at_impact(model, x, dx)
            jvp_sweep(phase, model, x, dx)
            if phase == WHOLE_STEP and phase_count > 1:
                whole.end_whole_step(model, x, dx)
        for e in range(phase_count * N, PHASES * N):
            x.impulse[e] = 0.0
            dx.impulse[e] = 0.0
        for e in range(n * D):
            dx.new[e] = dx.speed[e]
            dx.shift[e] = 0.0
        if phase_count > 1:
            jvp_sum_shift(model, x, dx)

    return SimpleNamespace(jvp=jvp_solve_phases)
