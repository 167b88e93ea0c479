"""Sub-steps over the cells of a regular grid, each by itself; what these have in common with faces and sides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simphys.autograd.errors import InputError
from simphys.simulator import Shape

from .function import declare
from .loops import LoopPattern
from .pattern import Source
from .program import WHOLE, Domain, Op, Value, View

CELLS = "cells"
"""Attribute of the model with the number of cells along each axis, and the name of the index set."""


def per_cell(
    func: Any,
    *,
    own: Mapping[str, str],
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    results: Mapping[str, str | Shape] | None = None,
) -> Any:
    """Declare a sub-step that applies an element function to each cell of the grid of `model.cells`.

    It is `per_element` for arrays of cells: numbers [*cells], or vectors [*cells, c].
    """
    sources = {p: Source("own", name) for p, name in own.items()}
    sources |= {p: Source("shared", name) for p, name in (shared or {}).items()}
    sources |= {p: Source("constant", name) for p, name in (constant or {}).items()}
    return declare(PerCell(func, sources, results=results, over=CELLS))


class GridPattern(LoopPattern):
    """Base of the patterns over a regular grid, whose arrays are [*cells], or [*cells, c] for vectors."""

    def read_cells(self, model: Any) -> Shape:
        """Read the number of cells along each axis. Errors: InputError for a model that has none."""
        cells = getattr(model, CELLS, None)
        if not (isinstance(cells, tuple) and cells and all([isinstance(n, int) and n > 0 for n in cells])):
            constraint = f"`{CELLS}` of the model is a tuple with the number of cells along each axis"
            raise InputError(self.source, constraint, repr(cells), "Add it to the model.")
        return cells

    def view_cells(self, name: str, value: Value, cells: Shape) -> View:
        """Elements of an array of cells. Errors: InputError for an array of another shape."""
        if value.shape[: len(cells)] != cells:
            constraint = f"{self.sources[name].field} has an entry for each cell: its shape begins with {list(cells)}"
            raise InputError(self.source, constraint, f"{list(value.shape)}", "Correct it.")
        return View(Domain(CELLS, math.prod(cells), cells), value.shape[len(cells) :])

    def make_cell_outputs(self, op: Op, cells: Shape) -> tuple[Value, ...]:
        """Make the results, each with an element for each cell."""
        found = []
        for name, like in self.results.items():
            element = like if isinstance(like, tuple) else self._element_shape(op, like)
            view = View(Domain(CELLS, math.prod(cells), cells), element)
            found.append(Value(name, (*cells, *element), "local", view))
        return tuple(found)


class PerCell(GridPattern):
    """The pattern of `per_cell`."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        cells = self.read_cells(model)
        views = {}
        for name, value in inputs.items():
            if isinstance(value, Value):
                kind = self.sources[name].kind
                own = kind == "own" or (kind == "constant" and value.shape[: len(cells)] == cells)
                views[name] = self.view_cells(name, value, cells) if own else View(WHOLE, value.shape)
        op = Op(self, inputs, Domain(CELLS, math.prod(cells), cells), views)
        op.outputs = self.make_cell_outputs(op, cells)
        return op
