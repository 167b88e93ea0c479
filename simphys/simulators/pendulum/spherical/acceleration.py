"""Angular acceleration of the spherical pendulum:

    alpha = d x G / L + (t - (t.d) d - c w) / (m L^2)                       [rad/s^2]

d direction (unit), w angular velocity [rad/s], G gravity [m/s^2], L length [m], m mass [kg], c damping [N m s/rad], t
torque [N m]. alpha is perpendicular to d if w is. Adjoint, for y = adj_alpha, r = 1 / (m L^2), F = t - (t.d) d - c w:

    adj_d = G x y / L - r ((t.d) y + (d.y) t)    adj_w = -c r y    adj_t = r (y - (d.y) d)    adj_c = -r w.y
    adj_G = y x d / L    adj_m = -r F.y / m    adj_L = -((d x G).y / L + 2 r F.y) / L

Source: the rate of the angular momentum m L^2 w of a point mass is the torque about its support.
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
    """The acceleration, its adjoint and tangent."""
    vec = ti.types.vector(3, real)

    @ti.func
    def acceleration(d: vec, w: vec, t: vec, L: real, m: real, c: real, G: vec) -> vec:
        return d.cross(G) / L + (t - t.dot(d) * d - c * w) / (m * L * L)

    @ti.func
    def adj_acceleration(d: vec, w: vec, t: vec, L: real, m: real, c: real, G: vec, y: vec):
        r = 1 / (m * L * L)
        pull = (t - t.dot(d) * d - c * w).dot(y)
        return (
            G.cross(y) / L - r * (t.dot(d) * y + d.dot(y) * t),
            -c * r * y,
            r * (y - d.dot(y) * d),
            -(d.cross(G).dot(y) / L + 2 * r * pull) / L,
            -r * pull / m,
            -r * w.dot(y),
            y.cross(d) / L,
        )

    @ti.func
    def jvp_acceleration(
        d: vec, w: vec, t: vec, L: real, m: real, c: real, G: vec,
        dd: vec, dw: vec, dt: vec, dL: real, dm: real, dc: real, dG: vec,
    ) -> vec:  # fmt: skip
        r = 1 / (m * L * L)
        pull = t - t.dot(d) * d - c * w
        dpull = dt - (dt.dot(d) + t.dot(dd)) * d - t.dot(d) * dd - dc * w - c * dw
        falling = (dd.cross(G) + d.cross(dG) - (dL / L) * d.cross(G)) / L
        return falling + r * (dpull - (dm / m + 2 * dL / L) * pull)

    return SimpleNamespace(acceleration=acceleration, adj=adj_acceleration, jvp=jvp_acceleration)


# fmt: off
@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels of the nested sub-step, for one pendulum."""
    vec, f = ti.types.vector(3, real), functions(real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(d: vectors, w: vectors, t: vectors, L: real, m: real, c: real, G: vectors, a: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            a[b] = f.acceleration(d[b], w[b], t[b], L, m, c, G[b])

    @kernel
    def adjoint(
        d: vectors, w: vectors, t: vectors, L: real, m: real, c: real, G: vectors, y: vectors,
        adj_d: vectors, adj_w: vectors, adj_t: vectors, adj_scalars: reals, adj_G: vectors,
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            gd, gw, gt, gL, gm, gc, gG = f.adj(d[b], w[b], t[b], L, m, c, G[b], y[b])
            adj_d[b] = gd
            adj_w[b] = gw
            adj_t[b] = gt
            adj_scalars[0] = gL
            adj_scalars[1] = gm
            adj_scalars[2] = gc
            adj_G[b] = gG

    @kernel
    def tangent(
        d: vectors, w: vectors, t: vectors, L: real, m: real, c: real, G: vectors,
        dd: vectors, dw: vectors, dt: vectors, dL: real, dm: real, dc: real, dG: vectors, da: vectors,
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            da[b] = f.jvp(d[b], w[b], t[b], L, m, c, G[b], dd[b], dw[b], dt[b], dL, dm, dc, dG[b])

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)
# fmt: on


class Acceleration(Function):
    """Angular acceleration [3] [rad/s^2] at direction and rate [3], under a torque [3] or None. Saved: the inputs."""

    @staticmethod
    def forward(
        ctx: Context, direction: Tensor, rate: Tensor, torque: Tensor | None, *params: Tensor
    ) -> np.ndarray[Any, Any]:
        ctx.driven = torque is not None
        ctx.save_for_backward(direction, rate, np.zeros(3, rate.dtype) if torque is None else torque, *params)
        a = np.empty((1, 3), rate.dtype)
        kernels(runtime.real()).forward(*as_arguments(ctx.saved_tensors), a)
        return a[0]

    @staticmethod
    def backward(ctx: Context, adj_a: Tensor) -> tuple[Any, ...]:
        adj_d, adj_w, adj_t, adj_G = (np.empty((1, 3), adj_a.dtype) for _ in range(4))
        adj_scalars = np.empty(3, adj_a.dtype)
        kernels(runtime.real()).adjoint(
            *as_arguments(ctx.saved_tensors), adj_a.data[None], adj_d, adj_w, adj_t, adj_scalars, adj_G
        )
        adj_L, adj_m, adj_c = adj_scalars
        return adj_d[0], adj_w[0], adj_t[0] if ctx.driven else None, adj_L, adj_m, adj_c, adj_G[0]

    @staticmethod
    def jvp(ctx: Context, dd: Any, dw: Any, dtorque: Any, *dparams: Any) -> np.ndarray[Any, Any]:
        saved = ctx.saved_tensors
        dt = dtorque if ctx.driven else np.zeros(3, saved[0].dtype)
        da = np.empty((1, 3), saved[0].dtype)
        kernels(runtime.real()).tangent(*as_arguments(saved), *as_arguments((dd, dw, dt, *dparams)), da)
        return da[0]


def as_arguments(values: Any) -> list[Any]:
    """Convert vectors to arrays of one vector, and scalars to numbers."""
    arrays = [np.asarray(getattr(each, "data", each) if isinstance(each, Tensor) else each) for each in values]
    return [each[None] if each.ndim else float(each) for each in arrays]
