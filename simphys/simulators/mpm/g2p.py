"""Grid to particles: each particle gathers velocity and velocity gradient from the nodes of its stencil, and moves.

    v' = sum w_i u_i        C' = (4 / dx^2) sum w_i u_i (x_i - x)^T        x' = x + h v'

u velocity of nodes [m/s], w quadratic B-splines (numerics/bspline.py), h time step. Adjoint, with
g = adj_v' + h adj_x', B = (4 / dx^2) adj_C' and r = x_i - x:

    adj_u_i += w_i (g + B r)                                                           a scatter
    adj_x = adj_x' + sum grad_w (u_i (g + B r)) - B^T v'

The position becomes NaN where the particle's stencil of three nodes per axis would leave the grid; this stops the
rollout. Source: Hu et al. 2018 (MLS-MPM), eqs. 10 and 20.
"""

import functools
import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import bspline, memory

from . import transfer
from .arrays import empty_like, flatten

if TYPE_CHECKING:
    from .model import MPM


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any, dim: int, cells: tuple[int, ...]) -> SimpleNamespace:
    """The element functions. U holds the velocities of the nodes, adj_U their adjoints from adj_U[at] on."""
    vec, mat = ti.types.vector(dim, real), ti.types.matrix(dim, dim, real)
    spline, lines = bspline.functions(real, dim, cells), bspline.count_lines(dim)
    sums = transfer.functions(real, dim, cells)

    @ti.func
    def gather(U: ti.template(), x: vec, h: real, dx: real, nan: real):
        """Return x', v' and C'."""
        v, V = sums.gather(U, dim, x, 1.0 / dx)
        moved = x + h * v
        for d in ti.static(range(dim)):
            if moved[d] < 0.5 * dx or moved[d] > (cells[d] - 1.5) * dx:
                moved[d] = nan
        return moved, v, (4.0 / dx) * V

    @ti.func
    def adj_gather(U: ti.template(), x: vec, adj_x_new: vec, adj_v_new: vec, adj_C_new: mat, h: real, dx: real):
        """Return the adjoint of x, and for that of U the first node and the table of shares that `scatter` adds."""
        g, B = adj_v_new + h * adj_x_new, (4.0 / dx) * adj_C_new
        v, _, adj_f, _ = sums.gather_derivatives(U, dim, x, 1.0 / dx, g, B, 0.0)
        first, shares = sums.spread(x, 1.0 / dx, g, B)
        return adj_x_new + (adj_f - B.transpose() @ v) / dx, first, shares

    @ti.func
    def scatter(adj_U: ti.template(), at: ti.i32, first: ti.i32, shares: ti.template(), atomic: ti.template()):
        sums.scatter(adj_U, at, dim, first, shares, 0.0, atomic)

    @ti.func
    def jvp_gather(U: ti.template(), dU: ti.template(), x: vec, tx: vec, h: real, dx: real):
        """Return the tangents of x', v' and C'."""
        inv_dx = 1.0 / dx
        base = spline.base(x, inv_dx)
        f = x * inv_dx - base
        w, s, tf = spline.weights(f), spline.slopes(f), inv_dx * tx
        v, tv, tB = vec(0.0), vec(0.0), mat(0.0)
        for number in range(lines):
            o = spline.offset(number)
            i, weight, tweight = (spline.start(base) + spline.line_offset(o)) * dim, spline.line_weight(w, o), real(0.0)
            for d in ti.static(range(dim - 1)):
                tweight += spline.line_slope(w, s, o, d) * tf[d]
            for k in ti.static(range(3)):
                here, there = weight * w[k, dim - 1], tweight * w[k, dim - 1] + weight * s[k, dim - 1] * tf[dim - 1]
                for e in ti.static(range(dim)):
                    u = U[i + k * dim + e]
                    tu = there * u + here * dU[i + k * dim + e]
                    v[e] += here * u
                    tv[e] += tu
                    tB[e, dim - 1] += (k - f[dim - 1]) * tu
                    for d in ti.static(range(dim - 1)):
                        tB[e, d] += (o[d] - f[d]) * tu
        return tx + h * tv, tv, 4.0 * inv_dx * (tB - inv_dx * v.outer_product(tx))

    return SimpleNamespace(gather=gather, scatter=scatter, adj=adj_gather, jvp=jvp_gather)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, cells: tuple[int, ...], on_gpu: bool) -> SimpleNamespace:
    """Loops over particles for the nested sub-step."""
    f, at = functions(real, dim, cells), memory.functions(real, dim)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(
        x: reals, U: reals, h: real, dx: real, n: ti.i32, nan: real, x_new: reals, v_new: reals, C_new: reals,
    ):
        ti.loop_config(serialize=not on_gpu)
        for i in range(n):
            moved, v, C = f.gather(U, at.vector(x, i), h, dx, nan)
            at.put_vector(x_new, i, moved)
            at.put_vector(v_new, i, v)
            at.put_matrix(C_new, i, C)

    @kernel
    def adjoint(
        x: reals, U: reals, h: real, dx: real, n: ti.i32, adj_x_new: reals, adj_v_new: reals, adj_C_new: reals,
        adj_x: reals, adj_U: reals,
    ):
        ti.loop_config(serialize=not on_gpu)
        for i in range(n):
            gx, first, shares = f.adj(
                U, at.vector(x, i), at.vector(adj_x_new, i), at.vector(adj_v_new, i), at.matrix(adj_C_new, i), h, dx
            )
            f.scatter(adj_U, 0, first, shares, on_gpu)
            at.put_vector(adj_x, i, gx)

    @kernel
    def tangent(
        x: reals, U: reals, h: real, dx: real, n: ti.i32, tx: reals, tU: reals,
        tx_new: reals, tv_new: reals, tC_new: reals,
    ):
        ti.loop_config(serialize=not on_gpu)
        for i in range(n):
            tmoved, tv, tC = f.jvp(U, tU, at.vector(x, i), at.vector(tx, i), h, dx)
            at.put_vector(tx_new, i, tmoved)
            at.put_vector(tv_new, i, tv)
            at.put_matrix(tC_new, i, tC)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)
