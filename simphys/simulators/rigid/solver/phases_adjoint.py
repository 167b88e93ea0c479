"""Adjoint of the phases of a step (phases.py): the phases in reverse, each part with the adjoint of its lines."""

from simphys.autograd.kernels.runtime import ti

from ..rows import add_to_row, angular, linear, row_of
from .phases import count_phases, has_own_target, impulse_time, time_of_row, timing_body
from .records import (
    add_multiple,
    add_row,
    add_velocities,
    adj_prepare,
    dot,
    entry,
    is_reached,
    row_at,
    row_velocity,
    velocities_of,
)
from .sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, PHASES, WHOLE_STEP, adj_sweep


@ti.func
def clear(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Set the adjoints to zero that the phases add to; `adj_speed` is that of the result."""
    dim, D, L = ti.static(model.dim, model.freedoms, x.record.width)
    n, N = model.bodies, model.joint_rows + model.contacts * dim
    for k in range(model.joint_rows + entry(x.order, 0) * dim):
        i, _ = row_at(k, model, x.order)
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


@ti.func
def adj_end_whole_step(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    for k in range(model.joint_rows + entry(x.order, 1) * model.dim):
        i, block = row_at(k, model, x.order)
        if is_reached(block, model.row_bodies, x.first):
            adj_x.impulse[i] = 0.0  # these impulses are discarded


@ti.func
def adj_begin(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    N = model.joint_rows + model.contacts * model.dim
    for i in range(N):
        g_target = adj_x.phase_target[i]
        if has_own_target(i, model, x.active, x.held):
            g_target += adj_x.phase_target[N + i]
        adj_x.target[i] = adj_x.target[i] + g_target
    for e in range(model.bodies * model.freedoms):
        adj_x.twist[e] = adj_x.twist[e] + adj_x.delta_v[e]
    for b in range(model.bodies):
        add_to_row(adj_x.velocity, b, -linear(row_of(adj_x.delta_v, b)))
        add_to_row(adj_x.angular_velocity, b, -angular(row_of(adj_x.delta_v, b)))


@ti.func
def adj_sum_shift(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    D = ti.static(model.freedoms)
    N = model.joint_rows + model.contacts * model.dim
    for k in range(model.joint_rows + entry(x.order, 0) * model.dim):
        i, block = row_at(k, model, x.order)
        timing, is_met, tau = time_of_row(i, block, model, x)
        s, total, adj_total = x.fraction[timing], 0.0, 0.0
        for side in range(2):
            body = model.row_bodies[2 * block + side]
            if body >= 0:
                adj_total += dot(D, x.response, (2 * i + side) * D, adj_x.shift, body * D)
        for phase in range(PHASES):
            t, e = impulse_time(phase, s, model.dt, is_met, tau), phase * N + i
            total += t * x.impulse[e]
            adj_x.impulse[e] = adj_x.impulse[e] + t * adj_total
            dt_ds, adj_t = model.dt / 2, x.impulse[e] * adj_total
            if phase == AT_IMPACT:
                dt_ds = ti.select(is_met, 0.0, model.dt)
                if is_met:
                    c = block - model.joint_rows
                    adj_x.time[c] = adj_x.time[c] + adj_t
            adj_x.fraction[timing] = adj_x.fraction[timing] + dt_ds * adj_t
        for side in range(2):
            body = model.row_bodies[2 * block + side]
            if body >= 0:
                add_multiple(D, adj_x.response, (2 * i + side) * D, total, adj_x.shift, body * D)


@ti.func
def adj_aim_at_impact(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    dim = ti.static(model.dim)
    NJ, N = model.joint_rows, model.joint_rows + model.contacts * dim
    for k in range(entry(x.order, 1) * dim, entry(x.order, 0) * dim):
        i, block = row_at(NJ + k, model, x.order)
        c, body = block - NJ, timing_body(block, model.row_bodies, x.first)
        va, vb = velocities_of(block, model)
        d = x.time[c] / model.dt + 0.5 - x.fraction[body]
        gain = row_velocity(i, x.jacobian, x.delta_v, va, vb)
        g = adj_x.phase_target[N + i]
        u, g_u = row_velocity(i, x.jacobian, x.speed, va, vb) + d * gain, 0.0
        if k % dim == 0 and -x.bounce[c] * u > 0:
            g_u = -x.bounce[c] * g
            adj_x.bounce[c] = adj_x.bounce[c] - u * g
        g_d, g_gain = gain * (g_u - g), d * (g_u - g)
        adj_x.time[c] = adj_x.time[c] + g_d / model.dt
        adj_x.fraction[body] = adj_x.fraction[body] - g_d
        add_velocities(i, g_gain, adj_x.jacobian, x.delta_v, va, vb)
        add_row(i, g_gain, x.jacobian, adj_x.delta_v, va, vb)
        add_velocities(i, g_u, adj_x.jacobian, x.speed, va, vb)
        add_row(i, g_u, x.jacobian, adj_x.speed, va, vb)


@ti.func
def adj_begin_phase(phase, model: ti.template(), x: ti.template(), adj_x: ti.template()):
    D = ti.static(model.freedoms)
    for e in range(model.bodies * D):
        g, sign = adj_x.speed[e], 0.0
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


@ti.func
def adj_solve_phases(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Reverse all phases; the adjoint of the solver changes, in which that of the impulses is given."""
    D = ti.static(model.freedoms)
    n, phase_count = model.bodies, count_phases(x.order)
    clear(model, x, adj_x)
    if phase_count > 1:
        adj_sum_shift(model, x, adj_x)
        adj_end_whole_step(model, x, adj_x)
    for back in range(phase_count):
        phase = phase_count - 1 - back
        for e in range(n * D):
            x.speed[e] = x.result[phase * n * D + e]
        adj_sweep(phase, model, x, adj_x)
        if phase == AT_IMPACT:
            adj_aim_at_impact(model, x, adj_x)
        adj_begin_phase(phase, model, x, adj_x)
    adj_begin(model, x, adj_x)
    adj_prepare(model, x, adj_x)
