"""Drift of a variational step: a turn along a great circle, such that d x d' = h w.

    q = h w,   d' = q x d + sqrt(1 - q.q) d

q is perpendicular to d, and w to d' as well. This is the chord in the discrete Lagrangian
L_d = m L^2 |d' - d|^2 / (2 h) - h/2 (V(d) + V(d')), whose momentum is m L^2 w. No such d' exists for a turn by a right
angle or more, h |w| >= 1: the motion then ends in NaN. Adjoint, for y = adj_d', with r = sqrt(1 - q.q):

    adj_d = y x q + r y,   adj_q = d x y - (d.y / r) q,   adj_w = h adj_q

Source: Lee, Leok, McClamroch, Lagrangian mechanics and variational integrators on two-spheres, Int. J. Numer. Meth.
Engng 79 (2009), Corollary 3.1: for M_ij = 0 (i != j) it is explicit.
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
    """The drift, its adjoint and tangent."""
    vec = ti.types.vector(3, real)

    @ti.func
    def drift(d: vec, w: vec, h: real) -> vec:
        q = h * w
        return q.cross(d) + ti.sqrt(1 - q.dot(q)) * d

    @ti.func
    def adj_drift(d: vec, w: vec, h: real, y: vec):
        q = h * w
        r = ti.sqrt(1 - q.dot(q))
        return y.cross(q) + r * y, h * (d.cross(y) - (d.dot(y) / r) * q)

    @ti.func
    def jvp_drift(d: vec, w: vec, h: real, dd: vec, dw: vec) -> vec:
        q, dq = h * w, h * dw
        r = ti.sqrt(1 - q.dot(q))
        return dq.cross(d) + q.cross(dd) + r * dd - (q.dot(dq) / r) * d

    return SimpleNamespace(drift=drift, adj=adj_drift, jvp=jvp_drift)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels of the nested sub-step, for one pendulum."""
    f = functions(real)
    vectors = ti.types.ndarray(dtype=ti.types.vector(3, real), ndim=1)

    @kernel
    def forward(d: vectors, w: vectors, h: real, new: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            new[b] = f.drift(d[b], w[b], h)

    @kernel
    def adjoint(d: vectors, w: vectors, h: real, y: vectors, adj_d: vectors, adj_w: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            gd, gw = f.adj(d[b], w[b], h, y[b])
            adj_d[b] = gd
            adj_w[b] = gw

    @kernel
    def tangent(d: vectors, w: vectors, h: real, dd: vectors, dw: vectors, dnew: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            dnew[b] = f.jvp(d[b], w[b], h, dd[b], dw[b])

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Drift(Function):
    """Direction [3] after a time h at the rate [3]. Saved: the inputs."""

    @staticmethod
    def forward(ctx: Context, direction: Tensor, rate: Tensor, h: float) -> np.ndarray[Any, Any]:
        ctx.save_for_backward(direction, rate)
        ctx.h = h
        new = np.empty((1, 3), rate.dtype)
        kernels(runtime.real()).forward(direction.data[None], rate.data[None], h, new)
        return new[0]

    @staticmethod
    def backward(ctx: Context, adj_new: Tensor) -> tuple[Any, ...]:
        direction, rate = (each.data[None] for each in ctx.saved_tensors)
        adj_d, adj_w = np.empty_like(rate), np.empty_like(rate)
        kernels(runtime.real()).adjoint(direction, rate, ctx.h, adj_new.data[None], adj_d, adj_w)
        return adj_d[0], adj_w[0], None

    @staticmethod
    def jvp(ctx: Context, dd: Any, dw: Any, _: None) -> np.ndarray[Any, Any]:
        direction, rate = (each.data[None] for each in ctx.saved_tensors)
        dnew = np.empty_like(rate)
        kernels(runtime.real()).tangent(direction, rate, ctx.h, dd[None], dw[None], dnew)
        return dnew[0]
