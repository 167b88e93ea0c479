"""Time of impact: its dependence on the state before, by the implicit function theorem (saltation).

The gap between the partners closes at the time t, gap(t) = 0, at the rate w < 0:

    two balls        gap = |d| - r_i - r_j,       n = d / |d|,    w = n.(v_i - v_j),     d = x_i - x_j    [m]
    ball, cushion    gap = s (x_k - wall) - r_i,  n = s e_k,      w = n.v_i,             s = +-1          [m]

with x, v at the impact. Hence dt = -d(gap) / w, with d(gap) taken at the fixed time t. Adjoint, for g = adj_t and
q = -g / w:

    adj_x_i = q n     adj_x_j = -q n     adj_r_i = adj_r_j = -q     adj_wall = -s q

The tangent is dt = -(n.(dx_i - dx_j) - dr_i - dr_j) / w, for a cushion -(n.dx_i - s dwall - dr_i) / w, with the
tangents of x after a flight of fixed time.
The adjoint of the flight carries these back to the state before it. At a graze w = 0, and there is no derivative.
Together with the flights before and after and the impact between, this is the saltation matrix (Bernardo et al. 2008,
Piecewise-smooth Dynamical Systems, section 2.5). Without it, derivatives of positions after the impact are wrong.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, record, runtime
from simphys.autograd.kernels.runtime import ti

from . import arrays, flight, search
from .model import Billiards

AHEAD = 2.0
"""Length of the search interval in time steps: longer than the one step in which the impact was found."""


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Return the element functions of one pair of partners."""
    vec = ti.types.vector(2, real)
    fly = flight.functions(real)

    @ti.func
    def approach(x_i: vec, v_i: vec, x_j: vec, v_j: vec, side):
        """Normal towards ball i, and rate of the gap; `side` is a cushion's number, or negative for another ball."""
        n, u = vec(0.0), v_i
        if side < 0:
            n = (x_i - x_j) / (x_i - x_j).norm()
            u = v_i - v_j
        else:
            n[side // 2] = 1 - 2 * (side % 2)
        return n, n.dot(u)

    @ti.func
    def adj_time_of_impact(n: vec, w: real, g: real):
        """Adjoints of x_i and r_i; those of a partner are -q n and -q, that of a cushion is -q n along its axis."""
        q = -g / w
        return q * n, -q

    @ti.func
    def jvp_time_of_impact(n: vec, w: real, dx: vec, dr: real) -> real:
        """Tangent, for the tangents of x_i less x_j or the cushion's coordinate, and of the sum of the radii."""
        return -(n.dot(dx) - dr) / w

    @ti.func
    def jvp_collision(
        balls: ti.template(), a, i, o, side, t, dballs: ti.template(), dtable: ti.template()
    ) -> real:  # fmt: skip
        """Tangent of the time after which ball i hits ball o or the cushion `side`, from that of the state before."""
        x_i, v_i = fly.flight(balls.x[i], balls.v[i], a, t)
        x_o, v_o = fly.flight(balls.x[o], balls.v[o], a, t)
        normal, w = approach(x_i, v_i, x_o, v_o, side)
        dgap, _ = fly.jvp_flight(balls.v[i], a, t, dballs.x[i], dballs.v[i], dtable.a[0], 0.0)
        dr = dtable.r[i]
        if side < 0:
            dx_o, _ = fly.jvp_flight(balls.v[o], a, t, dballs.x[o], dballs.v[o], dtable.a[0], 0.0)
            dgap -= dx_o
            dr += dtable.r[o]
        else:
            dgap -= vec(dtable.walls[ti.max(side, 0)])
        return jvp_time_of_impact(normal, w, dgap, dr)

    return SimpleNamespace(approach=approach, adj_time_of_impact=adj_time_of_impact, jvp_collision=jvp_collision)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Return the kernels of the nested sub-step for ball i and ball o, or the cushion `side` (then o is i)."""
    vec = ti.types.vector(2, real)
    f, fly = functions(real), flight.functions(real)
    types = arrays.types(real)
    balls_type, reals = types.balls, types.reals
    slopes = record(arrays.Table, r=types.reals, a=types.reals, walls=types.reals)

    @kernel
    def adjoint(
        balls: balls_type, a: real, i: ti.i32, o: ti.i32, side: ti.i32, t: real, adj_t: real,
        adj_balls: balls_type, adj_table: slopes,
    ):  # fmt: skip
        x_i, v_i = fly.flight(balls.x[i], balls.v[i], a, t)
        x_o, v_o = fly.flight(balls.x[o], balls.v[o], a, t)
        normal, w = f.approach(x_i, v_i, x_o, v_o, side)
        g, gr = f.adj_time_of_impact(normal, w, adj_t)
        if side >= 0:
            wall = ti.max(side, 0)
            adj_table.walls[wall] = -g.sum()
        for part in range(2):
            ball, sign = i, real(1.0)
            if part == 1:
                ball, sign = o, real(-1.0)
            if part == 0 or side < 0:
                gv, ga, _ = fly.adj_flight(balls.v[ball], a, t, sign * g, vec(0.0))
                adj_balls.x[ball] = sign * g
                adj_balls.v[ball] = gv
                adj_table.r[ball] = gr
                adj_table.a[ball] = ga

    @kernel
    def tangent(
        balls: balls_type, a: real, i: ti.i32, o: ti.i32, side: ti.i32, t: real,
        dballs: balls_type, dtable: slopes, dtime: reals,
    ):  # fmt: skip
        dtime[0] = f.jvp_collision(balls, a, i, o, side, t, dballs, dtable)

    return SimpleNamespace(adjoint=adjoint, tangent=tangent)


class TimeOfImpact(Function):
    """Time [] until ball i meets partner j, for balls at position and velocity [n, 2] with radius [n]."""

    @staticmethod
    def forward(
        ctx: Context, model: Billiards, i: int, j: int, position: Tensor, velocity: Tensor, radius: Tensor,
        deceleration: Tensor, lower: Tensor, upper: Tensor,
    ) -> np.ndarray[Any, Any]:  # fmt: skip
        time = np.empty(1, position.dtype)
        walls, end = search.stack_walls(lower.data, upper.data), AHEAD * model.dt
        search.kernels(runtime.real()).one(
            arrays.Balls(position, velocity),
            arrays.Table(r=radius, walls=walls),
            model.balls,
            i,
            j,
            float(deceleration),
            end,
            search.min_step(model),
            time,
        )
        ctx.model, ctx.time = model, float(time[0])
        ctx.partners = (i, j, -1) if j < model.balls else (i, i, j - model.balls)
        ctx.save_for_backward(position, velocity, deceleration)
        return time[0]

    @staticmethod
    def backward(ctx: Context, adj_time: Tensor) -> tuple[Any, ...]:
        position, velocity, deceleration = ctx.saved_tensors
        model: Billiards = ctx.model
        adj_x, adj_v = np.zeros_like(position.data), np.zeros_like(velocity.data)
        adj_r, adj_a = np.zeros(model.balls, position.dtype), np.zeros(model.balls, position.dtype)
        adj_walls = np.zeros(4, position.dtype)
        kernels(runtime.real()).adjoint(
            arrays.Balls(position, velocity), float(deceleration), *ctx.partners, ctx.time, float(adj_time),
            arrays.Balls(adj_x, adj_v), arrays.Table(r=adj_r, a=adj_a, walls=adj_walls),
        )  # fmt: skip
        corners = (adj_walls[0::2], adj_walls[1::2]) if model.cushions else (adj_walls[:0], adj_walls[:0])
        return None, None, None, adj_x, adj_v, adj_r, adj_a.sum(), *corners

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, ___: None, *tangents: Any) -> np.ndarray[Any, Any]:
        position, velocity, deceleration = ctx.saved_tensors
        dx, dv, dr, da, dlower, dupper = tangents
        dtime = np.empty(1, position.dtype)
        dtable = arrays.Table(r=dr, a=np.full(1, da, position.dtype), walls=search.stack_walls(dlower, dupper))
        kernels(runtime.real()).tangent(
            arrays.Balls(position, velocity), float(deceleration), *ctx.partners, ctx.time,
            arrays.Balls(dx, dv), dtable, dtime,
        )  # fmt: skip
        return dtime[0]
