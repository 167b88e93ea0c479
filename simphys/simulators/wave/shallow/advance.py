"""A stage of the time step, which advances elevation and velocity from the beginning of the step by the fluxes.

w is the length of the stage [s]:

    eta' = eta_0 - w sum_a dU_a/dx_a                                        [m] in cells
    u_a' = u_a0 + w (R_a(q, U) - dH/dx_a)                                   [m/s] at faces; at walls u_a' = u_a0
    R_x(q, U) = mean_y(q mean_x(U_y))     R_y(q, U) = -mean_x(q mean_y(U_x))

Adjoint, for the adjoints e of eta' and v of u', with G = w v, and 0 at walls. R is antisymmetric in U, so it does no
work:

    adj_U_a = w de/dx_a - R_a(q, G)     adj_H = sum_a dG_a/dx_a
    adj_q = mean_y(G_x) mean_x(U_y) - mean_x(G_y) mean_y(U_x)

Sources: Sadourny 1975, model I, which conserves mass, and energy up to the error in time; Wicker and Skamarock 2002
for the three stages w = dt/3, dt/2 and dt, each from the initial state: second order, third for linear problems.
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
    """The element functions at the cell, face or corner c."""
    at = grid.functions(real, dim, closed)

    @ti.func
    def vorticity_flux(q: ti.template(), U: ti.template(), c, axis: ti.template(), n, m, N):
        """Return R_axis(q, U)."""
        other = ti.static(1 - axis)
        d = at.after(c, other, n, m)
        mean = 0.5 * (q[c] * at.to_corner(U, c, other, n, m, N) + q[d] * at.to_corner(U, d, other, n, m, N))
        return (1 - 2 * axis) * mean

    @ti.func
    def force(q: ti.template(), U: ti.template(), H: ti.template(), dx, c, axis: ti.template(), n, m, N):
        total = -at.difference(H, c, axis, n, m) / dx
        if ti.static(dim == 2):
            total += vorticity_flux(q, U, c, axis, n, m, N)
        return total

    @ti.func
    def adj_transport(q: ti.template(), G: ti.template(), e: ti.template(), w, dx, c, axis: ti.template(), n, m, N):
        total = w * at.difference(e, c, axis, n, m) / dx
        if ti.static(dim == 2):
            total -= vorticity_flux(q, G, c, axis, n, m, N)
        return total

    @ti.func
    def adj_vorticity(U: ti.template(), G: ti.template(), c, n, m, N):
        x, y = at.to_corner(U, c, 0, n, m, N), at.to_corner(U, c, 1, n, m, N)
        return at.to_corner(G, c, 0, n, m, N) * y - at.to_corner(G, c, 1, n, m, N) * x

    @ti.func
    def jvp_force(
        q: ti.template(), U: ti.template(), dq: ti.template(), dU: ti.template(), dH: ti.template(),
        dx, c, axis: ti.template(), n, m, N,
    ):  # fmt: skip
        total = force(q, dU, dH, dx, c, axis, n, m, N)
        if ti.static(dim == 2):
            total += vorticity_flux(dq, U, c, axis, n, m, N)
        return total

    return SimpleNamespace(
        force=force, adj_transport=adj_transport, adj_vorticity=adj_vorticity, jvp_force=jvp_force,
        is_open=at.is_open, divergence=at.divergence,
    )  # fmt: skip


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, closed: tuple[bool, ...], parallel: bool) -> SimpleNamespace:
    """Loops over all cells of all batch members; G passes values from one loop to the next."""
    f = functions(real, dim, closed)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(
        eta: reals, u: reals, U: reals, q: reals, H: reals, w: real, dx: real, n: ti.i32, m: ti.i32, N: ti.i32,
        eta_new: reals, u_new: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            eta_new[c] = eta[c] - w * f.divergence(U, c, n, m, N) / dx
            for axis in ti.static(range(dim)):
                change = w * f.force(q, U, H, dx, c, axis, n, m, N)
                u_new[axis * N + c] = u[axis * N + c] + ti.select(f.is_open(c, axis, n, m), change, 0.0)

    @kernel
    def adjoint(
        U: reals, q: reals, w: real, dx: real, n: ti.i32, m: ti.i32, N: ti.i32, adj_eta_new: reals, adj_u_new: reals,
        G: reals, adj_U: reals, adj_q: reals, adj_H: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            for axis in ti.static(range(dim)):
                G[axis * N + c] = ti.select(f.is_open(c, axis, n, m), w * adj_u_new[axis * N + c], 0.0)
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            for axis in ti.static(range(dim)):
                adj_U[axis * N + c] = f.adj_transport(q, G, adj_eta_new, w, dx, c, axis, n, m, N)
            if ti.static(dim == 2):
                adj_q[c] = f.adj_vorticity(U, G, c, n, m, N)
            adj_H[c] = f.divergence(G, c, n, m, N) / dx

    @kernel
    def tangent(
        U: reals, q: reals, w: real, dx: real, n: ti.i32, m: ti.i32, N: ti.i32,
        deta: reals, du: reals, dU: reals, dq: reals, dH: reals, deta_new: reals, du_new: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for c in range(N):
            deta_new[c] = deta[c] - w * f.divergence(dU, c, n, m, N) / dx
            for axis in ti.static(range(dim)):
                change = w * f.jvp_force(q, U, dq, dU, dH, dx, c, axis, n, m, N)
                du_new[axis * N + c] = du[axis * N + c] + ti.select(f.is_open(c, axis, n, m), change, 0.0)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Advance(Function):
    """Elevation [*cells] and velocity [dim, *cells] at the end of a stage whose length is `part` time steps.

    Inputs: both at the beginning of the step, and the fluxes of the previous stage. Saves transport and potential
    vorticity.
    """

    @staticmethod
    def forward(
        ctx: Context, model: ShallowWater, part: float,
        elevation: Tensor, velocity: Tensor, transport: Tensor, vorticity: Tensor, head: Tensor,
    ) -> tuple[Any, Any]:  # fmt: skip
        ctx.model, ctx.scalars = model, (part * model.dt, model.spacing, *sizes(model))
        ctx.save_for_backward(transport, vorticity)
        new = np.empty_like(elevation.data), np.empty_like(velocity.data)
        kernels_of(model).forward(
            *flatten(elevation, velocity, transport, vorticity, head), *ctx.scalars, *flatten(*new),
        )  # fmt: skip
        return new

    @staticmethod
    def backward(ctx: Context, adj_elevation: Tensor, adj_velocity: Tensor) -> tuple[Any, ...]:
        transport, vorticity = ctx.saved_tensors
        G, adj_transport, adj_head = (np.empty_like(x.data) for x in (transport, transport, vorticity))
        adj_vorticity = np.zeros_like(vorticity.data)
        kernels_of(ctx.model).adjoint(
            *flatten(transport, vorticity), *ctx.scalars, *flatten(adj_elevation, adj_velocity),
            *flatten(G, adj_transport, adj_vorticity, adj_head),
        )  # fmt: skip
        return None, None, adj_elevation, adj_velocity, adj_transport, adj_vorticity, adj_head

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, *tangents: Any) -> tuple[Any, Any]:
        transport, vorticity = ctx.saved_tensors
        dnew = np.empty_like(vorticity.data), np.empty_like(transport.data)
        kernels_of(ctx.model).tangent(*flatten(transport, vorticity), *ctx.scalars, *flatten(*tangents, *dnew))
        return dnew


def kernels_of(model: ShallowWater, batch: int = 1) -> SimpleNamespace:
    """Compile the kernels of a model for a batch of this size."""
    return kernels(runtime.real(), model.dim, model.closed, is_parallel(model, batch))
