"""Sub-steps over the open sides of a regular grid: what flows from outside into the cells at them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Array, Shape

from .action import Access, Slot
from .contribution import Contribution, Ends, write_ends
from .function import declare
from .grid import GridPattern
from .pattern import name_sources
from .program import WHOLE, Domain, ElementView, Op, Value
from .relation import cached, with_inverse
from .scope import Scope
from .site import Site

CELL, SIDE = "side_cell", "side_number"
"""Relations: the cell, and the number of the side, of each face at an open side."""


def sides(
    func: Any,
    *,
    onto: str,
    cells: Mapping[str, str],
    of_side: Mapping[str, str] | None = None,
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    open_sides: str = "open_sides",
) -> Any:
    """Declare a sub-step over the faces at the open sides of the grid of `model.cells`.

    The element function returns what flows through a face into its cell. Sides are numbered: 0 and 1 at the beginning
    and the end of the first axis, 2 and 3 of the second one. Each mapping goes from parameters to names of arrays.

    - `cells`: arrays of cells, of which the cell at the face is read.
    - `of_side`: arrays with an entry for each of the 2 dim sides.
    - `shared`, `constant`: numbers or vectors that all faces share; no gradient flows to constants.
    - `onto`: name of the result, an array of cells, to which the flow is added.
    - `open_sides`: attribute of the model with the numbers of the open sides.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    gathered = {p: (name, CELL) for p, name in cells.items()} | {p: (name, SIDE) for p, name in (of_side or {}).items()}
    sources = name_sources(gathered=gathered, shared=shared, constant=constant)
    made = Sides(func, sources, results={onto: next(iter(cells))}, over="side_faces")
    made.open_sides = open_sides
    return declare(made)


class Sides(GridPattern):
    """The pattern of `sides`."""

    adjoint_access: Access = "other"
    has_own_results = False
    open_sides = ""
    """Attribute of the model with the numbers of the open sides."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.read_grid(model)
        cells = domain.grid
        numbers = tuple(getattr(model, self.open_sides, ()))
        if not numbers or sorted(set(numbers)) != sorted(numbers) or not set(numbers) <= set(range(2 * len(cells))):
            constraint = f"`{self.open_sides}` of the model has numbers of sides, 0 ... {2 * len(cells) - 1}, each once"
            raise InputError(self.source, constraint, repr(numbers), "Correct it; leave the sub-step out without any.")
        cell, side = cached(model, f"{self.open_sides} faces", lambda: find_side_faces(cells, numbers))
        relations: dict[str, Array] = {}
        for name, relation, limit in ((CELL, cell, domain.size), (SIDE, side, 2 * len(cells))):
            relations |= with_inverse(model, name, relation, limit, key=f"{self.open_sides} {name}")
        views, domain_of_faces = self.make_views(inputs, domain), Domain(self.over, len(cell))
        op = Op(self, inputs, domain_of_faces, views, relations=relations, onto=domain)
        op.outputs = self.make_outputs(op, domain)
        return op

    def view(self, name: str, value: Value, domain: Domain) -> ElementView:
        by, count = self.sources[name].by, 2 * len(domain.grid)
        if by == CELL:
            return self.view_cells(name, value, domain)
        if by != SIDE:
            return ElementView(WHOLE, value.shape)
        if value.shape[:1] != (count,):
            constraint = f"{self.sources[name].field} has an entry for each of the {count} sides"
            raise InputError(self.source, constraint, f"shape {list(value.shape)}", "Correct it.")
        return self.foreign_view(name, value)

    def load_adjoint(self, site: Site, op: Op, scope: Scope, value: Value) -> str:
        at = site.once(f"{scope.relation(op, CELL)}[{site.index}]")
        return site.assign(value.name, site.load_at(Slot("adjoint", value), value.elements, at))

    def write_result(self, op: Op, scope: Scope, value: Value, kind: Literal["value", "tangent"]) -> Contribution:
        return write_ends(op, scope, Slot(kind, value), value.elements, Ends("+", CELL, guarded=True))


def find_side_faces(cells: Shape, numbers: tuple[int, ...]) -> tuple[Array, Array]:
    """List the cell and the side of each face at the given sides."""
    index = np.arange(math.prod(cells), dtype=np.int32).reshape(cells)
    layers = [np.take(index, -1 if number % 2 else 0, axis=number // 2).reshape(-1) for number in numbers]
    sides = [np.full(len(layer), number, np.int32) for number, layer in zip(numbers, layers, strict=True)]
    return np.concatenate(layers), np.concatenate(sides)
