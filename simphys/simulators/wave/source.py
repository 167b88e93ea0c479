"""Sources, which drive the field at points or along planes, anywhere between cells.

    dx^2 f = sum_s strength_s dx^2 delta_h(x - x_s)          delta_h at cell i: h_s weight_i(x_s), h_s = dx^(2 - m_s)

Cubic convolution spreads the delta of a point over the 4^dim cells around it; its dimension is that of space, m = dim.
The delta of a plane is spread over the 4 planes of cells around it and is constant along the other axes, m = 1. A cell
beyond a side is mapped to a cell inside, as the field is extended there: a source has mirror images, see
`numerics/boundary.py`. Adjoint, with g = adj_(dx^2 f) and i the cells in the stencil of source s:

    adj_strength_s = h_s sum_i g_i weight_i          adj_x_s = h_s strength_s sum_i g_i grad weight_i

In a step the field receives kappa (dx^2 f), kappa = (c dt / dx)^2. Fused loops add this to a field u in place, so that
g = kappa adj_u, and kappa has the adjoint (dx^2 f) adj_u. The position of a plane within itself has no adjoint.
Source: the moment conditions of discrete deltas in Petersson, O'Reilly, Sjoegreen and Bydlon 2016, which cubic
convolution (Keys 1981) fulfils to the second moment; the adjoint is the transpose of the Jacobian.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import cubic

from .model import SOURCES, Wave

CellLayout = tuple[int, ...]
"""Memory layout of cells, (origin, *strides): cell (i, j) is at origin + i strides[0] + j strides[1]."""


def plane_axes(model: Wave) -> np.ndarray[Any, Any]:
    """Encode the kinds of sources [S] for loops: the axis of a plane's normal, -1 for a point."""
    return np.array([SOURCES.index(kind) - 1 for kind in model.sources], np.int32)


def row_major_layout(cells: tuple[int, ...]) -> CellLayout:
    """Return the layout of cells in row-major order without gaps."""
    return (0, *[math.prod(cells[axis + 1 :]) for axis in range(len(cells))])


