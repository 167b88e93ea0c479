"""Sub-steps over the cells of a regular grid, each by itself; what these have in common with faces and sides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simphys.autograd.errors import InputError
from simphys.simulator import Shape

from .action import Site, Slot, build_element, zero_element
from .contribution import Contribution, add_entry_adjoint
from .function import declare
from .loops import LoopPattern
from .pattern import Source, name_sources
from .program import WHOLE, Domain, Op, Value, View
from .scope import Scope

CELLS = "cells"
"""Attribute of the model with the number of cells along each axis, and the name of the index set."""


def per_cell(
    func: Any,
    *,
    own: Mapping[str, str],
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    inner: Mapping[str, str] | None = None,
    entries: Mapping[str, tuple[str, int]] | None = None,
    index: str = "",
    results: Mapping[str, str | Shape] | None = None,
    components_first: bool = False,
    idle: Mapping[str, str] | None = None,
    over: str = CELLS,
) -> Any:
    """Declare a sub-step that applies an element function to each cell of the grid of `model.cells`.

    It is `per_element` for arrays of cells: numbers [*cells], and vectors [*cells, c], or [c, *cells] with
    `components_first`.

    - `inner`: parameters that tell where a cell lies, from attributes of the model with a bool for each axis: a vector
      with 1 for each axis, but 0 where the bool is True and the cell is the first one along the axis.
    - `idle`: for a parameter, another one that is the result wherever the first is zero. An engine then leaves it out.
    - `entries`: (array, number of an entry), for an entry that all cells share, such as that of a body.
    - `index`: a parameter that takes the index of the cell along each axis, a vector.
    - `over`: another attribute of the model with the shape of a grid, such as that of a layer.
    """
    known = {p: (p, name) for p, name in (inner or {}).items()} | ({index: (index, CELLS)} if index else {})
    numbered = {p: (name, f"{number}") for p, (name, number) in (entries or {}).items()}
    sources = name_sources(own=own, shared=shared, entry=numbered, constant={**(constant or {}), **known})
    made = PerCell(func, sources, results=results, components_first=components_first, over=over)
    made.idle = idle or {}
    return declare(made)


class GridPattern(LoopPattern):
    """Base of the patterns over a regular grid, whose arrays are [*cells], or [*cells, c] for vectors."""

    components_first = False
    """True if arrays of vectors are [c, *cells]."""
    grid_name = CELLS
    """Attribute of the model with the number of cells along each axis."""

    def read_cells(self, model: Any) -> Shape:
        """Read the number of cells along each axis. Errors: InputError for a model that has none."""
        cells = getattr(model, self.grid_name, None)
        if not (isinstance(cells, tuple) and cells and all([isinstance(n, int) and n > 0 for n in cells])):
            constraint = f"`{self.grid_name}` of the model is a tuple with the number of cells along each axis"
            raise InputError(self.source, constraint, repr(cells), "Add it to the model.")
        return cells

    def view_cells(self, name: str, value: Value, cells: Shape) -> View:
        """Elements of an array of cells. Errors: InputError for an array of another shape."""
        domain = Domain(self.grid_name, math.prod(cells), cells)
        if self.components_first and value.shape[1:] == cells:
            return View(domain, value.shape[:1], components_first=True)
        if value.shape[: len(cells)] != cells:
            constraint = f"{self.sources[name].field} has an entry for each cell: its shape begins with {list(cells)}"
            raise InputError(self.source, constraint, f"{list(value.shape)}", "Correct it.")
        return View(domain, value.shape[len(cells) :])

    def make_cell_outputs(self, op: Op, cells: Shape) -> tuple[Value, ...]:
        """Make the results, each with an element for each cell."""
        found = []
        for name, like in self.results.items():
            element = like if isinstance(like, tuple) else self.element_shape(op, like)
            first = self.components_first and bool(element)
            shape = (*element, *cells) if first else (*cells, *element)
            view = View(Domain(self.grid_name, math.prod(cells), cells), element, components_first=first)
            found.append(Value(name, shape, "local", view))
        return tuple(found)


class PerCell(GridPattern):
    """The pattern of `per_cell`."""

    def __init__(
        self,
        func: Any,
        sources: Mapping[str, Source],
        *,
        results: Mapping[str, str | Shape] | None,
        components_first: bool,
        over: str,
    ) -> None:
        super().__init__(func, sources, results=results, over=over)
        self.components_first, self.grid_name = components_first, over
        given = [name for name, source in self.sources.items() if not _is_known(source)]
        self.arguments = tuple([self.sources[name].field for name in given])
        self.places = tuple([given.index(name) if name in given else None for name in self.sources])

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        cells = self.read_cells(model)
        views = {}
        for name, value in inputs.items():
            if isinstance(value, Value):
                kind = self.sources[name].kind
                own = kind == "own" or (kind == "constant" and value.shape[: len(cells)] == cells)
                views[name] = self.view_cells(name, value, cells) if own else self._shared_view(name, value)
        placed = [(name, source.by) for name, source in self.sources.items() if _is_known(source)]
        closed = {name: tuple(getattr(model, by)) for name, by in placed if by != CELLS}
        op = Op(self, inputs, Domain(self.grid_name, math.prod(cells), cells), views, variant=tuple(closed.items()))
        op.outputs = self.make_cell_outputs(op, cells)
        return op

    def element_shape(self, op: Op, name: str) -> Shape:
        return (len(op.domain.grid),) if _is_known(self.sources[name]) else super().element_shape(op, name)

    def _shared_view(self, name: str, value: Value) -> View:
        """Elements of an array that is not one of cells."""
        if self.sources[name].kind != "entry":
            return View(WHOLE, value.shape)
        view, number = self.foreign_view(name, value), int(self.sources[name].by)
        if not 0 <= number < view.domain.size:
            constraint = f"{self.sources[name].field} has an entry with the number {number}"
            raise InputError(self.source, constraint, f"{view.domain.size} entries", "Correct the declaration.")
        return view

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        source = self.sources[name]
        if source.kind == "entry":
            return add_entry_adjoint(op, name, scope, int(source.by))
        return super().add_adjoint(op, scope, name)

    def load_input(self, site: Site, op: Op, scope: Scope, name: str, kind: Any) -> str:
        if self.sources[name].kind == "entry":
            value, view = op.array(name), op.views[name]
            if scope.is_zero(value) or (kind == "tangent" and not scope.moves(value)):
                return zero_element(view.element)
            return site.assign(value.name, site.load_at(Slot(kind, value), view, self.sources[name].by))
        if not self.sources[name].by:
            return super().load_input(site, op, scope, name, kind)
        variant: Any = op.variant
        parts = []
        if self.sources[name].by == CELLS:
            place = [locate_cell(site, op.domain.grid, axis) for axis in range(len(op.domain.grid))]
            return site.assign(name, build_element(place, (len(place),)))
        for axis, closed in enumerate(dict(variant)[name]):
            inside = not closed or (site.row and axis == len(op.domain.grid) - 1)
            at = "" if inside else locate_cell(site, op.domain.grid, axis)
            parts.append("1.0" if inside else f"ti.select({at} > 0, 1.0, 0.0)")
        return site.assign(name, build_element(parts, (len(parts),)))


def _is_known(source: Source) -> bool:
    """True for a parameter that takes no array."""
    return bool(source.by) and source.kind == "constant"


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
