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
    def flights(
        x: ti.template(), v: ti.template(), at, y: ti.template(), u: ti.template(), to, n, a, t
    ):  # fmt: skip
        """Fly all balls, stored from index `at` on, for a time t; store them from index `to` on."""
        for i in range(n):
            x_new, v_new = fly.flight(x[at + i], v[at + i], a, t)
            y[to + i] = x_new
            u[to + i] = v_new

    @ti.func
    def strike(
        x: ti.template(),
        v: ti.template(),
        at,
        m: ti.template(),
        of,
        c: ti.template(),
        side_c: ti.template(),
        b,
        n,
        i,
        j,
    ):
        """Update the velocities after an impact of ball i and partner j."""
        if j < n:
            p, q = at + i, at + j
            v_i, v_j = hit.impact(x[p] - x[q], v[p], v[q], m[of + i], m[of + j], c[b])
            v[p] = v_i
            v[q] = v_j
        else:
            axis = (j - n) // 2
            v[at + i][axis] = turn.bounce(v[at + i][axis], side_c[b])

    return SimpleNamespace(flights=flights, strike=strike)


@functools.cache
@no_type_check
def forward_kernel(real: Any, parallel: bool, spread: int) -> Any:
    """Return the forward loop; stuck[b] becomes the row of the step in which the impacts of member b do not end."""
    vec = ti.types.vector(2, real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    whole = ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, find = functions(real), search.functions(real)

    @kernel
    def forward(
        x: vectors, v: vectors, r: reals, m: reals, c: reals, side_c: reals, a: reals, walls: reals,
        h: real, least: real, n: ti.i32, partners: ti.i32, limit: ti.i32, members: ti.i32, rows: ti.i32,
        start: ti.i32, steps: ti.i32, stuck: whole,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for piece in range(members * spread):
            b = piece // spread
            if piece % spread == 0:
                for s in range(start, start + steps):
                    to = (b * rows + s + 1) * n
                    for i in range(n):
                        x[to + i] = x[to - n + i]
                        v[to + i] = v[to - n + i]
                    left, count, going = h, 0, stuck[b] == 0
                    while going:
                        t, i, j = find.first_meeting(x, v, to, r, b * n, walls, b * 4, n, partners, a[b], left, least)
                        f.flights(x, v, to, x, v, to, n, a[b], ti.min(t, left))
                        left -= t
                        count += 1
                        if i < 0:
                            going = False
                        elif count > limit:
                            stuck[b] = s + 1
                            going = False
                        else:
                            f.strike(x, v, to, m, b * n, c, side_c, b, n, i, j)

    return forward
