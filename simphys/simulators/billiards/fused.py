"""Fused loops over time for a batch: the element functions of the sub-steps, applied from impact to impact.

Arrays are flat: ball i in row s of batch member b is at index (b * rows + s) * n + i.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import bounce, flight, impact, search


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Return the flight of all balls between two impacts, and the impact."""
    fly, hit, turn = flight.functions(real), impact.functions(real), bounce.functions(real)

    @ti.func
    def fly_all(
        x: ti.template(), v: ti.template(), x0, y: ti.template(), u: ti.template(), y0, n, a, t
    ):  # fmt: skip
        """Fly all balls, stored from index `x0` on, for a time t; store them from index `y0` on."""
        for i in range(n):
            x_new, v_new = fly.flight(x[x0 + i], v[x0 + i], a, t)
            y[y0 + i] = x_new
            u[y0 + i] = v_new

    @ti.func
    def strike(
        x: ti.template(),
        v: ti.template(),
        x0,
        m: ti.template(),
        m0,
        c: ti.template(),
        side_c: ti.template(),
        b,
        n,
        i,
        j,
    ):
        """Update the velocities after an impact of ball i and partner j."""
        if j < n:
            p, q = x0 + i, x0 + j
            v_i, v_j = hit.impact(x[p] - x[q], v[p], v[q], m[m0 + i], m[m0 + j], c[b])
            v[p] = v_i
            v[q] = v_j
        else:
            axis = (j - n) // 2
            v[x0 + i][axis] = turn.bounce(v[x0 + i][axis], side_c[b])

    return SimpleNamespace(fly_all=fly_all, strike=strike)


@functools.cache
@no_type_check
def forward_kernel(real: Any, parallel: bool, spread: int) -> Any:
    """Return the forward loop; failed[b] becomes the row of the step in which the impacts of member b do not end."""
    vec = ti.types.vector(2, real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    whole = ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, find = functions(real), search.functions(real)

    @kernel
    def forward(
        x: vectors, v: vectors, r: reals, m: reals, c: reals, side_c: reals, a: reals, walls: reals,
        h: real, min_step: real, n: ti.i32, partners: ti.i32, limit: ti.i32, members: ti.i32, rows: ti.i32,
        start: ti.i32, steps: ti.i32, failed: whole,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for piece in range(members * spread):
            b = piece // spread
            if piece % spread == 0:
                for s in range(start, start + steps):
                    row0 = (b * rows + s + 1) * n
                    for i in range(n):
                        x[row0 + i] = x[row0 - n + i]
                        v[row0 + i] = v[row0 - n + i]
                    left, count, going = h, 0, failed[b] == 0
                    while going:
                        t, i, j = find.first_impact(
                            x, v, row0, r, b * n, walls, b * 4, n, partners, a[b], left, min_step
                        )
                        f.fly_all(x, v, row0, x, v, row0, n, a[b], ti.min(t, left))
                        left -= t
                        count += 1
                        if i < 0:
                            going = False
                        elif count > limit:
                            failed[b] = s + 1
                            going = False
                        else:
                            f.strike(x, v, row0, m, b * n, c, side_c, b, n, i, j)

    return forward
