"""Damping of the joint in the second half of a variational step, of duration k = h/2, implicit in the new rate:

    w' = w - k c / (m L^2) w',   that is   w' = w / f,   f = 1 + k c / (m L^2)

The first half is explicit in the rate at its start. Thus the step is symmetric in time, and of order 2. Adjoint, for
y = adj_w': adj_w = y / f, and with adj_f = -w.y / f^2 and r = k / (m L^2): adj_c = r adj_f, adj_m = -r c adj_f / m,
adj_L = -2 r c adj_f / L. Source: Marsden and West, Acta Numerica 2001, section 3.2 (forcing at both ends of a step).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from .acceleration import as_arguments


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The damped rate, its adjoint and tangent."""
    vec = ti.types.vector(3, real)

    @ti.func
    def damp(w: vec, L: real, m: real, c: real, k: real) -> vec:
        return w / (1 + k * c / (m * L * L))

    @ti.func
    def adj_damp(w: vec, L: real, m: real, c: real, k: real, y: vec):
        r = k / (m * L * L)
        f = 1 + r * c
        adj_f = -w.dot(y) / (f * f)
        return y / f, -2 * r * c * adj_f / L, -r * c * adj_f / m, r * adj_f

    @ti.func
    def jvp_damp(w: vec, L: real, m: real, c: real, k: real, dw: vec, dL: real, dm: real, dc: real) -> vec:
        r = k / (m * L * L)
        f = 1 + r * c
        df = r * (dc - c * (dm / m + 2 * dL / L))
        return (dw - (df / f) * w) / f

    return SimpleNamespace(damp=damp, adj=adj_damp, jvp=jvp_damp)


# fmt: off
@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels of the nested sub-step, for one pendulum."""
    f = functions(real)
    vectors, reals = ti.types.ndarray(dtype=ti.types.vector(3, real), ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(w: vectors, L: real, m: real, c: real, k: real, new: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            new[b] = f.damp(w[b], L, m, c, k)

    @kernel
    def adjoint(w: vectors, L: real, m: real, c: real, k: real, y: vectors, adj_w: vectors, adj_scalars: reals):
        ti.loop_config(serialize=True)
        for b in range(1):
            gw, gL, gm, gc = f.adj(w[b], L, m, c, k, y[b])
            adj_w[b] = gw
            adj_scalars[0] = gL
            adj_scalars[1] = gm
            adj_scalars[2] = gc

    @kernel
    def tangent(
        w: vectors, L: real, m: real, c: real, k: real, dw: vectors, dL: real, dm: real, dc: real, dnew: vectors
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            dnew[b] = f.jvp(w[b], L, m, c, k, dw[b], dL, dm, dc)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)
# fmt: on


class Damp(Function):
    """Rate [3] after damping for a time k, from rate [3], length, mass and damping. Saved: the inputs."""

    @staticmethod
    def forward(ctx: Context, k: float, *inputs: Tensor) -> np.ndarray[Any, Any]:
        ctx.k = k
        ctx.save_for_backward(*inputs)
        new = np.empty((1, 3), inputs[0].dtype)
        kernels(runtime.real()).forward(*as_arguments(inputs), k, new)
        return new[0]

    @staticmethod
    def backward(ctx: Context, adj_new: Tensor) -> tuple[Any, ...]:
        adj_w, adj_scalars = np.empty((1, 3), adj_new.dtype), np.empty(3, adj_new.dtype)
        kernels(runtime.real()).adjoint(*as_arguments(ctx.saved_tensors), ctx.k, adj_new.data[None], adj_w, adj_scalars)
        return None, adj_w[0], *adj_scalars

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        saved = ctx.saved_tensors
        dnew = np.empty((1, 3), saved[0].dtype)
        kernels(runtime.real()).tangent(*as_arguments(saved), ctx.k, *as_arguments(tangents), dnew)
        return dnew[0]
