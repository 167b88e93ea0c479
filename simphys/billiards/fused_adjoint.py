"""The adjoint of the fused loops: each step's impacts are found again from its stored state, and reversed."""

import functools
from typing import Any, no_type_check

from ..autograd import kernel
from ..autograd.runtime import ti
from . import bounce, flight, fused, impact, impact_time, search


@functools.cache
@no_type_check
def adjoint_kernel(real: Any, parallel: bool, spread: int) -> Any:
    """Reverses the steps of a segment.

    y, u [members, limit + 1, n]: the states before each flight of a step. times, who: how long it lasts, and who meets
    then. adj_x, adj_v: one row a member, or with `dense` one for each state. g, q [members, n]: running adjoints.
    """
    vec = ti.types.vector(2, real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    whole = ti.types.ndarray(dtype=ti.i32, ndim=2)
    f, find = fused.functions(real), search.functions(real)
    fly, hit, turn, meet = (module.functions(real) for module in (flight, impact, bounce, impact_time))

    @kernel
    def adjoint(
        x: vectors, v: vectors, r: reals, m: reals, c: reals, side_c: reals, a: reals, walls: reals,
        h: real, least: real, n: ti.i32, partners: ti.i32, limit: ti.i32, members: ti.i32, rows: ti.i32,
        steps: ti.i32, dense: ti.i32, y: vectors, u: vectors, times: reals, who: whole, g: vectors, q: vectors,
        adj_x: vectors, adj_v: vectors, adj_r: reals, adj_m: reals, adj_c: reals, adj_side_c: reals, adj_a: reals,
        adj_walls: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for piece in range(members * spread):
            b = piece // spread
            if piece % spread == 0:
                of, slots = b * n, b * (limit + 1)
                ends = b * (1 + dense * steps) + dense * steps
                for k in range(n):
                    g[of + k] = adj_x[ends * n + k]
                    q[of + k] = adj_v[ends * n + k]
                for back in range(steps):
                    row = b * rows + steps - 1 - back
                    for k in range(n):
                        y[slots * n + k] = x[row * n + k]
                        u[slots * n + k] = v[row * n + k]
                    left, count, going = h, 0, True
                    while going:
                        slot = slots + count
                        t, i, j = find.first_meeting(
                            y, u, slot * n, r, of, walls, b * 4, n, partners, a[b], left, least
                        )
                        if i < 0 or count == limit:
                            times[slot] = left
                            going = False
                        else:
                            times[slot] = t
                            who[slot, 0] = i
                            who[slot, 1] = j
                            f.flights(y, u, slot * n, y, u, (slot + 1) * n, n, a[b], t)
                            f.strike(y, u, (slot + 1) * n, m, of, c, side_c, b, n, i, j)
                            left -= t
                            count += 1
                    adj_left = real(0.0)
                    for later in range(count + 1):
                        slot = slots + count - later
                        at, t = slot * n, times[slot]
                        i, j, o = 0, 0, 0
                        normal, rate = vec(0.0), real(1.0)
                        if later > 0:
                            i, j = who[slot, 0], who[slot, 1]
                            o = i
                            if j < n:
                                o = j
                            x_i, v_i = fly.flight(y[at + i], u[at + i], a[b], t)
                            x_o, v_o = fly.flight(y[at + o], u[at + o], a[b], t)
                            normal, rate = meet.approach(x_i, v_i, x_o, v_o, j - n)
                            if j < n:
                                gd, g_i, g_j, gm_i, gm_j, gc = hit.adj_impact(
                                    x_i - x_o, v_i, v_o, m[of + i], m[of + j], c[b], q[of + i], q[of + j]
                                )
                                g[of + i] = g[of + i] + gd
                                g[of + j] = g[of + j] - gd
                                q[of + i] = g_i
                                q[of + j] = g_j
                                adj_m[of + i] = adj_m[of + i] + gm_i
                                adj_m[of + j] = adj_m[of + j] + gm_j
                                adj_c[b] = adj_c[b] + gc
                            else:
                                axis = (j - n) // 2
                                gv, gc = turn.adj_bounce(
                                    ti.select(axis == 0, v_i[0], v_i[1]), side_c[b], q[of + i][axis]
                                )
                                q[of + i][axis] = gv
                                adj_side_c[b] = adj_side_c[b] + gc
                        adj_t = real(0.0)
                        for k in range(n):
                            gv, ga, gt = fly.adj_flight(u[at + k], a[b], t, g[of + k], q[of + k])
                            q[of + k] = gv
                            adj_a[b] = adj_a[b] + ga
                            adj_t += gt
                        if later == 0:
                            adj_left = adj_t
                        else:
                            gx, gr = meet.adj_impact_time(normal, rate, adj_t - adj_left)
                            if j >= n:
                                adj_walls[b * 4 + j - n] = adj_walls[b * 4 + j - n] - gx.sum()
                            for part in range(2):
                                if part == 0 or j < n:
                                    k, sign = i, real(1.0)
                                    if part == 1:
                                        k, sign = o, real(-1.0)
                                    gv, ga, _ = fly.adj_flight(u[at + k], a[b], t, sign * gx, vec(0.0))
                                    g[of + k] = g[of + k] + sign * gx
                                    q[of + k] = q[of + k] + gv
                                    adj_r[of + k] = adj_r[of + k] + gr
                                    adj_a[b] = adj_a[b] + ga
                    if dense:
                        for k in range(n):
                            p = (ends - 1 - back) * n + k
                            g[of + k] = g[of + k] + adj_x[p]
                            q[of + k] = q[of + k] + adj_v[p]
                            adj_x[p] = g[of + k]
                            adj_v[p] = q[of + k]
                if not dense:
                    for k in range(n):
                        adj_x[of + k] = g[of + k]
                        adj_v[of + k] = q[of + k]

    return adjoint
