"""Tangent of the phases of a step (phases.py): the phases once more, each line with its tangent."""

from simphys.autograd.kernels.runtime import ti

from .phases import (
    add_shift,
    begin,
    begin_phase,
    count_phases,
    end_whole_step,
    impulse_time,
    time_of_row,
    timing_body,
)
from .records import entry, jvp_prepare, prepare, row_at, row_velocity, sort_contacts, velocities_of
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, PHASES, WHOLE_STEP, mark_held
from .sweeps_tangent import jvp_sweep


@ti.func
def jvp_sum_shift(model: ti.template(), x: ti.template(), dx: ti.template()):
    """Compute the tangent of the shift in a step with an impact."""
    N = model.joint_rows + model.contacts * model.dim
    for k in range(model.joint_rows + entry(x.order, 0) * model.dim):
        i, block = row_at(k, model, x.order)
        body, is_met, tau = time_of_row(i, block, model, x)
        total, dtotal = 0.0, 0.0
        for phase in range(PHASES):
            t, dt = impulse_time(phase, x.fraction[body], model.dt, is_met, tau), model.dt / 2 * dx.fraction[body]
            if phase == AT_IMPACT:
                dt = model.dt * dx.fraction[body]
                if is_met:
                    dt = dx.time[block - model.joint_rows]
            total += t * x.impulse[phase * N + i]
            dtotal += dt * x.impulse[phase * N + i] + t * dx.impulse[phase * N + i]
        add_shift(i, block, dtotal, model, dx.shift, x.response)
        add_shift(i, block, total, model, dx.shift, dx.response)


@ti.func
def jvp_begin_phase(phase, model: ti.template(), x: ti.template(), dx: ti.template()):
    """Set the velocities with which a phase begins, and their tangents."""
    D = ti.static(model.freedoms)
    begin_phase(phase, model, x, x)
    begin_phase(phase, model, x, dx)
    for e in range(model.bodies * D):
        change = dx.fraction[e // D] * x.delta_v[e]
        if phase == BEFORE_IMPACT and x.first[e // D] >= 0:
            dx.speed[e] = dx.speed[e] + change
        if phase == AFTER_IMPACT:
            dx.speed[e] = dx.speed[e] - change


@ti.func
def jvp_aim_at_impact(model: ti.template(), x: ti.template(), dx: ti.template()):
    """Set the targets of contacts with an impact, and their tangents."""
    dim = ti.static(model.dim)
    NJ, N = model.joint_rows, model.joint_rows + model.contacts * dim
    for k in range(entry(x.order, 1) * dim, entry(x.order, 0) * dim):
        i, block = row_at(NJ + k, model, x.order)
        c, body = block - NJ, timing_body(block, model.row_bodies, x.first)
        va, vb = velocities_of(block, model)
        d = x.time[c] / model.dt + 0.5 - x.fraction[body]
        dd = dx.time[c] / model.dt - dx.fraction[body]
        gain = row_velocity(i, x.jacobian, x.delta_v, va, vb)
        dgain = row_velocity(i, dx.jacobian, x.delta_v, va, vb) + row_velocity(i, x.jacobian, dx.delta_v, va, vb)
        lag, dlag, rebound, drebound = d * gain, dd * gain + d * dgain, 0.0, 0.0
        if k % dim == 0:
            u = row_velocity(i, x.jacobian, x.speed, va, vb) + lag
            du = row_velocity(i, dx.jacobian, x.speed, va, vb) + row_velocity(i, x.jacobian, dx.speed, va, vb) + dlag
            if -x.bounce[c] * u > 0:
                rebound = -x.bounce[c] * u
                drebound = -dx.bounce[c] * u - x.bounce[c] * du
        x.phase_target[N + i] = rebound - lag
        dx.phase_target[N + i] = drebound - dlag


@ti.func
def jvp_solve_phases(model: ti.template(), x: ti.template(), dx: ti.template()):
    """Solve all phases again, with tangents; the shift of `member` is not computed."""
    dim, D = ti.static(model.dim, model.freedoms)
    n, N = model.bodies, model.joint_rows + model.contacts * dim
    sort_contacts(model, x)
    prepare(model, x)
    jvp_prepare(model, x, dx)
    begin(model, x)
    begin(model, dx)  # a linear map
    phase_count = count_phases(x.order)
    for phase in range(phase_count):
        jvp_begin_phase(phase, model, x, dx)
        if phase == AT_IMPACT:
            jvp_aim_at_impact(model, x, dx)
        jvp_sweep(phase, model, x, dx)
        if phase == WHOLE_STEP and phase_count > 1:
            mark_held(model, x)
            end_whole_step(model, x, x)
            end_whole_step(model, x, dx)
    for e in range(phase_count * N, PHASES * N):
        x.impulse[e] = 0.0
        dx.impulse[e] = 0.0
    for e in range(n * D):
        dx.new[e] = dx.speed[e]
        dx.shift[e] = 0.0
    if phase_count > 1:
        jvp_sum_shift(model, x, dx)
