"""Receivers: values of the field at points anywhere between cells.

    received_r = sum_i weight_i(x_r) u_i

over the 4^dim cells around the receiver, by cubic convolution. A cell beyond a side is mapped to a cell inside, as the
field is extended there (`numerics/boundary.py`). Adjoint, with g = adj_received:

    adj_u_i = sum_r weight_i(x_r) g_r          adj_x_r = g_r sum_i u_i grad weight_i(x_r)

Source: Keys 1981; the adjoint is the transpose of the Jacobian.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import cubic

from .model import Wave
from .source import CellLayout, row_major_layout


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions of a receiver and one cell of its stencil."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def received(u: real, weight: real) -> real:
        return u * weight

    @ti.func
    def adj_received(u: real, weight: real, slope: vec, g: real):
        """Return the adjoints of the field and of the receiver's position."""
        return weight * g, (u * g) * slope

    @ti.func
    def jvp_received(u: real, weight: real, slope: vec, du: real, dx_r: vec) -> real:
        return du * weight + u * slope.dot(dx_r)

    return SimpleNamespace(received=received, adj_received=adj_received, jvp_received=jvp_received)


@functools.cache
@no_type_check
def kernels(real: Any, cells: tuple[int, ...], boundaries: tuple[str, ...], field: CellLayout) -> SimpleNamespace:
    """Serial loops over receivers and the cells of their stencils, for a field with this memory layout.

    They serve both the nested and the fused sub-step. A scalar named ..._at is the index at which an array begins, or
    its part for a batch member or a step. Adjoints are added to their arrays.
    """
    dim, seen_cells = len(cells), cubic.STENCIL ** len(cells)
    vec, reals = ti.types.vector(dim, real), ti.types.ndarray(dtype=real, ndim=1)
    f, spline = functions(real, dim), cubic.functions(real, cells, boundaries)

    @ti.func
    def vector(values: ti.template(), at, r) -> vec:
        return vec([values[at + dim * r + d] for d in ti.static(range(dim))])

    @ti.func
    def cell_index(seen: ti.template(), o: ti.template()) -> ti.i32:
        found = field[0]
        for d in ti.static(range(dim)):
            found += seen[o[d], d] * field[1 + d]
        return found

    @kernel
    def receive(
        u: reals, position: reals, out: reals, n: ti.i32, dx: real, u_at: ti.i32, position_at: ti.i32, out_at: ti.i32
    ):
        ti.loop_config(serialize=True)
        for r in range(n):
            seen, w, _ = spline.stencil(vector(position, position_at, r), 1.0 / dx)
            total = real(0.0)
            for number in range(seen_cells):
                o = spline.offset(number)
                total += f.received(u[u_at + cell_index(seen, o)], spline.weight(w, o))
            out[out_at + r] = total

    @kernel
    def adj_receive(
        u: reals, position: reals, adj_out: reals, scale: reals, adj_u: reals, adj_position: reals, n: ti.i32, dx: real,
        u_at: ti.i32, position_at: ti.i32, adj_out_at: ti.i32, scale_at: ti.i32, adj_u_at: ti.i32,
        adj_position_at: ti.i32,
    ):  # fmt: skip
        """Add each cell's adjoint times its entry of `scale` to adj_u, as fused loops carry kappa adj_u."""
        ti.loop_config(serialize=True)
        for r in range(n):
            seen, w, s = spline.stencil(vector(position, position_at, r), 1.0 / dx)
            gx = vec(0.0)
            for number in range(seen_cells):
                o = spline.offset(number)
                at, weight, slope = cell_index(seen, o), spline.weight(w, o), spline.slope(w, s, o)
                adj_field, adj_x = f.adj_received(u[u_at + at], weight, slope, adj_out[adj_out_at + r])
                adj_u[adj_u_at + at] = adj_u[adj_u_at + at] + scale[scale_at + at] * adj_field
                gx += adj_x
            for d in ti.static(range(dim)):
                at = adj_position_at + dim * r + d
                adj_position[at] = adj_position[at] + gx[d]

    @kernel
    def jvp_receive(
        u: reals, position: reals, du: reals, dposition: reals, dout: reals, n: ti.i32, dx: real,
        u_at: ti.i32, position_at: ti.i32, du_at: ti.i32, dposition_at: ti.i32, dout_at: ti.i32,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for r in range(n):
            seen, w, s = spline.stencil(vector(position, position_at, r), 1.0 / dx)
            total, dx_r = real(0.0), vector(dposition, dposition_at, r)
            for number in range(seen_cells):
                o = spline.offset(number)
                at, weight, slope = cell_index(seen, o), spline.weight(w, o), spline.slope(w, s, o)
                total += f.jvp_received(u[u_at + at], weight, slope, du[du_at + at], dx_r)
            dout[dout_at + r] = total

    return SimpleNamespace(receive=receive, adj_receive=adj_receive, jvp_receive=jvp_receive)


class Receive(Function):
    """Values [R] of a field [*cells] at the receivers' position [R, dim] [m]. Saves the two inputs."""

    @staticmethod
    def forward(ctx: Context, model: Wave, height: Tensor, position: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(height, position)
        out = np.empty(model.receivers, height.dtype)
        _kernels(model).receive(*_flat(height, position), out, model.receivers, model.spacing, 0, 0, 0)
        return out

    @staticmethod
    def backward(ctx: Context, adj_out: Tensor) -> tuple[Any, ...]:
        model: Wave = ctx.model
        height, position = ctx.saved_tensors
        adj_height, adj_position = np.zeros_like(height.data), np.zeros_like(position.data)
        _kernels(model).adj_receive(
            *_flat(height, position), adj_out, np.ones_like(height.data).reshape(-1), adj_height.reshape(-1),
            adj_position.reshape(-1), model.receivers, model.spacing, 0, 0, 0, 0, 0, 0,
        )  # fmt: skip
        return None, adj_height, adj_position

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        model: Wave = ctx.model
        saved = ctx.saved_tensors
        changes = [d.reshape(-1) for d in tangents]
        dout = np.empty(model.receivers, saved[0].dtype)
        _kernels(model).jvp_receive(*_flat(*saved), *changes, dout, model.receivers, model.spacing, 0, 0, 0, 0, 0)
        return dout


def _flat(*inputs: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
    return tuple([values.data.reshape(-1) for values in inputs])


def _kernels(model: Wave) -> SimpleNamespace:
    return kernels(runtime.real(), model.cells, model.boundaries, row_major_layout(model.cells))
