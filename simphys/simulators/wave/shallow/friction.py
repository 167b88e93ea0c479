"""Bottom friction over a time t, with the height of the water held fixed.

    u_a' = u_a / (1 + k s)     k = t c_f / mean_a(h)     s = sqrt(u_a^2 + v^2)     [m/s] at faces; 0 at walls

v is the mean of the other component over the four faces around, h = D + eta. For a uniform velocity this is the exact
solution of du/dt = -c_f |u| u / h, namely 1/|u'| = 1/|u| + t c_f/h. It never reverses the velocity, however large t
is. Adjoint, for g = adj_u_a', with r = 1 / (1 + k s) and e = g k u_a r^2:

    adj_u_a = g r - e u_a/s     adj_v = -e v/s     adj_h = e s / mean_a(h)     adj_c = -e s / c_f = -g u_a s r^2 t/h

and back from faces to the cells and faces around by the transposed means. In water at rest, s = 0, u/s and v/s count
as 0. There e is 0, too, and the derivative of u' by u is 1, which is exact. Source: the quadratic law as in Chow 1959;
its solution is elementary.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import grid
from .grid import flatten, is_parallel, sizes
from .model import ShallowWater, is_dry


@functools.cache
@no_type_check
def functions(real: Any, dim: int, closed: tuple[bool, ...]) -> SimpleNamespace:
    """The element functions at a face; h is the height of the water there."""
    at = grid.functions(real, dim, closed)

    @ti.func
    def mean_across(u: ti.template(), c, axis: ti.template(), n, m, N):
        """Average the other component over the four faces around face c normal to `axis`.

        With the axes exchanged, this is its own transpose.
        """
        mean = real(0.0)
        if ti.static(dim == 2):
            other = ti.static(1 - axis)
            b = at.before(c, axis, n, m)
            mean = 0.5 * (at.to_cell(u, c, other, n, m, N) + at.to_cell(u, b, other, n, m, N))
        return mean

    @ti.func
    def damp(u, v, h, c_f, t):
        return u / (1 + t * c_f / h * ti.sqrt(u * u + v * v))

    @ti.func
    def inverse_speed(s):
        """Return 1/s, or 0 for water at rest."""
        inverse = real(0.0)
        if s > 0:
            inverse = 1 / s
        return inverse

    @ti.func
    def adj_damp(u, v, h, c_f, t, g):
        """Return the adjoints of u, v, h and c_f."""
        s = ti.sqrt(u * u + v * v)
        k = t * c_f / h
        r = 1 / (1 + k * s)
        a = g * u * r * r
        e = k * a * inverse_speed(s)
        return g * r - e * u, -e * v, k * a * s / h, -a * s * t / h

    @ti.func
    def jvp_damp(u, v, h, c_f, t, du, dv, dh, dc):
        s = ti.sqrt(u * u + v * v)
        k = t * c_f / h
        r = 1 / (1 + k * s)
        ds = (u * du + v * dv) * inverse_speed(s)
        dk = (t * dc - k * dh) / h
        return r * du - u * r * r * (dk * s + k * ds)

    return SimpleNamespace(
        mean_across=mean_across, damp=damp, adj_damp=adj_damp, jvp_damp=jvp_damp,
        to_face=at.to_face, to_cell=at.to_cell, is_open=at.is_open,
    )  # fmt: skip


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, closed: tuple[bool, ...], parallel: bool) -> SimpleNamespace:
    """Loops over all cells of all batch members. The adjoints of u, v and h are overwritten, the others added to."""
    f = functions(real, dim, closed)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @ti.func
    def height(eta: ti.template(), D: ti.template(), c, axis: ti.template(), n, m):
        return f.to_face(eta, c, axis, n, m) + f.to_face(D, c, axis, n, m)

    @kernel
    def forward(u: reals, eta: reals, D: reals, c_f: reals, t: real, n: ti.i32, m: ti.i32, N: ti.i32, u_new: reals):
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            for axis in ti.static(range(dim)):
                v, h = f.mean_across(u, c, axis, n, m, N), height(eta, D, c, axis, n, m)
                found = f.damp(u[axis * N + c], v, h, c_f[c // n], t)
                u_new[axis * N + c] = ti.select(f.is_open(c, axis, n, m), found, 0.0)

    @kernel
    def adjoint(
        u: reals, eta: reals, D: reals, c_f: reals, t: real, n: ti.i32, m: ti.i32, N: ti.i32, adj_u_new: reals,
        adj_v: reals, adj_h: reals, adj_u: reals, adj_eta: reals, adj_D: reals, adj_c: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            for axis in ti.static(range(dim)):
                k = axis * N + c
                v, h = f.mean_across(u, c, axis, n, m, N), height(eta, D, c, axis, n, m)
                g = ti.select(f.is_open(c, axis, n, m), adj_u_new[k], 0.0)
                gu, gv, gh, gc = f.adj_damp(u[k], v, h, c_f[c // n], t, g)
                adj_u[k] = gu
                adj_v[k] = gv
                adj_h[k] = gh
                adj_c[c] = adj_c[c] + gc
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            total = real(0.0)
            for axis in ti.static(range(dim)):
                adj_u[axis * N + c] = adj_u[axis * N + c] + f.mean_across(adj_v, c, axis, n, m, N)
                total += f.to_cell(adj_h, c, axis, n, m, N)
            adj_eta[c] = adj_eta[c] + total
            adj_D[c] = adj_D[c] + total

    @kernel
    def tangent(
        u: reals, eta: reals, D: reals, c_f: reals, t: real, n: ti.i32, m: ti.i32, N: ti.i32,
        du: reals, deta: reals, dD: reals, dc: reals, du_new: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            for axis in ti.static(range(dim)):
                k = axis * N + c
                v, h = f.mean_across(u, c, axis, n, m, N), height(eta, D, c, axis, n, m)
                dv, dh = f.mean_across(du, c, axis, n, m, N), height(deta, dD, c, axis, n, m)
                found = f.jvp_damp(u[k], v, h, c_f[c // n], t, du[k], dv, dh, dc[c // n])
                du_new[k] = ti.select(f.is_open(c, axis, n, m), found, 0.0)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Friction(Function):
    """Velocity [dim, *cells] after half a time step of friction; all NaN if a cell is dry, which stops a rollout.

    Inputs: velocity, elevation [*cells], depth [*cells] and friction []; all are saved.
    """

    @staticmethod
    def forward(
        ctx: Context, model: ShallowWater, velocity: Tensor, elevation: Tensor, depth: Tensor, friction: Tensor
    ) -> np.ndarray[Any, Any]:
        ctx.model, ctx.scalars = model, (model.dt / 2, *sizes(model))
        ctx.save_for_backward(velocity, elevation, depth, friction)
        new = np.empty_like(velocity.data)
        kernels_of(model).forward(*flatten(*ctx.saved_tensors), *ctx.scalars, *flatten(new))
        if is_dry(elevation.data, depth.data):
            new.fill(np.nan)
        return new

    @staticmethod
    def backward(ctx: Context, adj_new: Tensor) -> tuple[Any, ...]:
        velocity, _, depth, _ = ctx.saved_tensors
        *work, adj_velocity = (np.empty_like(velocity.data) for _ in range(3))
        adj_elevation, adj_depth, adj_friction = (np.zeros_like(depth.data) for _ in range(3))
        kernels_of(ctx.model).adjoint(
            *flatten(*ctx.saved_tensors), *ctx.scalars, *flatten(adj_new, *work),
            *flatten(adj_velocity, adj_elevation, adj_depth, adj_friction),
        )  # fmt: skip
        return None, adj_velocity, adj_elevation, adj_depth, adj_friction.sum()

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        saved = ctx.saved_tensors
        dnew = np.empty_like(saved[0].data)
        kernels_of(ctx.model).tangent(*flatten(*saved), *ctx.scalars, *flatten(*tangents, dnew))
        return dnew


def kernels_of(model: ShallowWater, batch: int = 1) -> SimpleNamespace:
    """Compile the kernels of a model for a batch of this size."""
    return kernels(runtime.real(), model.dim, model.closed, is_parallel(model, batch))
