"""The adjoint kernel of the fused rollout: the stages of `fused.forward_kernel` in reverse."""

import functools
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from .fused import Variant, elements, indexing, types


# fmt: off
@functools.cache
@no_type_check
def adjoint_stage(variant: Variant) -> Any:
    """Stage q of step t in reverse, for one member or for all `members`."""
    serial, dense, width = variant.serial, variant.dense, variant.width
    actuated, damped, impulse = variant.actuated, variant.damped, variant.impulse
    needs_length = variant.rest_length or (actuated and (variant.amplitude or variant.control))
    spring_, external_, integrate_, actuate_ = elements(variant)
    indexing_ = indexing(variant)

    @ti.func
    def stage(
        x: ti.template(), v: ti.template(), k: ti.template(), c: ti.template(), L: ti.template(), amp: ti.template(),
        act: ti.template(), u: ti.template(), ends: ti.template(), start: ti.template(), incidence: ti.template(),
        a: ti.template(), b: ti.template(), m: ti.template(), g: ti.template(), floor: ti.template(),
        w: ti.template(), adj_f: ti.template(), work_d: ti.template(), work_v: ti.template(), work_f: ti.template(),
        work_u: ti.template(), adj_x: ti.template(), adj_v: ti.template(), dense_x: ti.template(),
        dense_v: ti.template(), adj_springs: ti.template(), adj_u: ti.template(), adj_nodes: ti.template(),
        adj_g: ti.template(), adj_floor: ti.template(), act_start: ti.template(), act_springs: ti.template(),
        n, S, A, rows, stages, spring_stride, node_stride, world_stride, control_stride, member, members, dense_rows,
        control_rows, e, t, q, time,
    ):
        j = t * stages + q
        node_rows = 2 * stages + 1
        for y in range(members * n):
            o, i = indexing_.split(y, n, member)
            now, p, z, own = (o * rows + j) * n + i, o * node_stride, o * world_stride, o * n + i
            kick, sums = p * stages + q * n + i, o * node_rows * n + i
            gx_new, gv_new = adj_x[own], adj_v[own]
            if ti.static(dense):  # noqa: SIM102 - decided when compiling
                if q == stages - 1:
                    row = (o * dense_rows + t + 1) * n + i
                    gx_new += dense_x[row]
                    gv_new += dense_v[row]
                    dense_x[row] = gx_new
                    dense_v[row] = gv_new
            w_i = gv_new + e * gx_new
            f = external_.force(x[now], v[now], m[p + i], g[z], floor[z])
            gv, gf, ga, gb = integrate_.adj_kick(v[now], f, a[kick], b[kick], w_i)
            adj_f[own] = gf
            gx, gv_force, gm, gg, gfloor = external_.adj(x[now], v[now], m[p + i], g[z], floor[z], gf)
            if ti.static(dense or variant.ground):
                adj_x[own] = gx_new + gx
            adj_v[own] = gv + gv_force
            if ti.static(variant.decay):
                adj_nodes[sums + 2 * q * n] = adj_nodes[sums + 2 * q * n] + ga
            if ti.static(impulse):
                w[own] = w_i
                adj_nodes[sums + (2 * q + 1) * n] = adj_nodes[sums + (2 * q + 1) * n] + gb
            if ti.static(variant.weight):
                adj_nodes[sums + 2 * stages * n] = adj_nodes[sums + 2 * stages * n] + gm
                adj_g[own] = adj_g[own] + gg
            if ti.static(variant.floor):
                adj_floor[own] = adj_floor[own] + gfloor
        for y in range(members * (S // width)):
            o, block = indexing_.split(y, S // width, member)
            now, p, at, to = (o * rows + j) * n, (o * spring_stride + block) * width, 0, 0
            if ti.static(actuated):
                at = o * control_stride + (time + t) * A
                to = (o * control_rows + time + t) * A
            springs = [block * width + r for r in ti.static(range(width))]
            h, i = [ends[s][0] for s in ti.static(springs)], [ends[s][1] for s in ti.static(springs)]
            d = [x[now + i[r]] - x[now + h[r]] for r in ti.static(range(width))]
            s = [v[now + i[r]] - v[now + h[r]] for r in ti.static(range(width))]
            rest = [
                indexing_.rest_length(L, amp, act, u, springs[r], p + r, at)
                for r in ti.static(range(width))
            ]
            adjoints = [
                spring_.adj(d[r], s[r], k[p + r], c[p + r], rest[r], adj_f[o * n + h[r]] - adj_f[o * n + i[r]])
                for r in ti.static(range(width))
            ]
            for r in ti.static(range(width)):
                own, end_h, end_i = o * S + springs[r], o * n + h[r], o * n + i[r]
                sums = o * 4 * S + springs[r]
                gd, gs, gk, gc, gL = adjoints[r]
                if ti.static(variant.stiffness):
                    adj_springs[sums] = adj_springs[sums] + gk
                if ti.static(variant.damping):
                    adj_springs[sums + S] = adj_springs[sums + S] + gc
                if ti.static(needs_length):
                    gamp, gu = 0.0, 0.0
                    if ti.static(actuated):
                        gL, gamp, gu = actuate_.adj(L[p + r], amp[p + r], u[at + act[springs[r]]], gL)
                    if ti.static(variant.rest_length):
                        adj_springs[sums + 2 * S] = adj_springs[sums + 2 * S] + gL
                    if ti.static(variant.amplitude):
                        adj_springs[sums + 3 * S] = adj_springs[sums + 3 * S] + gamp
                    if ti.static(variant.control and serial):
                        adj_u[to + act[springs[r]]] = adj_u[to + act[springs[r]]] + gu
                    if ti.static(variant.control and not serial):
                        work_u[own] = gu
                if ti.static(serial):  # d = x_i - x_h: end h takes the negative
                    adj_h, adj_i = adj_x[end_h], adj_x[end_i]
                    adj_x[end_h] = adj_h - gd
                    adj_x[end_i] = adj_i + gd
                    if ti.static(damped):
                        adj_h, adj_i = adj_v[end_h], adj_v[end_i]
                        adj_v[end_h] = adj_h - gs
                        adj_v[end_i] = adj_i + gs
                    if ti.static(impulse):
                        f = spring_.force(d[r], s[r], k[p + r], c[p + r], rest[r])
                        kicks = (o * node_rows + 2 * q + 1) * n
                        adj_nodes[kicks + h[r]] = adj_nodes[kicks + h[r]] + f.dot(w[end_h])
                        adj_nodes[kicks + i[r]] = adj_nodes[kicks + i[r]] - f.dot(w[end_i])
                else:
                    work_d[own] = gd
                    if ti.static(damped):
                        work_v[own] = gs
                    if ti.static(impulse):
                        work_f[own] = spring_.force(d[r], s[r], k[p + r], c[p + r], rest[r])
        if ti.static(not serial):
            for y in range(members * n):
                o, i = indexing_.split(y, n, member)
                own, kick = o * n + i, (o * node_rows + 2 * q + 1) * n + i
                gx, gv, gb, w_i = adj_x[own], adj_v[own], 0.0, adj_v[own]
                if ti.static(impulse):
                    gb, w_i = adj_nodes[kick], w[own]
                for r in range(start[i], start[i + 1]):
                    sign, s = 2 * (incidence[r] & 1) - 1, o * S + (incidence[r] >> 1)
                    gx += sign * work_d[s]
                    if ti.static(damped):
                        gv += sign * work_v[s]
                    if ti.static(impulse):
                        gb -= sign * work_f[s].dot(w_i)
                adj_x[own] = gx
                if ti.static(damped):
                    adj_v[own] = gv
                if ti.static(impulse):
                    adj_nodes[kick] = gb
        if ti.static(variant.control and not serial):
            for y in range(members * A):
                o, i = indexing_.split(y, A, member)
                to = (o * control_rows + time + t) * A + i
                gu = adj_u[to]
                for r in range(act_start[i], act_start[i + 1]):
                    gu += work_u[o * S + act_springs[r]]
                adj_u[to] = gu

    return stage


@functools.cache
@no_type_check
def adjoint_kernel(variant: Variant) -> Any:
    """Kernel that pulls the adjoint of the state, in adj_x and adj_v, back from stage `last` to stage `first`.

    Dense: `dense_x` and `dense_v`, one row per step, hold the derivative of the loss with respect to the state of each
    step. The running adjoint is added there, and the sum is pulled back further.

    Adjoints of parameters accumulate. `adj_springs` [B, 4, S] holds those of stiffness, damping, rest length and
    amplitude; `adj_nodes` [B, 2 stages + 1, n] those of a and b of each stage, and of the mass. Each group shares one
    array, since some Vulkan drivers bind no more than 32 arrays to a kernel.
    """
    real, serial, period = variant.real, variant.serial, max(variant.spread, 1)
    t = types(real, variant.dim)
    vectors, reals, floors, pairs, ints = t.vectors, t.reals, t.floors, t.pairs, t.ints
    stage = adjoint_stage(variant)

    @kernel
    def adjoint(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, amp: reals, act: ints, u: reals, ends: pairs,
        start: ints, incidence: ints, a: reals, b: reals, m: reals, g: vectors, floor: floors, drifts: reals,
        n: ti.i32, S: ti.i32, A: ti.i32, stages: ti.i32, spring_stride: ti.i32, node_stride: ti.i32,
        world_stride: ti.i32, control_stride: ti.i32, members: ti.i32, tasks: ti.i32,
        w: vectors, adj_f: vectors, work_d: vectors, work_v: vectors, work_f: vectors, work_u: reals,
        adj_x: vectors, adj_v: vectors, dense_x: vectors, dense_v: vectors, adj_springs: reals, adj_u: reals,
        adj_nodes: reals, adj_g: vectors, adj_floor: floors,
        act_start: ints, act_springs: ints, dense_rows: ti.i32, control_rows: ti.i32, rows: ti.i32, time: ti.i32,
        first: ti.i32, last: ti.i32,
    ):
        if ti.static(serial):
            ti.loop_config(serialize=variant.spread == 0)
            for y in range(tasks * period):
                if y % period == 0:
                    task = y // period
                    for member in range(task * members // tasks, (task + 1) * members // tasks):
                        for back in range(last // stages - first // stages):
                            for left in range(stages):
                                q = stages - 1 - left
                                stage(
                                    x, v, k, c, L, amp, act, u, ends, start, incidence, a, b, m, g, floor,
                                    w, adj_f, work_d, work_v, work_f, work_u, adj_x, adj_v, dense_x, dense_v,
                                    adj_springs, adj_u, adj_nodes, adj_g, adj_floor,
                                    act_start, act_springs, n, S, A, rows, stages, spring_stride, node_stride,
                                    world_stride, control_stride, member, 1, dense_rows, control_rows,
                                    drifts[q], last // stages - 1 - back, q, time,
                                )
        else:
            stage(
                x, v, k, c, L, amp, act, u, ends, start, incidence, a, b, m, g, floor,
                w, adj_f, work_d, work_v, work_f, work_u, adj_x, adj_v, dense_x, dense_v,
                adj_springs, adj_u, adj_nodes, adj_g, adj_floor,
                act_start, act_springs, n, S, A, rows, stages, spring_stride, node_stride,
                world_stride, control_stride, 0, members, dense_rows, control_rows,
                drifts[first % stages], first // stages, first % stages, time,
            )

    return adjoint
