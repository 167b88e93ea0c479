"""Flight of a ball between impacts: it rolls straight, slowed by the cloth, until it rests.

With u = |v|, e = v / u and q = min(a t / u, 1), the fraction of its speed lost to the cloth, after a time t

    x' = x + v s (1 - q / 2),   v' = v (1 - q),   s = min(t, u / a)         [m], [m/s]

a deceleration [m/s^2], t [s]: a parabola along the velocity, exact for any t. Adjoint, for g = adj_x', h = adj_v',
of a ball still in motion, q < 1, with p = h + t g / 2 and its component across the velocity, p_ = p - e (e.p):

    adj_x = g     adj_v = t g + h - (a t / u) p_     adj_a = -t e.p     adj_t = v'.g - a e.h

and of a ball at rest, x' = x + v u / (2 a), v' = 0:

    adj_x = g     adj_v = (u g + v (e.g)) / (2 a)    adj_a = -u (v.g) / (2 a^2)    adj_t = 0

Tangent, with de = (dv - e (e.dv)) / u, of a ball in motion and of one at rest:

    dv' = dv - (t da + a dt) e - a t de      dx' = dx + t dv + dt v' - t (t da e + a t de) / 2
    dv' = 0                                  dx' = dx + (u dv + v (e.dv)) / (2 a) - u v da / (2 a^2)

Both forms give the same x' at q = 1. There v' has a kink and the ball counts as resting: the derivative is the
one-sided one towards less speed. A ball at rest stays; its derivatives of x' by v are the limits for small speed: 0, or
t without a deceleration. For a < 0 the first form continues, so that derivatives by a are two-sided at a = 0.
Source: Coulomb friction, a deceleration independent of speed, integrated in time.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

NEVER = 1e30
"""Rest time of a ball without deceleration [s]: later than any time that occurs."""


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Return the element functions of one ball."""
    vec = ti.types.vector(2, real)

    @ti.func
    def rest_time(v: vec, a: real) -> real:
        time = real(NEVER)
        if a > 0:
            time = v.norm() / a
        return time

    @ti.func
    def flight(x: vec, v: vec, a: real, t: real):
        u, s, q = v.norm(), t, real(0.0)
        if a > 0 and a * t >= u:
            s, q = u / a, real(1.0)
        elif u > 0:
            q = a * t / u
        return x + (s * (1 - 0.5 * q)) * v, (1 - q) * v

    @ti.func
    def adj_flight(v: vec, a: real, t: real, g: vec, h: vec):
        u = v.norm()
        e = vec(0.0)
        if u > 0:
            e = v / u
        adj_v, adj_a, adj_t = vec(0.0), real(0.0), real(0.0)
        if a > 0 and a * t >= u:
            adj_v = (u * g + e.dot(g) * v) / (2 * a)
            adj_a = -u * v.dot(g) / (2 * a * a)
        else:
            p = h + 0.5 * t * g
            e_p = e.dot(p)
            adj_v = t * g + h
            if u > 0:
                adj_v -= (a * t / u) * (p - e_p * e)
            adj_a = -t * e_p
            adj_t = v.dot(g) - a * t * e.dot(g) - a * e.dot(h)
        return adj_v, adj_a, adj_t

    @ti.func
    def jvp_flight(v: vec, a: real, t: real, dx: vec, dv: vec, da: real, dt: real):
        u = v.norm()
        e, de = vec(0.0), vec(0.0)
        if u > 0:
            e = v / u
            de = (dv - e.dot(dv) * e) / u
        dx_new, dv_new = dx, vec(0.0)
        if a > 0 and a * t >= u:
            dx_new += (u * dv + e.dot(dv) * v) / (2 * a) - (0.5 * u * da / (a * a)) * v
        else:
            dv_new = dv - (t * da + a * dt) * e - (a * t) * de
            dx_new += t * dv + dt * (v - (a * t) * e) - (0.5 * t * t) * (da * e + a * de)
        return dx_new, dv_new

    return SimpleNamespace(rest_time=rest_time, flight=flight, adj_flight=adj_flight, jvp_flight=jvp_flight)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Return the kernels of the nested sub-step: loops over balls."""
    vec = ti.types.vector(2, real)
    f = functions(real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(x: vectors, v: vectors, a: real, t: real, n: ti.i32, x_new: vectors, v_new: vectors):
        ti.loop_config(serialize=True)
        for i in range(n):
            x_new[i], v_new[i] = f.flight(x[i], v[i], a, t)

    @kernel
    def adjoint(
        v: vectors, a: real, t: real, n: ti.i32, adj_x_new: vectors, adj_v_new: vectors,
        adj_v: vectors, adj_a: reals, adj_t: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for i in range(n):
            adj_v[i], adj_a[i], adj_t[i] = f.adj_flight(v[i], a, t, adj_x_new[i], adj_v_new[i])

    @kernel
    def tangent(
        v: vectors, a: real, t: real, n: ti.i32, dx: vectors, dv: vectors, da: real, dt: real,
        dx_new: vectors, dv_new: vectors,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for i in range(n):
            dx_new[i], dv_new[i] = f.jvp_flight(v[i], a, t, dx[i], dv[i], da, dt)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Flight(Function):
    """Positions and velocities, both [n, 2], after a flight of `time` [] at `deceleration` []. Saved: all but x."""

    @staticmethod
    def forward(
        ctx: Context, position: Tensor, velocity: Tensor, deceleration: Tensor, time: Tensor
    ) -> tuple[Any, Any]:
        ctx.save_for_backward(velocity, deceleration, time)
        x_new, v_new = np.empty_like(position.data), np.empty_like(velocity.data)
        n = position.shape[0]
        kernels(runtime.real()).forward(position, velocity, float(deceleration), float(time), n, x_new, v_new)
        return x_new, v_new

    @staticmethod
    def backward(ctx: Context, adj_x_new: Tensor, adj_v_new: Tensor) -> tuple[Any, ...]:
        velocity, deceleration, time = ctx.saved_tensors
        n = velocity.shape[0]
        adj_v, adj_a, adj_t = np.empty_like(velocity.data), np.empty(n, velocity.dtype), np.empty(n, velocity.dtype)
        kernels(runtime.real()).adjoint(
            velocity, float(deceleration), float(time), n, adj_x_new, adj_v_new, adj_v, adj_a, adj_t
        )
        return adj_x_new, adj_v, adj_a.sum(), adj_t.sum()

    @staticmethod
    def jvp(ctx: Context, dx: Any, dv: Any, da: Any, dt: Any) -> tuple[Any, Any]:
        velocity, deceleration, time = ctx.saved_tensors
        dx_new, dv_new = np.empty_like(velocity.data), np.empty_like(velocity.data)
        kernels(runtime.real()).tangent(
            velocity, float(deceleration), float(time), len(dv), dx, dv, float(da), float(dt), dx_new, dv_new
        )
        return dx_new, dv_new