@functools.cache
@no_type_check
def functions(real: Any, cells: tuple[int, ...], boundaries: tuple[str, ...]) -> SimpleNamespace:
    """The element functions of a source and one cell of its stencil."""
    dim, everywhere = len(cells), math.prod(cells)
    vec, ivec = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32)
    spline = cubic.functions(real, cells, boundaries)

    @ti.func
    def count_cells(plane: ti.i32) -> ti.i32:
        """Count the cells in the stencil of a source."""
        total = cubic.STENCIL**dim
        for d in ti.static(range(dim)):
            if plane == d:
                total = cubic.STENCIL * (everywhere // cells[d])
        return total

    @ti.func
    def delta_scale(plane: ti.i32, dx: real) -> real:
        """Return h of a source."""
        h = dx
        if plane < 0:
            h = dx ** (2 - dim)
        return h

    @ti.func
    def stencil_cell(seen: ti.template(), w: ti.template(), s: ti.template(), plane: ti.i32, number: ti.i32):
        """Return a cell, its weight, and the gradient of the weight by the position of the source."""
        cell, weight, slope = ivec(0), real(0.0), vec(0.0)
        if plane < 0:
            o = spline.offset(number)
            cell, weight, slope = spline.cell(seen, o), spline.weight(w, o), spline.slope(w, s, o)
        else:
            rest = number
            for d in ti.static(range(dim - 1, -1, -1)):
                if d == plane:
                    k = rest % cubic.STENCIL
                    cell[d], weight, slope[d] = seen[k, d], w[k, d], s[k, d]
                    rest = rest // cubic.STENCIL
                else:
                    cell[d] = rest % cells[d]
                    rest = rest // cells[d]
        return cell, weight, slope

    @ti.func
    def source(strength: real, h: real, weight: real) -> real:
        return strength * h * weight

    @ti.func
    def adj_source(strength: real, h: real, weight: real, slope: vec, g: real):
        """Return the adjoints of strength and position."""
        return h * weight * g, (strength * h * g) * slope

    @ti.func
    def jvp_source(strength: real, h: real, weight: real, slope: vec, dstrength: real, dx_s: vec) -> real:
        return h * (dstrength * weight + strength * slope.dot(dx_s))

    return SimpleNamespace(
        stencil=spline.stencil, count_cells=count_cells, delta_scale=delta_scale, stencil_cell=stencil_cell,
        source=source, adj_source=adj_source, jvp_source=jvp_source,
    )  # fmt: skip


@functools.cache
@no_type_check
def kernels(
    real: Any, cells: tuple[int, ...], boundaries: tuple[str, ...], field: CellLayout, medium: CellLayout
) -> SimpleNamespace:
    """Serial loops over sources and the cells of their stencils, for a field and a kappa with these memory layouts.

    A scalar named ..._at is the index at which an array begins, or its part for a batch member or a step. Adjoints are
    added to their arrays.
    """
    dim = len(cells)
    vec = ti.types.vector(dim, real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f = functions(real, cells, boundaries)

    @ti.func
    def vector(values: ti.template(), at, s) -> vec:
        return vec([values[at + dim * s + d] for d in ti.static(range(dim))])

    @ti.func
    def cell_index(cell: ti.template(), place: ti.template()) -> ti.i32:
        found = place[0]
        for d in ti.static(range(dim)):
            found += cell[d] * place[1 + d]
        return found

    @kernel
    def forward(strength: reals, position: reals, plane: integers, density: reals, dx: real):
        """Compute density += dx^2 f."""
        ti.loop_config(serialize=True)
        for s in range(plane.shape[0]):
            seen, w, slopes = f.stencil(vector(position, 0, s), 1.0 / dx)
            h = f.delta_scale(plane[s], dx)
            for number in range(f.count_cells(plane[s])):
                cell, weight, _ = f.stencil_cell(seen, w, slopes, plane[s], number)
                at = cell_index(cell, field)
                density[at] = density[at] + f.source(strength[s], h, weight)

    @kernel
    def tangent(
        strength: reals, position: reals, plane: integers, dstrength: reals, dposition: reals, ddensity: reals, dx: real
    ):
        ti.loop_config(serialize=True)
        for s in range(plane.shape[0]):
            seen, w, slopes = f.stencil(vector(position, 0, s), 1.0 / dx)
            h = f.delta_scale(plane[s], dx)
            for number in range(f.count_cells(plane[s])):
                cell, weight, slope = f.stencil_cell(seen, w, slopes, plane[s], number)
                at = cell_index(cell, field)
                change = f.jvp_source(strength[s], h, weight, slope, dstrength[s], vector(dposition, 0, s))
                ddensity[at] = ddensity[at] + change

    @kernel
    def inject(
        u: reals, kappa: reals, strength: reals, position: reals, plane: integers, dx: real,
        u_at: ti.i32, kappa_at: ti.i32, strength_at: ti.i32, position_at: ti.i32,
    ):  # fmt: skip
        """Compute u += kappa dx^2 f."""
        ti.loop_config(serialize=True)
        for s in range(plane.shape[0]):
            seen, w, slopes = f.stencil(vector(position, position_at, s), 1.0 / dx)
            h = f.delta_scale(plane[s], dx)
            for number in range(f.count_cells(plane[s])):
                cell, weight, _ = f.stencil_cell(seen, w, slopes, plane[s], number)
                at, k = u_at + cell_index(cell, field), kappa[kappa_at + cell_index(cell, medium)]
                u[at] = u[at] + k * f.source(strength[strength_at + s], h, weight)

    @kernel
    def adj_inject(
        g: reals, strength: reals, position: reals, plane: integers, adj_strength: reals, adj_position: reals,
        dx: real, g_at: ti.i32, strength_at: ti.i32, position_at: ti.i32, adj_strength_at: ti.i32,
        adj_position_at: ti.i32,
    ):  # fmt: skip
        """Add to the adjoints of strength and position, from g = kappa adj_u; also serves the nested sub-step."""
        ti.loop_config(serialize=True)
        for s in range(plane.shape[0]):
            seen, w, slopes = f.stencil(vector(position, position_at, s), 1.0 / dx)
            h = f.delta_scale(plane[s], dx)
            gs, gx = real(0.0), vec(0.0)
            for number in range(f.count_cells(plane[s])):
                cell, weight, slope = f.stencil_cell(seen, w, slopes, plane[s], number)
                g_i = g[g_at + cell_index(cell, field)]
                adj_q, adj_x = f.adj_source(strength[strength_at + s], h, weight, slope, g_i)
                gs += adj_q
                gx += adj_x
            adj_strength[adj_strength_at + s] = adj_strength[adj_strength_at + s] + gs
            for d in ti.static(range(dim)):
                at = adj_position_at + dim * s + d
                adj_position[at] = adj_position[at] + gx[d]

    @kernel
    def adj_inject_kappa(
        adj_u: reals, strength: reals, position: reals, plane: integers, adj_kappa: reals, dx: real,
        adj_u_at: ti.i32, strength_at: ti.i32, position_at: ti.i32, adj_kappa_at: ti.i32,
    ):  # fmt: skip
        """Add to the adjoint of kappa, from adj_u."""
        ti.loop_config(serialize=True)
        for s in range(plane.shape[0]):
            seen, w, slopes = f.stencil(vector(position, position_at, s), 1.0 / dx)
            h = f.delta_scale(plane[s], dx)
            for number in range(f.count_cells(plane[s])):
                cell, weight, _ = f.stencil_cell(seen, w, slopes, plane[s], number)
                at, g_i = adj_kappa_at + cell_index(cell, medium), adj_u[adj_u_at + cell_index(cell, field)]
                adj_kappa[at] = adj_kappa[at] + g_i * f.source(strength[strength_at + s], h, weight)

    @kernel
    def jvp_inject(
        du: reals, kappa: reals, strength: reals, position: reals, plane: integers, dkappa: reals, dstrength: reals,
        dposition: reals, dx: real, du_at: ti.i32, kappa_at: ti.i32, strength_at: ti.i32, position_at: ti.i32,
        dkappa_at: ti.i32, dstrength_at: ti.i32, dposition_at: ti.i32,
    ):  # fmt: skip
        """Compute du += dkappa dx^2 f + kappa d(dx^2 f)."""
        ti.loop_config(serialize=True)
        for s in range(plane.shape[0]):
            seen, w, slopes = f.stencil(vector(position, position_at, s), 1.0 / dx)
            h, q = f.delta_scale(plane[s], dx), strength[strength_at + s]
            for number in range(f.count_cells(plane[s])):
                cell, weight, slope = f.stencil_cell(seen, w, slopes, plane[s], number)
                dq, dx_s = dstrength[dstrength_at + s], vector(dposition, dposition_at, s)
                at, c = du_at + cell_index(cell, field), cell_index(cell, medium)
                from_kappa = dkappa[dkappa_at + c] * f.source(q, h, weight)
                du[at] = du[at] + from_kappa + kappa[kappa_at + c] * f.jvp_source(q, h, weight, slope, dq, dx_s)

    return SimpleNamespace(
        forward=forward, tangent=tangent,
        inject=inject, adj_inject=adj_inject, adj_inject_kappa=adj_inject_kappa, jvp_inject=jvp_inject,
    )  # fmt: skip


class SourceTerm(Function):
    """dx^2 f [*cells] of sources with strength [S] at position [S, dim] [m]. Saves the two inputs."""

    @staticmethod
    def forward(ctx: Context, model: Wave, strength: Tensor, position: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(strength, position)
        density = np.zeros(model.cells, strength.dtype)
        _kernels(model).forward(
            strength, position.data.reshape(-1), plane_axes(model), density.reshape(-1), model.spacing
        )
        return density

    @staticmethod
    def backward(ctx: Context, adj_density: Tensor) -> tuple[Any, ...]:
        model: Wave = ctx.model
        strength, position = ctx.saved_tensors
        adj_strength, adj_position = np.zeros_like(strength.data), np.zeros_like(position.data)
        _kernels(model).adj_inject(
            adj_density.data.reshape(-1), strength, position.data.reshape(-1), plane_axes(model),
            adj_strength, adj_position.reshape(-1), model.spacing, 0, 0, 0, 0, 0,
        )  # fmt: skip
        return None, adj_strength, adj_position

    @staticmethod
    def jvp(ctx: Context, _: None, dstrength: Any, dposition: Any) -> np.ndarray[Any, Any]:
        model: Wave = ctx.model
        strength, position = ctx.saved_tensors
        ddensity = np.zeros(model.cells, strength.dtype)
        _kernels(model).tangent(
            strength, position.data.reshape(-1), plane_axes(model), dstrength, dposition.reshape(-1),
            ddensity.reshape(-1), model.spacing,
        )  # fmt: skip
        return ddensity


def _kernels(model: Wave) -> SimpleNamespace:
    place = row_major_layout(model.cells)
    return kernels(runtime.real(), model.cells, model.boundaries, place, place)
