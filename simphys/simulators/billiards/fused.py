"""Fused loops over time for a batch: the element functions of the sub-steps, applied from impact to impact.

Arrays are flat: ball i in row s of batch member b is at index (b * rows + s) * n + i.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import arrays, bounce, flight, impact, search
from .arrays import balls_from, table_of


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Return the flight of all balls between two impacts, and the impact."""
    fly, hit, turn = flight.functions(real), impact.functions(real), bounce.functions(real)

    @ti.func
    def fly_all(balls: ti.template(), new: ti.template(), n, a, t):
        """Fly all balls for a time t."""
        for i in range(n):
            x_new, v_new = fly.flight(balls.x[i], balls.v[i], a, t)
            new.x[i] = x_new
            new.v[i] = v_new

    @ti.func
    def strike(balls: ti.template(), table: ti.template(), n, i, j):
        """Update the velocities after an impact of ball i and partner j."""
        if j < n:
            v_i, v_j = hit.impact(balls.x[i] - balls.x[j], balls.v[i], balls.v[j], table.m[i], table.m[j], table.c[0])
            balls.v[i] = v_i
            balls.v[j] = v_j
        else:
            axis = (j - n) // 2
            balls.v[i][axis] = turn.bounce(balls.v[i][axis], table.side_c[0])

    return SimpleNamespace(fly_all=fly_all, strike=strike)


@functools.cache
@no_type_check
def forward_kernel(real: Any, parallel: bool, spread: int) -> Any:
    """Return the forward loop; failed[b] becomes the row of the step in which the impacts of member b do not end."""
    f, find, types = functions(real), search.functions(real), arrays.types(real)
    balls_type, table_type, limits_type = types.balls, types.table, types.limits
    whole = ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        segment: balls_type, params: table_type, limits: limits_type, members: ti.i32, rows: ti.i32,
        start: ti.i32, steps: ti.i32, failed: whole,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for piece in range(members * spread):
            b = piece // spread
            if piece % spread == 0:
                n = limits.n
                table = ti.static(table_of(params, b, n))
                for s in range(start, start + steps):
                    row0 = (b * rows + s + 1) * n
                    old, balls = ti.static(balls_from(segment, row0 - n), balls_from(segment, row0))
                    for i in range(n):
                        balls.x[i] = old.x[i]
                        balls.v[i] = old.v[i]
                    left, count, going = limits.h, 0, failed[b] == 0
                    while going:
                        t, i, j = find.first_impact(balls, table, n, limits.partners, table.a[0], left, limits.min_step)
                        f.fly_all(balls, balls, n, table.a[0], ti.min(t, left))
                        left -= t
                        count += 1
                        if i < 0:
                            going = False
                        elif count > limits.impacts:
                            failed[b] = s + 1
                            going = False
                        else:
                            f.strike(balls, table, n, i, j)

    return forward
