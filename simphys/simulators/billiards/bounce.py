"""Bounce of a ball off a cushion, without friction: the normal velocity is reversed.

    v_k' = -c v_k                                                           [m/s]

k the axis across the cushion, c restitution [1]; the other component stays. Adjoint, for g = adj_v':

    adj_v_k = -c g_k        adj_c = -v_k g_k        tangent    dv_k' = -c dv_k - v_k dc

Source: Newton's law of restitution.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Return the element functions of the velocity across a cushion."""

    @ti.func
    def bounce(v: real, c: real) -> real:
        return -c * v

    @ti.func
    def adj_bounce(v: real, c: real, g: real):
        return -c * g, -v * g

    @ti.func
    def jvp_bounce(v: real, c: real, dv: real, dc: real) -> real:
        return -c * dv - v * dc

    return SimpleNamespace(bounce=bounce, adj_bounce=adj_bounce, jvp_bounce=jvp_bounce)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Return the kernels of the nested sub-step for one ball."""
    f = functions(real)
    reals, matrices = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=real, ndim=2)

    @kernel
    def forward(v: matrices, c: real, i: ti.i32, axis: ti.i32, v_new: matrices):
        v_new[i, axis] = f.bounce(v[i, axis], c)

    @kernel
    def adjoint(v: matrices, c: real, i: ti.i32, axis: ti.i32, adj_v_new: matrices, adj_v: matrices, adj_c: reals):
        gv, gc = f.adj_bounce(v[i, axis], c, adj_v_new[i, axis])
        adj_v[i, axis] = gv
        adj_c[0] = gc

    @kernel
    def tangent(v: matrices, c: real, i: ti.i32, axis: ti.i32, dv: matrices, dc: real, dv_new: matrices):
        dv_new[i, axis] = f.jvp_bounce(v[i, axis], c, dv[i, axis], dc)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Bounce(Function):
    """Velocity [n, 2] after ball i bounces off a cushion whose normal is `axis`, with restitution []."""

    @staticmethod
    def forward(ctx: Context, i: int, axis: int, velocity: Tensor, restitution: Tensor) -> np.ndarray[Any, Any]:
        ctx.indices = i, axis
        ctx.save_for_backward(velocity, restitution)
        v_new = velocity.data.copy()
        kernels(runtime.real()).forward(velocity, float(restitution), i, axis, v_new)
        return v_new

    @staticmethod
    def backward(ctx: Context, adj_v_new: Tensor) -> tuple[Any, ...]:
        velocity, restitution = ctx.saved_tensors
        adj_v, adj_c = adj_v_new.data.copy(), np.empty(1, velocity.dtype)
        kernels(runtime.real()).adjoint(velocity, float(restitution), *ctx.indices, adj_v_new, adj_v, adj_c)
        return None, None, adj_v, adj_c[0]

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, dv: Any, dc: Any) -> np.ndarray[Any, Any]:
        velocity, restitution = ctx.saved_tensors
        dv_new = dv.copy()
        kernels(runtime.real()).tangent(velocity, float(restitution), *ctx.indices, dv, float(dc), dv_new)
        return dv_new
