"""The undivided curvature in the wave equation: dx^2 laplace u plus the terms of the absorbing layers.

    k_i = sum over axes of sum_m c_m u_{i+m} + extra_i

c are the coefficients of `numerics.stencil`, of order 2, 4 or 8. Beyond a side u is extended oddly, evenly,
periodically or by zero (see `numerics.boundary`), such that the matrix of the sum is symmetric. Adjoint, for g = adj_k:

    adj_u_i = sum over axes of sum_m c_m g_{i+m} + adj_extra_i          (adj_extra: see `layer`)

with g extended as u is. Sources: Fornberg 1988; Pasalic and McGarry 2010.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor, runtime
from simphys.simulator import Array

from .grid_loops import GridLoops, Launch
from .model import Wave


class Curvature(Function):
    """k [*cells] and the next slope_memory and curvature_memory [layer_cells]. Linear, so nothing is saved."""

    @staticmethod
    def forward(
        ctx: Context, model: Wave, height: Tensor, slope_memory: Tensor, curvature_memory: Tensor
    ) -> tuple[Array, Array, Array]:
        runtime.require_precision("Curvature", height, slope_memory, curvature_memory)
        ctx.model = model
        return _workspace(model).forward(height.data, slope_memory.data, curvature_memory.data)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        return None, *_workspace(ctx.model).backward(*[adjoint.data for adjoint in adjoints])

    @staticmethod
    def jvp(ctx: Context, _model: None, *tangents: Any) -> tuple[Array, Array, Array]:
        return _workspace(ctx.model).forward(*tangents)


class _Workspace:
    """Arrays in the layout of a model's grid with launches bound to them, shared by all nodes of that model."""

    def __init__(self, model: Wave) -> None:
        self._grid = GridLoops(model, 1)
        real = runtime.real_dtype()
        self._field, self._extra, self._found = (np.zeros(self._grid.layout.size, real) for _ in range(3))
        self._psi, self._zeta = (np.zeros(self._grid.memory, real) for _ in range(2))
        self._halos = self._grid.bind_fill_halo(self._field, u_stride=0)
        self._curvature = self._grid.bind_curvature(self._field, self._extra, self._found)

    @cached_property
    def _layers(self) -> list[Launch]:
        return self._grid.bind_layers(self._field, self._psi, self._zeta, self._extra, u_stride=0, psi_stride=0)

    @cached_property
    def _adj_layers(self) -> list[Launch]:
        return self._grid.bind_adj_layers(self._field, self._psi, self._zeta, self._extra, w_stride=0)

    def forward(self, height: Array, psi: Array, zeta: Array) -> tuple[Array, Array, Array]:
        """Compute the curvature and the layers' next memories."""
        self._load(height, psi, zeta)
        for layer in self._layers:
            layer(0, 0, 0)
        return self._results()

    def backward(self, adj_curvature: Array, adj_psi: Array, adj_zeta: Array) -> tuple[Array, Array, Array]:
        """Apply the transpose of `forward`."""
        self._load(adj_curvature, adj_psi, adj_zeta)
        for layer in self._adj_layers:
            layer(0)
        return self._results()

    def _load(self, field: Array, psi: Array, zeta: Array) -> None:
        self._grid.layout.view_cells(self._field)[...] = field
        self._psi[...], self._zeta[...] = (self._grid.pack_memory(memory) for memory in (psi, zeta))
        self._extra[...] = 0
        for launch in self._halos:
            launch(0)

    def _results(self) -> tuple[Array, Array, Array]:
        self._curvature()
        return (
            self._grid.layout.view_cells(self._found).copy(),
            self._grid.unpack_memory(self._psi),
            self._grid.unpack_memory(self._zeta),
        )


@runtime.cached(maxsize=4)
def _workspace(model: Wave) -> _Workspace:
    return _Workspace(model)
