"""The tangent kernel of the fused rollout: the change of all states with the initial state and the parameters."""

import functools
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from .fused import Variant, elements, types


# fmt: off
@functools.cache
@no_type_check
def tangent_kernel(variant: Variant) -> Any:
    """Kernel that computes the tangents dx, dv of the states up to stage `last`, from their given first rows.

    Every tangent has the memory layout of its value.
    """
    real, actuated, period = variant.real, variant.actuated, max(variant.spread, 1)
    t = types(real, variant.dim)
    vectors, reals, floors, pairs, ints = t.vectors, t.reals, t.floors, t.pairs, t.ints
    spring_, external_, integrate_, actuate_ = elements(variant)

    @kernel
    def tangent(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, amp: reals, act: ints, u: reals, ends: pairs,
        start: ints, incidence: ints, a: reals, b: reals, m: reals, g: vectors, floor: floors, drifts: reals,
        n: ti.i32, S: ti.i32, A: ti.i32, stages: ti.i32, spring_stride: ti.i32, node_stride: ti.i32,
        world_stride: ti.i32, control_stride: ti.i32, members: ti.i32, tasks: ti.i32,
        f: vectors, df: vectors, dx: vectors, dv: vectors, dk: reals, dc: reals, dL: reals, damp: reals, du: reals,
        da: reals, db: reals, dm: reals, dg: vectors, dfloor: floors, rows: ti.i32, time: ti.i32, last: ti.i32,
    ):
        ti.loop_config(serialize=variant.spread == 0)
        for y in range(tasks * period):
            if y % period == 0:
                task = y // period
                for member in range(task * members // tasks, (task + 1) * members // tasks):
                    own, o, z = member * n, member * node_stride, member * world_stride
                    springs = member * spring_stride * variant.width
                    for j in range(last):
                        q, now, at = j % stages, (member * rows + j) * n, 0
                        if ti.static(actuated):
                            at = member * control_stride + (time + j // stages) * A
                        for i in range(n):
                            x_i, v_i, dx_i, dv_i = x[now + i], v[now + i], dx[now + i], dv[now + i]
                            f[own + i] = external_.force(x_i, v_i, m[o + i], g[z], floor[z])
                            df[own + i] = external_.jvp(
                                x_i, v_i, m[o + i], g[z], floor[z], dx_i, dv_i, dm[o + i], dg[z], dfloor[z]
                            )
                        for s in range(S):
                            p, h, i = springs + s, ends[s][0], ends[s][1]
                            d, w = x[now + i] - x[now + h], v[now + i] - v[now + h]
                            dd, dw = dx[now + i] - dx[now + h], dv[now + i] - dv[now + h]
                            rest, drest = L[p], dL[p]
                            if ti.static(actuated):
                                control, dcontrol = u[at + act[s]], du[at + act[s]]
                                rest = actuate_.rest_length(L[p], amp[p], control)
                                drest = actuate_.jvp(L[p], amp[p], control, dL[p], damp[p], dcontrol)
                            force = spring_.force(d, w, k[p], c[p], rest)
                            dforce = spring_.jvp(d, w, k[p], c[p], rest, dd, dw, dk[p], dc[p], drest)
                            f[own + h] = f[own + h] + force
                            f[own + i] = f[own + i] - force
                            df[own + h] = df[own + h] + dforce
                            df[own + i] = df[own + i] - dforce
                        for i in range(n):
                            p, new = o * stages + q * n + i, now + n + i
                            dv_new = integrate_.jvp_kick(
                                v[now + i], f[own + i], a[p], b[p], dv[now + i], df[own + i], da[p], db[p]
                            )
                            dv[new] = dv_new
                            dx[new] = dx[now + i] + drifts[q] * dv_new

    return tangent
