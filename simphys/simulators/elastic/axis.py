"""An axis of the grid: its differences and means as matrices, see `numerics.staggered`, and its absorbing layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simphys.numerics.staggered import make_operators
from simphys.simulator import Array


@dataclass(frozen=True)
class Axis:
    """An axis with a number of cells, differences of an order, and absorbing layers at its low or high end."""

    cells: int
    order: int
    layer: int
    """Cells in a layer."""
    low: bool
    high: bool

    @cached_property
    def _operators(self) -> tuple[Array, ...]:
        return make_operators(self.order, self.cells)

    @property
    def centres(self) -> Array:
        """Differences h d/dx at the middle of cells."""
        return self._operators[0]

    @property
    def faces(self) -> Array:
        """Differences h d/dx at faces."""
        return self._operators[1]

    def weights(self, place: float) -> Array:
        """Weights of summation by parts at faces (place 0) or in the middle of cells (1/2): 1 but near ends."""
        return self._operators[2 if place else 3]

    @cached_property
    def mean(self) -> Array:
        """Mean at faces of the cells at both sides."""
        found = 0.5 * (np.eye(self.cells) + np.eye(self.cells, k=-1))
        found[0, 0] = 1.0
        return found

    @cached_property
    def continuation(self) -> Array:
        """Two places below the first from those above: the cubic polynomials through the first four."""
        found = np.zeros((2, self.cells))
        found[:, :4] = [[10.0, -20.0, 15.0, -4.0], [4.0, -6.0, 4.0, -1.0]]
        return found

    @cached_property
    def layer_cells(self) -> Array:
        """Numbers of the cells in layers."""
        at = np.arange(self.cells)
        return at[(self.low & (at < self.layer)) | (self.high & (at >= self.cells - self.layer))]

    @cached_property
    def layer_centres(self) -> Array:
        """Rows of `centres` in the layers."""
        return self.centres[self.layer_cells]

    @cached_property
    def layer_faces(self) -> Array:
        """Rows of `faces` in the layers."""
        return self.faces[self.layer_cells]

    @cached_property
    def onto(self) -> Array:
        """Cells from those in the layers."""
        return np.eye(self.cells)[:, self.layer_cells]
