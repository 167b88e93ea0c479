"""Integration: kick the velocity by a force for a time h, then drift the position at the new velocity for a time e.

    v' = a v + b f,   a = exp(-drag h),   b = (h / m) exp(-drag r)      (a = b = 0 for a pinned node)
    x' = x + e v'

h, r and e [s] are the durations of kick, damp and drift of one stage (see MassSpring.stages). Adjoint, with
w = adj_v' + e adj_x':

    adj_x = adj_x'     adj_v = a w     adj_f = b w     adj_drag = -h a v.w - r b f.w     adj_m = -(b/m) f.w

Source: symplectic Euler and velocity Verlet, Hairer, Lubich and Wanner 2003, with the drag by Strang splitting.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.splitting import Stage

from .external import NODE_US
from .model import MassSpring


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions for nodes in `dim` dimensions."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def coefficients(drag: real, m: real, h: real, r: real, free: real):
        return free * ti.exp(-drag * h), free * h / m * ti.exp(-drag * r)

    @ti.func
    def adj_coefficients(drag: real, m: real, h: real, r: real, free: real, adj_a: real, adj_b: real):
        a, b = coefficients(drag, m, h, r, free)
        return -h * a * adj_a - r * b * adj_b, -b / m * adj_b

    @ti.func
    def jvp_coefficients(drag: real, m: real, h: real, r: real, free: real, ddrag: real, dm: real):
        a, b = coefficients(drag, m, h, r, free)
        return -h * a * ddrag, -r * b * ddrag - b / m * dm

    @ti.func
    def kick(v: vec, f: vec, a: real, b: real) -> vec:
        return a * v + b * f

    @ti.func
    def adj_kick(v: vec, f: vec, a: real, b: real, w: vec):
        return a * w, b * w, v.dot(w), f.dot(w)

    @ti.func
    def jvp_kick(v: vec, f: vec, a: real, b: real, dv: vec, df: vec, da: real, db: real) -> vec:
        return da * v + a * dv + db * f + b * df

    return SimpleNamespace(
        coefficients=coefficients, adj_coefficients=adj_coefficients, jvp_coefficients=jvp_coefficients,
        kick=kick, adj_kick=adj_kick, jvp_kick=jvp_kick,
    )  # fmt: skip


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, parallel: bool) -> SimpleNamespace:
    """Kernels of the nested sub-step: loops over the nodes."""
    vec = ti.types.vector(dim, real)
    f = functions(real, dim)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(
        x: vectors, v: vectors, force: vectors, m: reals, drag: reals, free: reals,
        h: real, r: real, e: real, n: ti.i32, x_new: vectors, v_new: vectors,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            a, b = f.coefficients(drag[i], m[i], h, r, free[i])
            v_new[i] = f.kick(v[i], force[i], a, b)
            x_new[i] = x[i] + e * v_new[i]

    @kernel
    def adjoint(
        v: vectors, force: vectors, m: reals, drag: reals, free: reals, h: real, r: real, e: real, n: ti.i32,
        adj_x_new: vectors, adj_v_new: vectors, adj_v: vectors, adj_force: vectors, adj_m: reals, adj_drag: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            a, b = f.coefficients(drag[i], m[i], h, r, free[i])
            gv, gf, ga, gb = f.adj_kick(v[i], force[i], a, b, adj_v_new[i] + e * adj_x_new[i])
            gdrag, gm = f.adj_coefficients(drag[i], m[i], h, r, free[i], ga, gb)
            adj_v[i] = gv
            adj_force[i] = gf
            adj_m[i] = gm
            adj_drag[i] = gdrag

    @kernel
    def tangent(
        v: vectors, force: vectors, m: reals, drag: reals, free: reals, h: real, r: real, e: real, n: ti.i32,
        dx: vectors, dv: vectors, dforce: vectors, dm: reals, ddrag: reals, dx_new: vectors, dv_new: vectors,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            a, b = f.coefficients(drag[i], m[i], h, r, free[i])
            da, db = f.jvp_coefficients(drag[i], m[i], h, r, free[i], ddrag[i], dm[i])
            dv_new[i] = f.jvp_kick(v[i], force[i], a, b, dv[i], dforce[i], da, db)
            dx_new[i] = dx[i] + e * dv_new[i]

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


@functools.cache
@no_type_check
def coefficient_kernels(real: Any) -> SimpleNamespace:
    """Kernels for the kick coefficients of all nodes at one stage, with their adjoint and tangent."""
    reals = ti.types.ndarray(dtype=real, ndim=1)
    f = functions(real, 1)

    @kernel
    def forward(drag: reals, m: reals, free: reals, h: real, r: real, n: ti.i32, a: reals, b: reals):
        for i in range(n):
            a[i], b[i] = f.coefficients(drag[i], m[i], h, r, free[i])

    @kernel
    def adjoint(
        drag: reals,
        m: reals,
        free: reals,
        h: real,
        r: real,
        n: ti.i32,
        adj_a: reals,
        adj_b: reals,
        adj_drag: reals,
        adj_m: reals,
    ):
        for i in range(n):
            gdrag, gm = f.adj_coefficients(drag[i], m[i], h, r, free[i], adj_a[i], adj_b[i])
            adj_drag[i] = adj_drag[i] + gdrag
            adj_m[i] = adj_m[i] + gm

    @kernel
    def tangent(
        drag: reals, m: reals, free: reals, h: real, r: real, n: ti.i32, ddrag: reals, dm: reals, da: reals, db: reals
    ):
        for i in range(n):
            da[i], db[i] = f.jvp_coefficients(drag[i], m[i], h, r, free[i], ddrag[i], dm[i])

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Integrate(Function):
    """New position and velocity, both [n, dim], after one stage under `force` [n, dim].

    Saved: velocity, force, mass [n], drag [n]. Pinned nodes stay, with velocity 0.
    """

    @staticmethod
    def forward(
        ctx: Context, model: MassSpring, stage: Stage,
        position: Tensor, velocity: Tensor, force: Tensor, mass: Tensor, drag: Tensor,
    ) -> tuple[Any, Any]:  # fmt: skip
        ctx.model, ctx.lengths = model, (*stage, model.nodes)
        ctx.save_for_backward(velocity, force, mass, drag)
        x_new, v_new = np.empty_like(position.data), np.empty_like(velocity.data)
        _kernels(model).forward(position, velocity, force, mass, drag, model.free, *ctx.lengths, x_new, v_new)
        return x_new, v_new

    @staticmethod
    def backward(ctx: Context, adj_x_new: Tensor, adj_v_new: Tensor) -> tuple[Any, ...]:
        model: MassSpring = ctx.model
        velocity, force, mass, drag = ctx.saved_tensors
        adj_v, adj_force, adj_m, adj_drag = (np.empty_like(value.data) for value in ctx.saved_tensors)
        _kernels(model).adjoint(
            velocity,
            force,
            mass,
            drag,
            model.free,
            *ctx.lengths,
            adj_x_new,
            adj_v_new,
            adj_v,
            adj_force,
            adj_m,
            adj_drag,
        )
        return None, None, adj_x_new, adj_v, adj_force, adj_m, adj_drag

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, dx: Any, *tangents: Any) -> tuple[Any, Any]:
        model: MassSpring = ctx.model
        dx_new, dv_new = np.empty_like(dx), np.empty_like(dx)
        _kernels(model).tangent(*ctx.saved_tensors, model.free, *ctx.lengths, dx, *tangents, dx_new, dv_new)
        return dx_new, dv_new


def _kernels(model: MassSpring) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, runtime.parallel(NODE_US * model.nodes))
