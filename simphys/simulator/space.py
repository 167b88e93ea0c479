"""Space of a model: the number of its dimensions, from a grid or a box."""

from __future__ import annotations

from typing import Any

from .declare import units_of_cells
from .grids import Grid


class OnGrid:
    """A model on a regular grid, whose fields with a value for each cell are those declared so."""

    cells: tuple[int, ...]
    spacing: float
    Params: Any
    State: Any

    @property
    def dim(self) -> int:
        """Number of space dimensions."""
        return len(self.cells)

    def describe_grid(self) -> Grid | None:
        fields = units_of_cells(self, self.State) | units_of_cells(self, self.Params)
        return Grid(cells=self.cells, spacing=self.spacing, offset=0.5, fields=fields) if fields else None


class InBox:
    """A model of particles in a box, whose axes are periodic or open."""

    box: tuple[float, ...]

    @property
    def dim(self) -> int:
        """Number of space dimensions."""
        return len(self.box)
