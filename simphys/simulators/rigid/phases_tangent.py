"""Tangent of the phases of a step (phases.py): the phases once more, each line with its tangent."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import phases, rows, sweeps, sweeps_tangent
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, PHASES, WHOLE_STEP


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the tangent of `solve_phases`; its arguments are in phases.py."""
    at, f = rows.functions(real, dim), sweeps.loops(real, dim)
    step, tangents = phases.loops(real, dim), sweeps_tangent.loops(real, dim)
    D, L = dim + at.spins, sweeps.record_length(dim)

    @ti.func
    def jvp_start(phase, model: ti.template(), x: ti.template(), dx: ti.template()):
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
    def jvp_impact_targets(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Set the targets of contacts with an impact, and their tangents."""
        n, NJ, N = model.bodies, model.joint_rows, model.joint_rows + model.contacts * dim
        for k in range(f.entry(x.order, 1) * dim, f.entry(x.order, 0) * dim):
            i, block = f.row_at(NJ + k, NJ, x.order)
            a, b, c, p = model.row_bodies[2 * block], f.slot(model.row_bodies[2 * block + 1], n), block - NJ, i * L
            body = step.timing_body(block, model.row_bodies, x.first)
            d = x.time[c] / model.dt + 0.5 - x.fraction[body]
            dd = dx.time[c] / model.dt - dx.fraction[body]
            gain = step.row_velocity(x.record, p, x.delta_v, a, b)
            dgain = step.row_velocity(dx.record, p, x.delta_v, a, b)
            dgain += step.row_velocity(x.record, p, dx.delta_v, a, b)
            lag, dlag, rebound, drebound = d * gain, dd * gain + d * dgain, real(0.0), real(0.0)
            if k % dim == 0:
                u = step.row_velocity(x.record, p, x.speed, a, b) + lag
                du = step.row_velocity(dx.record, p, x.speed, a, b) + dlag
                du += step.row_velocity(x.record, p, dx.speed, a, b)
                if -x.bounce[c] * u > 0:
                    rebound = -x.bounce[c] * u
                    drebound = -dx.bounce[c] * u - x.bounce[c] * du
            x.phase_target[N + i] = rebound - lag
            dx.phase_target[N + i] = drebound - dlag

    @ti.func
    def jvp_shift(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Compute the tangent of the shift in a step with an impact."""
        NJ, N = model.joint_rows, model.joint_rows + model.contacts * dim
        for k in range(NJ + f.entry(x.order, 0) * dim):
            i, block = f.row_at(k, NJ, x.order)
            body = step.timing_body(block, model.row_bodies, x.first)
            s, ds, tau, dtau = x.fraction[body], dx.fraction[body], real(0.0), real(0.0)
            is_met = step.is_impact_row(i, NJ, x.active)
            if is_met:
                tau = x.time[block - NJ]
                dtau = dx.time[block - NJ]
            total, dtotal = real(0.0), real(0.0)
            for phase in range(PHASES):
                t, dt = step.impulse_time(phase, s, model.dt, is_met, tau), model.dt / 2 * ds
                if phase == AT_IMPACT:
                    dt = ti.select(is_met, dtau, model.dt * ds)
                total += t * x.impulse[phase * N + i]
                dtotal += dt * x.impulse[phase * N + i] + t * dx.impulse[phase * N + i]
            for side in range(2):
                side_body, P = model.row_bodies[2 * block + side], i * L + (2 + side) * D
                if side_body >= 0:
                    f.add(dx.shift, side_body * D, dtotal, x.record, P)
                    f.add(dx.shift, side_body * D, total, dx.record, P)

    @ti.func
    def jvp_solve_phases(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Solve all phases again, with tangents; the shift of `member` is not computed."""
        n, NJ, N = model.bodies, model.joint_rows, model.joint_rows + model.contacts * dim
        f.sort_contacts(model, x)
        f.prepare(model, x)
        tangents.prepare(model, x, dx)
        phase_count = step.count_phases(x.order)
        for e in range(n * D, (n + 1) * D):
            x.speed[e] = 0.0
            x.delta_v[e] = 0.0
            dx.speed[e] = 0.0
            dx.delta_v[e] = 0.0
        for b in range(n):
            for e in range(D):
                k = b * D + e
                x.delta_v[k] = x.twist[k]
                dx.delta_v[k] = dx.twist[k]
            at.add_twist(x.delta_v, b, -at.vec_of(x.velocity, b), -at.spin_of(x.angular_velocity, b))
            at.add_twist(dx.delta_v, b, -at.vec_of(dx.velocity, b), -at.spin_of(dx.angular_velocity, b))
        for i in range(N):
            x.phase_target[i] = x.target[i]
            dx.phase_target[i] = dx.target[i]
            x.phase_target[N + i] = 0.0
            dx.phase_target[N + i] = 0.0
        for phase in range(phase_count):
            jvp_start(phase, model, x, dx)
            if phase == AT_IMPACT:
                jvp_impact_targets(model, x, dx)
            tangents.sweep(phase, model, x, dx)
            if phase == WHOLE_STEP and phase_count > 1:
                f.mark_held(model, x)
                for k in range(NJ + f.entry(x.order, 1) * dim):
                    i, block = f.row_at(k, NJ, x.order)
                    if f.is_reached(block, model.row_bodies, x.first):
                        x.impulse[i] = 0.0  # it only served to find the held contacts
                        dx.impulse[i] = 0.0
                        if step.has_own_target(i, NJ, x.active, x.held):
                            x.phase_target[N + i] = x.target[i]
                            dx.phase_target[N + i] = dx.target[i]
        for e in range(phase_count * N, PHASES * N):
            x.impulse[e] = 0.0
            dx.impulse[e] = 0.0
        for e in range(n * D):
            dx.new[e] = dx.speed[e]
            dx.shift[e] = 0.0
        if phase_count > 1:
            jvp_shift(model, x, dx)

    return SimpleNamespace(jvp=jvp_solve_phases)
