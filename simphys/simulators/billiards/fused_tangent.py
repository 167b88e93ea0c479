"""Tangent of the fused loops: the legs of each step are computed again from its stored state, with their tangents."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import arrays, bounce, flight, fused, impact, search, time_of_impact
from .arrays import balls_from, table_of


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Return the tangents of the flight of all balls between two impacts, and of the impact."""
    fly, hit, turn = flight.functions(real), impact.functions(real), bounce.functions(real)

    @ti.func
    def jvp_fly_all(balls: ti.template(), dballs: ti.template(), n, a, t, da, dt):
        """Push the tangents of all balls through a flight from the state `balls`."""
        for i in range(n):
            dx, dv = fly.jvp_flight(balls.v[i], a, t, dballs.x[i], dballs.v[i], da, dt)
            dballs.x[i] = dx
            dballs.v[i] = dv

    @ti.func
    def jvp_strike(
        balls: ti.template(), dballs: ti.template(), table: ti.template(), dtable: ti.template(), i, o, axis
    ):
        """Push the tangents through an impact of ball i and ball o, or a cushion across `axis`, from the state before.

        The axis of an impact of two balls is negative.
        """
        if axis < 0:
            dv_i, dv_o = hit.jvp_impact(
                balls.x[i] - balls.x[o], balls.v[i], balls.v[o], table.m[i], table.m[o], table.c[0],
                dballs.x[i] - dballs.x[o], dballs.v[i], dballs.v[o], dtable.m[i], dtable.m[o], dtable.c[0],
            )  # fmt: skip
            dballs.v[i] = dv_i
            dballs.v[o] = dv_o
        else:
            k = ti.max(axis, 0)
            dballs.v[i][k] = turn.jvp_bounce(balls.v[i][k], table.side_c[0], dballs.v[i][k], dtable.side_c[0])

    return SimpleNamespace(jvp_fly_all=jvp_fly_all, jvp_strike=jvp_strike)


@functools.cache
@no_type_check
def tangent_kernel(real: Any, parallel: bool, spread: int) -> Any:
    """Return the kernel that pushes the tangent of the first state of a segment through its steps.

    work [members, n]: the state within a step. dsegment [members, steps + 1, n]: all tangents, at first row 0.
    """
    f, df, find, meet = fused.functions(real), functions(real), search.functions(real), time_of_impact.functions(real)
    types = arrays.types(real)
    balls_type, table_type, limits_type = types.balls, types.table, types.limits

    @kernel
    def tangent(
        segment: balls_type, params: table_type, limits: limits_type, members: ti.i32, rows: ti.i32,
        steps: ti.i32, work: balls_type, dsegment: balls_type, dparams: table_type,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for piece in range(members * spread):
            b = piece // spread
            if piece % spread == 0:
                n = limits.n
                table, dtable = ti.static(table_of(params, b, n), table_of(dparams, b, n))
                balls = ti.static(balls_from(work, b * n))
                a, da = table.a[0], dtable.a[0]
                for s in range(steps):
                    row, drow = (b * rows + s) * n, (b * (steps + 1) + s) * n
                    dballs = ti.static(balls_from(dsegment, drow + n))
                    for k in range(n):
                        balls.x[k] = segment.x[row + k]
                        balls.v[k] = segment.v[row + k]
                        dballs.x[k] = dsegment.x[drow + k]
                        dballs.v[k] = dsegment.v[drow + k]
                    left, dleft, count, going = limits.h, real(0.0), 0, True
                    while going:
                        t, i, j = find.first_impact(balls, table, n, limits.partners, a, left, limits.min_step)
                        if i < 0 or count == limits.impacts:
                            df.jvp_fly_all(balls, dballs, n, a, left, da, dleft)
                            going = False
                        else:
                            o, axis = i, (j - n) // 2
                            if j < n:
                                o, axis = j, -1
                            dt = meet.jvp_collision(balls, a, i, o, j - n, t, dballs, dtable)
                            df.jvp_fly_all(balls, dballs, n, a, t, da, dt)
                            f.fly_all(balls, balls, n, a, t)
                            df.jvp_strike(balls, dballs, table, dtable, i, o, axis)
                            f.strike(balls, table, n, i, j)
                            left -= t
                            dleft -= dt
                            count += 1

    return tangent
