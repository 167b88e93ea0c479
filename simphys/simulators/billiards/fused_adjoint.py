"""Adjoint of the fused loops: recomputes the impacts of each step from its stored state, then reverses them."""

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
    """Return functions for the legs of a step, the flights between impacts: forward, and each in reverse.

    `legs` has the states before each leg, their durations, and the colliding pairs.
    """
    vec = ti.types.vector(2, real)
    f, find = fused.functions(real), search.functions(real)
    fly, hit, turn, meet = (module.functions(real) for module in (flight, impact, bounce, time_of_impact))

    @ti.func
    def trace_legs(legs: ti.template(), slots, table: ti.template(), limits: ti.template()):
        """Compute the legs from the state in slot `slots`; return the slot of the last, which ends with the step."""
        left, slot, going, n = limits.h, slots, True, limits.n
        while going:
            balls, after = ti.static(balls_from(legs.balls, slot * n), balls_from(legs.balls, (slot + 1) * n))
            t, i, j = find.first_impact(balls, table, n, limits.partners, table.a[0], left, limits.min_step)
            if i < 0 or slot == slots + limits.impacts:
                legs.times[slot] = left
                going = False
            else:
                legs.times[slot] = t
                legs.pair[slot, 0] = i
                legs.pair[slot, 1] = j
                f.fly_all(balls, after, n, table.a[0], t)
                f.strike(after, table, n, i, j)
                left -= t
                slot += 1
        return slot

    @ti.func
    def adj_leg(
        balls: ti.template(),
        t,
        has_impact,
        i,
        o,
        side,
        table: ti.template(),
        n,
        adj_left,
        adj_balls: ti.template(),
        adj_table: ti.template(),
    ):
        """Reverse the leg from the state `balls`. If `has_impact`, it ends as ball i hits ball o or the cushion `side`.

        For a cushion o is i. adj_balls: of the state after the leg on entry, of the state before it on return.
        Returns the adjoint of the time left for all later legs: each impact shortens that time.
        """
        a = table.a[0]
        g, q = ti.static(adj_balls.x, adj_balls.v)
        left, normal, rate = adj_left, vec(0.0), real(1.0)
        if has_impact:
            x_i, v_i = fly.flight(balls.x[i], balls.v[i], a, t)
            x_o, v_o = fly.flight(balls.x[o], balls.v[o], a, t)
            normal, rate = meet.approach(x_i, v_i, x_o, v_o, side)
            if side < 0:
                gd, g_i, g_o, gm_i, gm_o, gc = hit.adj_impact(
                    x_i - x_o, v_i, v_o, table.m[i], table.m[o], table.c[0], q[i], q[o]
                )
                g[i] = g[i] + gd
                g[o] = g[o] - gd
                q[i] = g_i
                q[o] = g_o
                adj_table.m[i] = adj_table.m[i] + gm_i
                adj_table.m[o] = adj_table.m[o] + gm_o
                adj_table.c[0] = adj_table.c[0] + gc
            else:
                axis = ti.max(side, 0) // 2
                v_k = v_i[0]
                if axis == 1:
                    v_k = v_i[1]
                gv, gc = turn.adj_bounce(v_k, table.side_c[0], q[i][axis])
                q[i][axis] = gv
                adj_table.side_c[0] = adj_table.side_c[0] + gc
        adj_t = real(0.0)
        for k in range(n):
            gv, ga, gt = fly.adj_flight(balls.v[k], a, t, g[k], q[k])
            q[k] = gv
            adj_table.a[0] = adj_table.a[0] + ga
            adj_t += gt
        if has_impact:
            gx, gr = meet.adj_time_of_impact(normal, rate, adj_t - left)
            if side >= 0:
                wall = ti.max(side, 0)
                adj_table.walls[wall] = adj_table.walls[wall] - gx.sum()
            for part in range(2):
                k, sign = i, real(1.0)
                if part == 1:
                    k, sign = o, real(-1.0)
                if part == 0 or side < 0:
                    gv, ga, _ = fly.adj_flight(balls.v[k], a, t, sign * gx, vec(0.0))
                    g[k] = g[k] + sign * gx
                    q[k] = q[k] + gv
                    adj_table.r[k] = adj_table.r[k] + gr
                    adj_table.a[0] = adj_table.a[0] + ga
        else:
            left = adj_t
        return left

    @ti.func
    def adj_stored_state(adj_stored: ti.template(), adj_balls: ti.template(), n):
        """Add the loss's derivatives by a stored state to the running adjoint."""
        for k in range(n):
            adj_balls.x[k] = adj_balls.x[k] + adj_stored.x[k]
            adj_balls.v[k] = adj_balls.v[k] + adj_stored.v[k]
            adj_stored.x[k] = adj_balls.x[k]
            adj_stored.v[k] = adj_balls.v[k]

    return SimpleNamespace(trace_legs=trace_legs, adj_leg=adj_leg, adj_stored_state=adj_stored_state)


@functools.cache
@no_type_check
def adjoint_kernel(real: Any, parallel: bool, spread: int) -> Any:
    """Return the kernel that reverses the steps of a segment.

    legs [members, limit + 1, n]: see `functions`. adj_segment: one row a member, or with `dense` one for each state.
    running [members, n]: adjoints that pass from step to step.
    """
    f, types = functions(real), arrays.types(real)
    balls_type, table_type, limits_type, legs_type = types.balls, types.table, types.limits, types.legs

    @kernel
    def adjoint(
        segment: balls_type, params: table_type, limits: limits_type, members: ti.i32, rows: ti.i32,
        steps: ti.i32, dense: ti.i32, legs: legs_type, running: balls_type, adj_segment: balls_type,
        adj_params: table_type,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for piece in range(members * spread):
            b = piece // spread
            if piece % spread == 0:
                n, slots = limits.n, b * (limits.impacts + 1)
                table, adj_table = ti.static(table_of(params, b, n), table_of(adj_params, b, n))
                ends = (b * (1 + dense * steps) + dense * steps) * n
                adj_balls, adj_end = ti.static(balls_from(running, b * n), balls_from(adj_segment, ends))
                for k in range(n):
                    adj_balls.x[k] = adj_end.x[k]
                    adj_balls.v[k] = adj_end.v[k]
                for back in range(steps):
                    row = b * rows + steps - 1 - back
                    for k in range(n):
                        legs.balls.x[slots * n + k] = segment.x[row * n + k]
                        legs.balls.v[slots * n + k] = segment.v[row * n + k]
                    last = f.trace_legs(legs, slots, table, limits)
                    adj_left = real(0.0)
                    for later in range(last - slots + 1):
                        slot = last - later
                        i, j = legs.pair[slot, 0], legs.pair[slot, 1]
                        o = i
                        if j < n:
                            o = j
                        balls = ti.static(balls_from(legs.balls, slot * n))
                        adj_left = f.adj_leg(
                            balls, legs.times[slot], later > 0, i, o, j - n, table, n, adj_left, adj_balls, adj_table
                        )
                    if dense:
                        f.adj_stored_state(ti.static(balls_from(adj_segment, ends - (1 + back) * n)), adj_balls, n)
                if not dense:
                    for k in range(n):
                        adj_segment.x[b * n + k] = adj_balls.x[k]
                        adj_segment.v[b * n + k] = adj_balls.v[k]

    return adjoint