# fmt: on


class GridToParticle(Function):
    """x [n, dim], u [nodes, dim] -> x' [m], v' [m/s], both [n, dim], C' [1/s], [n, dim, dim]. Saves both inputs."""

    @staticmethod
    def forward(ctx: Context, model: "MPM", position: Tensor, velocity: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
        ctx.model = model
        ctx.save_for_backward(position, velocity)
        results = _results(model, position.dtype)
        _kernels(model).forward(*_arguments(model, position, velocity), math.nan, *map(flatten, results))
        return tuple(results)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        position, velocity = ctx.saved_tensors
        (adj_x,), adj_u = empty_like(position), np.zeros(velocity.shape, velocity.dtype)
        arguments = _arguments(ctx.model, position, velocity)
        _kernels(ctx.model).adjoint(*arguments, *map(flatten, adjoints), flatten(adj_x), flatten(adj_u))
        return None, adj_x, adj_u

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> tuple[np.ndarray[Any, Any], ...]:
        position, velocity = ctx.saved_tensors
        moved = _results(ctx.model, position.dtype)
        arguments = _arguments(ctx.model, position, velocity)
        _kernels(ctx.model).tangent(*arguments, *map(flatten, tangents), *map(flatten, moved))
        return tuple(moved)


def _results(model: "MPM", dtype: Any) -> list[np.ndarray[Any, Any]]:
    n, dim = model.particles, model.dim
    return [np.empty(shape, dtype) for shape in ((n, dim), (n, dim), (n, dim, dim))]


def _arguments(model: "MPM", position: Tensor, velocity: Tensor) -> tuple[Any, ...]:
    return flatten(position), flatten(velocity), model.dt, model.spacing, model.particles


def _kernels(model: "MPM") -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.cells, runtime.settings().on_gpu)
