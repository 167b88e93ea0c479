"""Adjoint of the fused loops: recomputes the impacts of each step from its stored state, then reverses them."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import bounce, flight, fused, impact, search, time_of_impact


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Return functions for the legs of a step, the flights between impacts: forward, and each in reverse.

    y, u [limit + 1, n]: the states before each leg. times, pair: duration of each leg, and its colliding pair.
    """
    vec = ti.types.vector(2, real)
    f, find = fused.functions(real), search.functions(real)
    fly, hit, turn, meet = (module.functions(real) for module in (flight, impact, bounce, time_of_impact))

    @ti.func
    def trace_legs(
        y: ti.template(), u: ti.template(), times: ti.template(), pair: ti.template(), slots, r: ti.template(),
        m: ti.template(), c: ti.template(), side_c: ti.template(), a, walls: ti.template(), h, min_step, n, partners,
        limit, b,
    ):  # fmt: skip
        """Compute the legs from the state in the first slot; return the slot of the last, which ends with the step."""
        left, slot, going = h, slots, True
        while going:
            t, i, j = find.first_impact(y, u, slot * n, r, b * n, walls, b * 4, n, partners, a, left, min_step)
            if i < 0 or slot == slots + limit:
                times[slot] = left
                going = False
            else:
                times[slot] = t
                pair[slot, 0] = i
                pair[slot, 1] = j
                f.fly_all(y, u, slot * n, y, u, (slot + 1) * n, n, a, t)
                f.strike(y, u, (slot + 1) * n, m, b * n, c, side_c, b, n, i, j)
                left -= t
                slot += 1
        return slot

    @ti.func
    def adj_leg(
        y: ti.template(), u: ti.template(), leg0, t, has_impact, i, o, side, m: ti.template(), c: ti.template(),
        side_c: ti.template(), a, n, b, adj_left, g: ti.template(), q: ti.template(), adj_r: ti.template(),
        adj_m: ti.template(), adj_c: ti.template(), adj_side_c: ti.template(), adj_a: ti.template(),
        adj_walls: ti.template(),
    ):  # fmt: skip
        """Reverse the leg from index `leg0` on. If `has_impact`, it ends as ball i hits ball o or the cushion `side`.

        For a cushion o is i. g, q: adjoints of the state after the leg on entry, of the state before it on return.
        Returns the adjoint of the time left for all later legs: each impact shortens that time.
        """
        ball0 = b * n
        left, normal, rate = adj_left, vec(0.0), real(1.0)
        if has_impact:
            x_i, v_i = fly.flight(y[leg0 + i], u[leg0 + i], a, t)
            x_o, v_o = fly.flight(y[leg0 + o], u[leg0 + o], a, t)
            normal, rate = meet.approach(x_i, v_i, x_o, v_o, side)
            if side < 0:
                gd, g_i, g_o, gm_i, gm_o, gc = hit.adj_impact(
                    x_i - x_o, v_i, v_o, m[ball0 + i], m[ball0 + o], c[b], q[ball0 + i], q[ball0 + o]
                )
                g[ball0 + i] = g[ball0 + i] + gd
                g[ball0 + o] = g[ball0 + o] - gd
                q[ball0 + i] = g_i
                q[ball0 + o] = g_o
                adj_m[ball0 + i] = adj_m[ball0 + i] + gm_i
                adj_m[ball0 + o] = adj_m[ball0 + o] + gm_o
                adj_c[b] = adj_c[b] + gc
            else:
                axis = ti.max(side, 0) // 2
                v_k = v_i[0]
                if axis == 1:
                    v_k = v_i[1]
                gv, gc = turn.adj_bounce(v_k, side_c[b], q[ball0 + i][axis])
                q[ball0 + i][axis] = gv
                adj_side_c[b] = adj_side_c[b] + gc
        adj_t = real(0.0)
        for k in range(n):
            gv, ga, gt = fly.adj_flight(u[leg0 + k], a, t, g[ball0 + k], q[ball0 + k])
            q[ball0 + k] = gv
            adj_a[b] = adj_a[b] + ga
            adj_t += gt
        if has_impact:
            gx, gr = meet.adj_time_of_impact(normal, rate, adj_t - left)
            if side >= 0:
                wall = b * 4 + ti.max(side, 0)
                adj_walls[wall] = adj_walls[wall] - gx.sum()
            for part in range(2):
                k, sign = i, real(1.0)
                if part == 1:
                    k, sign = o, real(-1.0)
                if part == 0 or side < 0:
                    gv, ga, _ = fly.adj_flight(u[leg0 + k], a, t, sign * gx, vec(0.0))
                    g[ball0 + k] = g[ball0 + k] + sign * gx
                    q[ball0 + k] = q[ball0 + k] + gv
                    adj_r[ball0 + k] = adj_r[ball0 + k] + gr
                    adj_a[b] = adj_a[b] + ga
        else:
            left = adj_t
        return left

    @ti.func
    def adj_stored_state(
        adj_x: ti.template(), adj_v: ti.template(), row0, g: ti.template(), q: ti.template(), ball0, n
    ):
        """Add the loss's derivatives by a stored state to the running adjoint."""
        for k in range(n):
            g[ball0 + k] = g[ball0 + k] + adj_x[row0 + k]
            q[ball0 + k] = q[ball0 + k] + adj_v[row0 + k]
            adj_x[row0 + k] = g[ball0 + k]
            adj_v[row0 + k] = q[ball0 + k]

    return SimpleNamespace(trace_legs=trace_legs, adj_leg=adj_leg, adj_stored_state=adj_stored_state)


