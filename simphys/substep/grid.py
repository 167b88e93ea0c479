"""Grids of cells, as the sub-steps over them read them."""

from __future__ import annotations

import math
from typing import Any

from simphys.autograd.errors import InputError
from simphys.simulator import Shape

from .loops import LoopPattern
from .program import Domain, ElementView, Value
from .site import Site

CELLS = "cells"
"""Attribute of the model with the number of cells along each axis, and the name of the index set."""


class GridPattern(LoopPattern):
    """Base of the patterns over a regular grid, whose arrays are [*cells], or [*cells, c] for vectors."""

    grid_name = CELLS
    """Attribute of the model with the number of cells along each axis."""

    def read_grid(self, model: Any) -> Domain:
        """Read the grid of cells. Errors: InputError for a model that has none."""
        cells = getattr(model, self.grid_name, None)
        if not (isinstance(cells, tuple) and cells and all([isinstance(n, int) and n > 0 for n in cells])):
            constraint = f"`{self.grid_name}` of the model is a tuple with the number of cells along each axis"
            raise InputError(self.source, constraint, repr(cells), "Add it to the model.")
        return Domain(self.grid_name, math.prod(cells), cells)

    def view_cells(self, name: str, value: Value, domain: Domain) -> ElementView:
        """Elements of an array of cells. Errors: InputError for an array of another shape."""
        cells = domain.grid
        if self.components_first and value.shape[1:] == cells:
            return ElementView(domain, value.shape[:1], components_first=True)
        if value.shape[: len(cells)] != cells:
            constraint = f"{self.sources[name].field} has an entry for each cell: its shape begins with {list(cells)}"
            raise InputError(self.source, constraint, f"{list(value.shape)}", "Correct it.")
        return ElementView(domain, value.shape[len(cells) :])


def row_major(cells: Shape) -> list[int]:
    """Return the distance in memory from one cell to the next along each axis."""
    return [math.prod(cells[axis + 1 :]) for axis in range(len(cells))]


def locate_cell(site: Site, cells: Shape, axis: int) -> str:
    """Write the number of the loop's cell along an axis; it is the same for a whole row, but for the last axis."""
    if site.cell:
        return site.cell[axis]
    stride, last = math.prod(cells[axis + 1 :]), axis == len(cells) - 1
    if last and site.column:
        return site.column
    index = site.index if last else site.row or site.line_begin or site.index
    text = index if stride == 1 else f"{index} // {stride}"
    return site.once(text if axis == 0 else f"({text}) % {cells[axis]}")
