"""Kernels of the fused rollout: the element functions of the nested sub-steps in loops over time and members.

A segment's d and w are vectors [B, rows]. Torques t are [B, T]; without torques, `driven` is 0 and t is a single 0. The
workspace of the Runge-Kutta method holds the stages sd, sw and their accelerations sa, [B, 4] each.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from ..integrators import NODES, WEIGHTS
from . import acceleration, damp, drift, sphere


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The stages of the Runge-Kutta method for batch member b, and their sum."""
    vec = ti.types.vector(3, real)
    accelerate = acceleration.functions(real).acceleration

    @ti.func
    def stage_node(stage) -> real:
        return ti.Vector(NODES)[stage]

    @ti.func
    def stage_weight(stage) -> real:
        return ti.Vector(WEIGHTS)[stage]

    @ti.func
    def stages(
        d0: vec, w0: vec, t: vec, L: real, m: real, c: real, G: vec, b, h,
        sd: ti.template(), sw: ti.template(), sa: ti.template(),
    ):
        for s in range(4):
            d, w, here = d0, w0, b * 4 + s
            if s > 0:
                d += stage_node(s) * h * sw[here - 1].cross(sd[here - 1])
                w += stage_node(s) * h * sa[here - 1]
            sd[here] = d
            sw[here] = w
            sa[here] = accelerate(sd[here], sw[here], t, L, m, c, G)

    @ti.func
    def combine_stages(d0: vec, w0: vec, b, h, sd: ti.template(), sw: ti.template(), sa: ti.template()):
        """Compute the new state, not yet projected to the sphere."""
        d, w = d0, w0
        for s in range(4):
            d += stage_weight(s) * h * sw[b * 4 + s].cross(sd[b * 4 + s])
            w += stage_weight(s) * h * sa[b * 4 + s]
        return d, w

    return SimpleNamespace(
        stage_node=stage_node, stage_weight=stage_weight, stages=stages, combine_stages=combine_stages,
    )


@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Kernels that advance a segment, whose first row is step `first`, from row `start` on.

    A parallel loop has `spread` iterations per member, of which the first does the work.
    """
    vec = ti.types.vector(3, real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    f, project, accelerate = functions(real), sphere.functions(real).project, acceleration.functions(real).acceleration
    drift_, damp_ = drift.functions(real).drift, damp.functions(real).damp

    @kernel
    def rk4(
        d: vectors, w: vectors, t: vectors, L: reals, m: reals, c: reals, G: vectors, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        sd: vectors, sw: vectors, sa: vectors, start: ti.i32, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                for row in range(start, start + steps):
                    at = b * rows + row
                    torque = t[driven * (b * T + first + row)]
                    f.stages(d[at], w[at], torque, L[b], m[b], c[b], G[b], b, h, sd, sw, sa)
                    d_sum, w_sum = f.combine_stages(d[at], w[at], b, h, sd, sw, sa)
                    d_new, w_new = project(d_sum, w_sum)
                    d[at + 1] = d_new
                    w[at + 1] = w_new

    @kernel
    def variational(
        d: vectors, w: vectors, t: vectors, L: reals, m: reals, c: reals, G: vectors, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        start: ti.i32, steps: ti.i32,
    ):
        k = h / 2
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                for row in range(start, start + steps):
                    at = b * rows + row
                    torque = t[driven * (b * T + first + row)]
                    middle = w[at] + k * accelerate(d[at], w[at], torque, L[b], m[b], c[b], G[b])
                    d_new = drift_(d[at], middle, h)
                    kicked = middle + k * accelerate(d_new, vec(0.0), torque, L[b], m[b], c[b], G[b])
                    d[at + 1] = d_new
                    w[at + 1] = damp_(kicked, L[b], m[b], c[b], k)

    return SimpleNamespace(rk4=rk4, variational=variational)


@functools.cache
@no_type_check
def tangent_kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Kernels for the tangents dd, dw [B, rows], given their first row and dt .. dG of torques and parameters."""
    vec = ti.types.vector(3, real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    f, project, a = functions(real), sphere.functions(real), acceleration.functions(real)
    drift_, damp_ = drift.functions(real), damp.functions(real)

    @kernel
    def jvp_rk4(
        d: vectors, w: vectors, t: vectors, L: reals, m: reals, c: reals, G: vectors, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        sd: vectors, sw: vectors, sa: vectors,
        dd: vectors, dw: vectors, dt: vectors, dL: reals, dm: reals, dc: reals, dG: vectors, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                for row in range(steps):
                    at, at_t = b * rows + row, driven * (b * T + first + row)
                    f.stages(d[at], w[at], t[at_t], L[b], m[b], c[b], G[b], b, h, sd, sw, sa)
                    d_sum, w_sum = f.combine_stages(d[at], w[at], b, h, sd, sw, sa)
                    dd_sum, dw_sum = dd[at], dw[at]
                    slope_d, slope_w = vec(0.0), vec(0.0)  # tangent of the slope of the stage before
                    for s in range(4):
                        here = b * 4 + s
                        dd_s, dw_s = dd[at] + f.stage_node(s) * h * slope_d, dw[at] + f.stage_node(s) * h * slope_w
                        slope_d = dw_s.cross(sd[here]) + sw[here].cross(dd_s)
                        slope_w = a.jvp(
                            sd[here], sw[here], t[at_t], L[b], m[b], c[b], G[b],
                            dd_s, dw_s, dt[at_t], dL[b], dm[b], dc[b], dG[b],
                        )
                        dd_sum += f.stage_weight(s) * h * slope_d
                        dw_sum += f.stage_weight(s) * h * slope_w
                    dd_new, dw_new = project.jvp(d_sum, w_sum, dd_sum, dw_sum)
                    dd[at + 1] = dd_new
                    dw[at + 1] = dw_new

    @kernel
    def jvp_variational(
        d: vectors, w: vectors, t: vectors, L: reals, m: reals, c: reals, G: vectors, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        dd: vectors, dw: vectors, dt: vectors, dL: reals, dm: reals, dc: reals, dG: vectors, steps: ti.i32,
    ):
        k = h / 2
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                for row in range(steps):
                    at, at_t = b * rows + row, driven * (b * T + first + row)
                    middle = w[at] + k * a.acceleration(d[at], w[at], t[at_t], L[b], m[b], c[b], G[b])
                    dmiddle = dw[at] + k * a.jvp(
                        d[at], w[at], t[at_t], L[b], m[b], c[b], G[b],
                        dd[at], dw[at], dt[at_t], dL[b], dm[b], dc[b], dG[b],
                    )
                    dd_new = drift_.jvp(d[at], middle, h, dd[at], dmiddle)
                    kicked = middle + k * a.acceleration(d[at + 1], vec(0.0), t[at_t], L[b], m[b], c[b], G[b])
                    dkicked = dmiddle + k * a.jvp(
                        d[at + 1], vec(0.0), t[at_t], L[b], m[b], c[b], G[b],
                        dd_new, vec(0.0), dt[at_t], dL[b], dm[b], dc[b], dG[b],
                    )
                    dd[at + 1] = dd_new
                    dw[at + 1] = damp_.jvp(kicked, L[b], m[b], c[b], k, dkicked, dL[b], dm[b], dc[b])

    return SimpleNamespace(rk4=jvp_rk4, variational=jvp_variational)