@functools.cache
@no_type_check
def adjoint_kernel(real: Any, parallel: bool, spread: int) -> Any:
    """Return the kernel that reverses the steps of a segment.

    y, u [members, limit + 1, n], times, pair: see `functions`. adj_x, adj_v: one row a member, or with `dense` one for
    each state. g, q [members, n]: running adjoints.
    """
    vec = ti.types.vector(2, real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    whole = ti.types.ndarray(dtype=ti.i32, ndim=2)
    f = functions(real)

    @kernel
    def adjoint(
        x: vectors, v: vectors, r: reals, m: reals, c: reals, side_c: reals, a: reals, walls: reals,
        h: real, min_step: real, n: ti.i32, partners: ti.i32, limit: ti.i32, members: ti.i32, rows: ti.i32,
        steps: ti.i32, dense: ti.i32, y: vectors, u: vectors, times: reals, pair: whole, g: vectors, q: vectors,
        adj_x: vectors, adj_v: vectors, adj_r: reals, adj_m: reals, adj_c: reals, adj_side_c: reals, adj_a: reals,
        adj_walls: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for piece in range(members * spread):
            b = piece // spread
            if piece % spread == 0:
                ball0, slots = b * n, b * (limit + 1)
                ends = (b * (1 + dense * steps) + dense * steps) * n
                for k in range(n):
                    g[ball0 + k] = adj_x[ends + k]
                    q[ball0 + k] = adj_v[ends + k]
                for back in range(steps):
                    row = b * rows + steps - 1 - back
                    for k in range(n):
                        y[slots * n + k] = x[row * n + k]
                        u[slots * n + k] = v[row * n + k]
                    last = f.trace_legs(
                        y, u, times, pair, slots, r, m, c, side_c, a[b], walls, h, min_step, n, partners, limit, b
                    )
                    adj_left = real(0.0)
                    for later in range(last - slots + 1):
                        slot = last - later
                        i, j = pair[slot, 0], pair[slot, 1]
                        o = i
                        if j < n:
                            o = j
                        adj_left = f.adj_leg(
                            y, u, slot * n, times[slot], later > 0, i, o, j - n, m, c, side_c, a[b], n, b, adj_left,
                            g, q, adj_r, adj_m, adj_c, adj_side_c, adj_a, adj_walls,
                        )  # fmt: skip
                    if dense:
                        f.adj_stored_state(adj_x, adj_v, ends - (1 + back) * n, g, q, ball0, n)
                if not dense:
                    for k in range(n):
                        adj_x[ball0 + k] = g[ball0 + k]
                        adj_v[ball0 + k] = q[ball0 + k]

    return adjoint
