"""The fluxes: transport through faces, potential vorticity at corners, and the Bernoulli head in cells.

h = D + eta is the height of the water; means are over the neighbours along one axis or both:

    U_a = mean_a(h) u_a                                                     [m^2/s] at faces
    q = (du_y/dx - du_x/dy) / mean_xy(h)                                    [1/(m s)] at corners, in 2-D
    H = g eta + 1/2 sum_a mean_a(u_a^2)                                     [m^2/s^2] in cells

Adjoint, for W = adj_U, p = adj_q and s = adj_H, with z = p / mean_xy(h). Here means go back from faces or corners to
cells, or from cells to faces:

    adj_h = sum_a mean_a(W_a u_a) - mean_xy(z q)       adj_D = adj_h      adj_eta = adj_h + g s
    adj_u_x = mean_x(h) W_x + u_x mean_x(s) + dz/dy    adj_u_y = mean_y(h) W_y + u_y mean_y(s) - dz/dx
    adj_g = sum eta s

Source: Sadourny 1975, model I, whose transport and head conserve energy with the time derivatives of `advance`.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import grid
from .grid import flatten, is_parallel, sizes
from .model import ShallowWater


@functools.cache
@no_type_check
def functions(real: Any, dim: int, closed: tuple[bool, ...]) -> SimpleNamespace:
    """The element functions at the cell, face or corner c; h is the height of the water."""
    at = grid.functions(real, dim, closed)

    @ti.func
    def corner_height(h: ti.template(), c, n, m):
        return 0.5 * (at.to_face(h, c, 0, n, m) + at.to_face(h, at.before(c, 1, n, m), 0, n, m))

    @ti.func
    def potential_vorticity(h: ti.template(), u: ti.template(), dx, c, n, m, N):
        turning = u[N + c] - u[N + at.before(c, 0, n, m)] - u[c] + u[at.before(c, 1, n, m)]
        return turning / (dx * corner_height(h, c, n, m))

    @ti.func
    def kinetic(u: ti.template(), v: ti.template(), c, n, m, N):
        """Return 1/2 sum_a mean_a(u_a v_a)."""
        total = real(0.0)
        for axis in ti.static(range(dim)):
            k, k_after = axis * N + c, axis * N + at.after(c, axis, n, m)
            total += 0.25 * (u[k] * v[k] + u[k_after] * v[k_after])
        return total

    @ti.func
    def adj_height(u: ti.template(), q: ti.template(), adj_U: ti.template(), z: ti.template(), c, n, m, N):
        total = real(0.0)
        for axis in ti.static(range(dim)):
            k, k_after = axis * N + c, axis * N + at.after(c, axis, n, m)
            total += 0.5 * (adj_U[k] * u[k] + adj_U[k_after] * u[k_after])
        if ti.static(dim == 2):
            right, above = at.after(c, 0, n, m), at.after(c, 1, n, m)
            both = at.after(right, 1, n, m)
            total -= 0.25 * (z[c] * q[c] + z[right] * q[right] + z[above] * q[above] + z[both] * q[both])
        return total

    @ti.func
    def adj_velocity(
        h: ti.template(), u: ti.template(), dx, adj_U: ti.template(), z: ti.template(), adj_H: ti.template(),
        c, axis: ti.template(), n, m, N,
    ):  # fmt: skip
        k = axis * N + c
        total = at.to_face(h, c, axis, n, m) * adj_U[k] + u[k] * at.to_face(adj_H, c, axis, n, m)
        if ti.static(dim == 2 and axis == 0):
            total += (z[at.after(c, 1, n, m)] - z[c]) / dx
        if ti.static(dim == 2 and axis == 1):
            total -= (z[at.after(c, 0, n, m)] - z[c]) / dx
        return total

    @ti.func
    def jvp_potential_vorticity(
        h: ti.template(), u: ti.template(), q: ti.template(), dx, dh: ti.template(), du: ti.template(), c, n, m, N
    ):
        changed = potential_vorticity(h, du, dx, c, n, m, N)
        return changed - q[c] * corner_height(dh, c, n, m) / corner_height(h, c, n, m)

    return SimpleNamespace(
        corner_height=corner_height, potential_vorticity=potential_vorticity, kinetic=kinetic, to_face=at.to_face,
        adj_height=adj_height, adj_velocity=adj_velocity, jvp_potential_vorticity=jvp_potential_vorticity,
    )  # fmt: skip


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, closed: tuple[bool, ...], parallel: bool) -> SimpleNamespace:
    """Loops over all cells of all batch members; h and z pass values from one loop to the next."""
    f = functions(real, dim, closed)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(
        eta: reals, u: reals, D: reals, g: reals, dx: real, n: ti.i32, m: ti.i32, N: ti.i32,
        h: reals, U: reals, q: reals, H: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            h[c] = D[c] + eta[c]
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            for axis in ti.static(range(dim)):
                U[axis * N + c] = f.to_face(h, c, axis, n, m) * u[axis * N + c]
            if ti.static(dim == 2):
                q[c] = f.potential_vorticity(h, u, dx, c, n, m, N)
            H[c] = g[c // n] * eta[c] + f.kinetic(u, u, c, n, m, N)

    @kernel
    def adjoint(
        eta: reals, u: reals, g: reals, dx: real, n: ti.i32, m: ti.i32, N: ti.i32,
        h: reals, q: reals, adj_U: reals, adj_q: reals, adj_H: reals,
        z: reals, adj_eta: reals, adj_u: reals, adj_D: reals, adj_g: reals,
    ):  # fmt: skip
        if ti.static(dim == 2):
            ti.loop_config(serialize=not parallel)
            for c in range(N):
                z[c] = adj_q[c] / f.corner_height(h, c, n, m)
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            adj_h = f.adj_height(u, q, adj_U, z, c, n, m, N)
            for axis in ti.static(range(dim)):
                k = axis * N + c
                adj_u[k] = adj_u[k] + f.adj_velocity(h, u, dx, adj_U, z, adj_H, c, axis, n, m, N)
            adj_eta[c] = adj_eta[c] + adj_h + g[c // n] * adj_H[c]
            adj_D[c] = adj_D[c] + adj_h
            adj_g[c] = adj_g[c] + eta[c] * adj_H[c]

    @kernel
    def tangent(
        eta: reals, u: reals, g: reals, dx: real, n: ti.i32, m: ti.i32, N: ti.i32, h: reals, q: reals,
        deta: reals, du: reals, dD: reals, dg: reals, dh: reals, dU: reals, dq: reals, dH: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            dh[c] = dD[c] + deta[c]
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            for axis in ti.static(range(dim)):
                k = axis * N + c
                dU[k] = f.to_face(dh, c, axis, n, m) * u[k] + f.to_face(h, c, axis, n, m) * du[k]
            if ti.static(dim == 2):
                dq[c] = f.jvp_potential_vorticity(h, u, q, dx, dh, du, c, n, m, N)
            dH[c] = dg[c // n] * eta[c] + g[c // n] * deta[c] + 2 * f.kinetic(u, du, c, n, m, N)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Fluxes(Function):
    """Transport [dim, *cells], potential vorticity [*cells] (0 in one dimension) and head [*cells].

    Inputs: elevation [*cells], velocity [dim, *cells], depth [*cells] and gravity []. Saves these except depth, the
    height of the water, and the potential vorticity.
    """

    @staticmethod
    def forward(
        ctx: Context, model: ShallowWater, elevation: Tensor, velocity: Tensor, depth: Tensor, gravity: Tensor
    ) -> tuple[Any, Any, Any]:
        height, transport, head = (np.empty_like(x.data) for x in (elevation, velocity, elevation))
        vorticity = np.zeros_like(elevation.data)
        kernels_of(model).forward(
            *flatten(elevation, velocity, depth, gravity),
            model.spacing,
            *sizes(model),
            *flatten(height, transport, vorticity, head),
        )
        ctx.model = model
        ctx.save_for_backward(elevation, velocity, gravity, height, vorticity)
        return transport, vorticity, head

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        elevation, velocity, gravity, height, vorticity = ctx.saved_tensors
        z = np.zeros_like(height.data)
        adj_elevation, adj_velocity, adj_depth, adj_gravity = (
            np.zeros_like(x.data) for x in (elevation, velocity, height, height)
        )
        kernels_of(ctx.model).adjoint(
            *flatten(elevation, velocity, gravity), ctx.model.spacing, *sizes(ctx.model),
            *flatten(height, vorticity, *adjoints, z, adj_elevation, adj_velocity, adj_depth, adj_gravity),
        )  # fmt: skip
        return None, adj_elevation, adj_velocity, adj_depth, adj_gravity.sum()

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> tuple[Any, Any, Any]:
        elevation, velocity, gravity, height, vorticity = ctx.saved_tensors
        dheight, dtransport, dhead = (np.empty_like(x.data) for x in (elevation, velocity, elevation))
        dvorticity = np.zeros_like(vorticity.data)
        kernels_of(ctx.model).tangent(
            *flatten(elevation, velocity, gravity), ctx.model.spacing, *sizes(ctx.model),
            *flatten(height, vorticity, *tangents), *flatten(dheight, dtransport, dvorticity, dhead),
        )  # fmt: skip
        return dtransport, dvorticity, dhead


def kernels_of(model: ShallowWater, batch: int = 1) -> SimpleNamespace:
    """Compile the kernels of a model for a batch of this size."""
    return kernels(runtime.real(), model.dim, model.closed, is_parallel(model, batch))
