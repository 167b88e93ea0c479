"""Sub-steps in which each element is computed by itself: nodes, springs, cells of a grid, or the system as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Shape

from .action import Slot
from .contribution import Contribution, add_own_adjoint
from .expressions import build_element, zero_element
from .function import declare
from .grid import CELLS, GridPattern, locate_cell
from .pattern import Source, name_sources
from .program import WHOLE, Domain, ElementView, Op, Value, arrays_of
from .relation import cached, find_attribute
from .scope import Scope
from .site import Site

ENTRIES = "entries"
"""Name of the index set of all entries of arrays of one shape, whatever that is."""


def per_element(
    func: Any,
    *,
    over: str = "",
    own: Mapping[str, str] | None = None,
    shared: Mapping[str, str] | None = None,
    gathered: Mapping[str, tuple[str, str]] | None = None,
    entries: Mapping[str, tuple[str, int]] | None = None,
    constant: Mapping[str, str] | None = None,
    of_model: Mapping[str, str] | None = None,
    inner: Mapping[str, str] | None = None,
    index: str = "",
    results: Mapping[str, str | Shape] | None = None,
    components_first: bool = False,
    idle: Mapping[str, str] | None = None,
) -> Any:
    """Declare a sub-step that applies an element function to each element of an index set.

    Each mapping goes from parameters of the element function to names of arrays.

    - `over`: the index set, such as "nodes". If this attribute of the model is the shape of a grid, as "cells" is, its
      cells; with "entries", each entry of arrays of one shape, a number; without one, the function takes whole arrays.
    - `own`: arrays with an entry for each element: numbers [n], vectors [n, c] or matrices [n, r, c]. Arrays of cells
      are numbers [*cells], and vectors [*cells, c], or [c, *cells] with `components_first`.
    - `shared`: arrays that all elements share: a number [] or a vector [c].
    - `gathered`: (array, attribute of the model with the index of the entry that each element reads; -1 reads 0).
      Several parameters may read entries of one array.
    - `entries`: (array, number of an entry), for an entry that all elements share, such as that of a body.
    - `constant`: numbers, or arrays with an entry for each element, that no gradient flows to.
    - `of_model`: attributes of the model, arrays with a number or a vector for each element. An attribute may have its
      own attributes, as in "springs.anchor".
    - `inner`: parameters that tell where a cell lies, from attributes of the model with a bool for each axis: a vector
      with 1 for each axis, but 0 where the bool is True and the cell is the first one along the axis.
    - `index`: a parameter that takes the index of the cell along each axis, a vector.
    - `results`: names of the results. Each is followed by the parameter whose shape an element of it has, or by that
      shape; "model.freedoms" is a vector of as many components as this attribute of the model says. By default there is
      one, named like the element function, of the shape of the first parameter.
    - `idle`: for a parameter, another one that is the result wherever the first is zero. An engine then leaves it out.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    numbered = {p: (name, f"{number}") for p, (name, number) in (entries or {}).items()}
    placed = {p: (p, name) for p, name in (inner or {}).items()} | ({index: (index, CELLS)} if index else {})
    sources = name_sources(
        own=own, shared=shared, gathered=gathered, entry=numbered, constant=constant, model=of_model, cell=placed
    )
    made = PerElement(func, sources, results=results, over=over)
    made.grid_name, made.components_first, made.idle = over, components_first, idle or {}
    return declare(made)


TABLE = "table"
"""Name of the array of all numbers of the model that a sub-step reads."""


