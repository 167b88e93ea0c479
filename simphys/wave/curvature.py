"""The curvature of the field as the wave equation sees it, undivided: dx^2 laplace u, and what absorbing layers add.

    k_i = sum over axes of sum_m c_m u_{i+m} + extra_i

c are the coefficients of `math.stencil`, of order 2, 4 or 8. Beyond a side u is continued oddly, evenly, periodically,
or it is 0 there (see `math.boundary`), in such a way that the matrix of the sum is symmetric. Adjoint, for g = adj_k:

    adj_u_i = sum over axes of sum_m c_m g_{i+m} + what layers give back          (see `layer`)

with g continued as u is. Sources: Fornberg 1988; Pasalic and McGarry 2010.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Context, Function, Tensor
from ..simulator import Array
from .grid_loops import GridLoops
from .model import Wave


class Curvature(Function):
    """k [*cells] and the next slope_memory and curvature_memory [layer_cells]. It is linear: nothing is saved."""

    @staticmethod
    def forward(
        ctx: Context, model: Wave, height: Tensor, slope_memory: Tensor, curvature_memory: Tensor
    ) -> tuple[Array, Array, Array]:
        ctx.model = model
        return _curvature(model, height.data, slope_memory.data, curvature_memory.data)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        model: Wave = ctx.model
        g, adj_psi, adj_zeta = (adjoint.data for adjoint in adjoints)
        grid = GridLoops(model, 1)
        w, extra = _continued(grid, g), np.zeros(grid.layout.size, g.dtype)
        adj_psi, adj_zeta = grid.into_slabs(adj_psi), grid.into_slabs(adj_zeta)
        for back in grid.adj_layers(w, adj_psi, adj_zeta, extra, of_w=0):
            back(0)
        adj_u = grid.layout.cells(grid.curvature(w, extra)).copy()
        return None, adj_u, grid.from_slabs(adj_psi), grid.from_slabs(adj_zeta)

    @staticmethod
    def jvp(ctx: Context, _model: None, *tangents: Any) -> tuple[Array, Array, Array]:
        model: Wave = ctx.model
        shapes = model.state_shapes()
        names = ("height", "slope_memory", "curvature_memory")
        dtype = next(d.dtype for d in tangents if d is not None)
        given = [np.zeros(shapes[name], dtype) if d is None else d for name, d in zip(names, tangents, strict=True)]
        return _curvature(model, *given)


def _curvature(model: Wave, u: Array, psi: Array, zeta: Array) -> tuple[Array, Array, Array]:
    grid = GridLoops(model, 1)
    padded, extra = _continued(grid, u), np.zeros(grid.layout.size, u.dtype)
    psi, zeta = grid.into_slabs(psi), grid.into_slabs(zeta)
    for layer in grid.layers(padded, psi, zeta, extra, of_u=0, of_psi=0):
        layer(0, 0, 0)
    k = grid.layout.cells(grid.curvature(padded, extra)).copy()
    return k, grid.from_slabs(psi), grid.from_slabs(zeta)


def _continued(grid: GridLoops, values: Array) -> Array:
    """Cells in the grid's layout, continued beyond the sides."""
    padded = grid.layout.padded(values)
    for launch in grid.continue_beyond(padded, of_u=0):
        launch(0)
    return padded