class PerElement(GridPattern):
    """The pattern of `per_element`."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self._find_domain(model, inputs)
        if not domain.grid:
            self.require_constants(inputs, domain)
        views = self.make_views(inputs, domain)
        relations: dict[str, Array] = {}
        lengths: dict[str, int] = {}
        for name, source in self.sources.items():
            if source.kind == "gathered":
                length = views[name].domain.size
                if lengths.setdefault(source.by, length) != length:
                    constraint = f"arrays that are gathered by `{source.by}` have one length"
                    found = f"{source.field} with {length} entries beside {lengths[source.by]}"
                    raise InputError(self.source, constraint, found, "Gather by another index array of the model.")
                relations |= self.read_relation(model, source.by, (domain.size,), length)
        parts = {name: self._read_array(model, source.field, domain.size) for name, source in self._of_model.items()}
        views |= {name: ElementView(domain, part.shape[1:]) for name, part in parts.items()}
        if parts:
            relations[TABLE] = self._tabulate(model, list(parts.values()))
        op = Op(self, inputs, domain, views, relations=relations)
        gathered = {source.by for source in self.sources.values() if source.kind == "gathered"}
        gaps = tuple([by for by in sorted(gathered) if (relations[by] < 0).any()])
        kinds = tuple([(part.shape[1:], part.dtype.kind) for part in parts.values()])
        op.variant = gaps, kinds, self._find_closed(model, domain)
        op.outputs = self.make_outputs(op, domain, model)
        return op

    @property
    def _of_model(self) -> dict[str, Source]:
        return {name: source for name, source in self.sources.items() if source.kind == "model"}

    def _find_domain(self, model: Any, inputs: Mapping[str, Value | float]) -> Domain:
        """Find the index set: that of its own arrays, or of an index array if it has none."""
        if self.over == ENTRIES:
            return self._find_entries(inputs)
        sizes = getattr(model, self.over, None)
        if self.over == CELLS or (
            isinstance(sizes, tuple) and sizes and all([isinstance(n, int | np.integer) for n in sizes])
        ):
            return self.read_grid(model)
        kinds = [source.kind for source in self.sources.values()]
        if "own" in kinds or "gathered" not in kinds:
            return self.own_domain(inputs)
        by = self.sources[next(name for name, kind in zip(self.sources, kinds, strict=True) if kind == "gathered")].by
        return Domain(self.over, len(find_attribute(model, by)))

    def _find_entries(self, inputs: Mapping[str, Value | float]) -> Domain:
        """Find the index set of all entries of its own arrays. Errors: InputError for arrays of several shapes."""
        own = {n: value for n, value in arrays_of(inputs).items() if self.sources[n].kind == "own"}
        shapes = {self.sources[n].field: value.shape for n, value in own.items()}
        if len(set(shapes.values())) != 1:
            found = ", ".join([f"{name} of {list(shape)}" for name, shape in shapes.items()])
            raise InputError(self.source, "its arrays have one shape", found or "none", "Correct them.")
        (shape,) = set(shapes.values())
        return Domain(f"{ENTRIES}_{'_'.join(map(str, shape))}", math.prod(shape), shape) if shape else WHOLE

    def _find_closed(self, model: Any, domain: Domain) -> tuple[tuple[str, tuple[bool, ...]], ...]:
        """Read for each parameter of `inner` which axes are closed. Errors: InputError for one without a grid."""
        placed = {name: source.by for name, source in self.sources.items() if source.kind == "cell"}
        if placed and not domain.grid:
            constraint = f"{', '.join(placed)} tells where a cell lies, so `{self.over}` of the model is a grid"
            raise InputError(self.source, constraint, repr(getattr(model, self.over, None)), "Correct `over`.")
        return tuple([(name, tuple(getattr(model, by))) for name, by in placed.items() if by != CELLS])

    def _read_array(self, model: Any, name: str, count: int) -> Array:
        """Read an array of the model. Errors: InputError for one that does not fit."""
        array = np.asarray(find_attribute(model, name))
        if array.shape[:1] != (count,) or array.dtype.kind not in "if":
            constraint = f"`{name}` of the model has numbers for each of {count} {self.over}"
            raise InputError(self.source, constraint, f"{array.dtype} of shape {array.shape}", "Correct the model.")
        return array

    def _tabulate(self, model: Any, parts: list[Array]) -> Array:
        """Make one array of all numbers of the model, element after element, as devices bind few arrays."""
        real = runtime.real_dtype()
        rows = [np.asarray(part, real).reshape(len(part), -1) for part in parts]
        name = f"{[source.field for source in self._of_model.values()]}, {real}"
        table: Array = cached(model, name, lambda: np.concatenate(rows, 1).reshape(-1))
        return table

    def load_input(self, site: Site, op: Op, scope: Scope, name: str, kind: Any) -> str:
        source = self.sources[name]
        if source.kind == "cell":
            return self._load_place(site, op, name, source.by)
        if source.kind == "entry":
            value, view = op.array(name), op.views[name]
            if scope.is_zero(value, kind):
                return zero_element(view.element)
            return site.assign(value.name, site.load_at(Slot(kind, value), view, source.by))
        if source.kind != "model":
            return super().load_input(site, op, scope, name, kind)
        layout = dict(zip(self._of_model, op.variant[1], strict=True))
        sizes = [math.prod(shape) for shape, _ in layout.values()]
        begin, (shape, number) = sum(sizes[: list(layout).index(name)]), layout[name]
        table = scope.relation(op, TABLE)
        at = [f"{sum(sizes)} * {site.index} + {begin + c}" for c in range(math.prod(shape))]
        parts = [site.read_constant(table, each) for each in at]
        found = build_element(parts, shape)
        return site.assign(name, f"ti.cast({found}, i32)" if number == "i" else found)

    def _load_place(self, site: Site, op: Op, name: str, by: str) -> str:
        """Write the index of the cell along each axis, or 1 for each axis along which it is an inner one."""
        cells = op.domain.grid
        if by == CELLS:
            place = [locate_cell(site, cells, axis) for axis in range(len(cells))]
            return site.assign(name, build_element(place, (len(place),)))
        parts = []
        for axis, closed in enumerate(dict(op.variant[2])[name]):
            inside = not closed or (site.row and axis == len(cells) - 1)
            at = "" if inside else locate_cell(site, cells, axis)
            parts.append("1.0" if inside else f"ti.select({at} > 0, 1.0, 0.0)")
        return site.assign(name, build_element(parts, (len(parts),)))

    def element_shape(self, op: Op, name: str) -> Shape:
        in_cell = name in self.sources and self.sources[name].kind == "cell"
        return (len(op.domain.grid),) if in_cell else super().element_shape(op, name)

    def view(self, name: str, value: Value, domain: Domain) -> ElementView:
        kind, by = self.sources[name].kind, self.sources[name].by
        if kind == "gathered":
            return self.foreign_view(name, value)
        if kind == "entry":
            view = self.foreign_view(name, value)
            if not 0 <= int(by) < view.domain.size:
                constraint = f"{self.sources[name].field} has an entry with the number {by}"
                raise InputError(self.source, constraint, f"{view.domain.size} entries", "Correct the declaration.")
            return view
        if not domain.grid:
            return super().view(name, value, domain)
        own = kind == "own" or (kind == "constant" and value.shape[: len(domain.grid)] == domain.grid)
        return self.view_cells(name, value, domain) if own else ElementView(WHOLE, value.shape)

    def has_gaps(self, op: Op, by: str) -> bool:
        return by in op.variant[0] if op.variant else True

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        kind, by = self.sources[name].kind, self.sources[name].by
        return add_own_adjoint(op, name, scope, int(by)) if kind == "entry" else super().add_adjoint(op, scope, name)
