"""Sub-steps in which each element is computed by itself: nodes, particles, springs, or the system as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Shape

from .action import Site, build_element
from .contribution import Contribution, Ends, write_ends
from .function import declare
from .loops import LoopPattern
from .pattern import Source, name_sources
from .program import Domain, Op, Value, View
from .relation import cached, find_attribute
from .scope import Scope, adjoint_slot


def per_element(
    func: Any,
    *,
    over: str = "",
    own: Mapping[str, str] | None = None,
    shared: Mapping[str, str] | None = None,
    gathered: Mapping[str, tuple[str, str]] | None = None,
    constant: Mapping[str, str] | None = None,
    of_model: Mapping[str, str] | None = None,
    results: Mapping[str, str | Shape] | None = None,
    idle: Mapping[str, str] | None = None,
) -> Any:
    """Declare a sub-step that applies an element function to each element of an index set.

    Each mapping goes from parameters of the element function to names of arrays.

    - `over`: the index set, such as "nodes"; without one, the function takes whole arrays.
    - `own`: arrays with an entry for each element: numbers [n], vectors [n, c] or matrices [n, r, c].
    - `shared`: arrays that all elements share: a number [] or a vector [c].
    - `gathered`: (array, attribute of the model with the index of the entry that each element reads; -1 reads 0).
      Several parameters may read entries of one array.
    - `constant`: numbers, or arrays with an entry for each element, that no gradient flows to.
    - `of_model`: attributes of the model, arrays with a number or a vector for each element. An attribute may have its
      own attributes, as in "springs.anchor".
    - `results`: names of the results. Each is followed by the parameter whose shape an element of it has, or by that
      shape; "model.freedoms" is a vector of as many components as this attribute of the model says. By default there is
      one, named like the element function, of the shape of the first parameter.
    - `idle`: for a parameter, another one that is the result wherever the first is zero. An engine then leaves it out.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    sources = name_sources(own=own, shared=shared, gathered=gathered, constant=constant, model=of_model)
    made = PerElement(func, sources, results=results, over=over)
    made.idle = idle or {}
    return declare(made)


TABLE = "table"
"""Name of the array of all numbers of the model that a sub-step reads."""


class PerElement(LoopPattern):
    """The pattern of `per_element`."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self._find_domain(model, inputs)
        self.require_constants(inputs, domain)
        views = {name: self.view(name, v, domain) for name, v in inputs.items() if isinstance(v, Value)}
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
        views |= {name: View(domain, part.shape[1:]) for name, part in parts.items()}
        if parts:
            relations[TABLE] = self._tabulate(model, list(parts.values()))
        op = Op(self, inputs, domain, views, relations=relations)
        gathered = {source.by for source in self.sources.values() if source.kind == "gathered"}
        gaps = tuple([by for by in sorted(gathered) if (relations[by] < 0).any()])
        op.variant = gaps, tuple([(part.shape[1:], part.dtype.kind) for part in parts.values()])
        op.outputs = self.make_outputs(op, domain, model)
        return op

    @property
    def _of_model(self) -> dict[str, Source]:
        return {name: source for name, source in self.sources.items() if source.kind == "model"}

    def _find_domain(self, model: Any, inputs: Mapping[str, Value | float]) -> Domain:
        """Find the index set: that of its own arrays, or of an index array if it has none."""
        kinds = [source.kind for source in self.sources.values()]
        if "own" in kinds or "gathered" not in kinds:
            return self.own_domain(inputs)
        by = self.sources[next(name for name, kind in zip(self.sources, kinds, strict=True) if kind == "gathered")].by
        return Domain(self.over, len(find_attribute(model, by)))

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
        if name not in self._of_model:
            return super().load_input(site, op, scope, name, kind)
        assert isinstance(op.variant, tuple), "made with the sub-step"
        layout = dict(zip(self._of_model, op.variant[1], strict=True))
        sizes = [math.prod(shape) for shape, _ in layout.values()]
        begin, (shape, number) = sum(sizes[: list(layout).index(name)]), layout[name]
        table = scope.relation(op, TABLE)
        parts = [f"{table}[{sum(sizes)} * {site.index} + {begin + c}]" for c in range(math.prod(shape))]
        found = build_element(parts, shape)
        return site.assign(name, f"ti.cast({found}, i32)" if number == "i" else found)

    def view(self, name: str, value: Value, domain: Domain) -> View:
        if self.sources[name].kind == "gathered":
            return self.foreign_view(name, value)
        return super().view(name, value, domain)

    def has_gaps(self, op: Op, by: str) -> bool:
        return by in op.variant[0] if isinstance(op.variant, tuple) else True

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        source = self.sources[name]
        if source.kind != "gathered":
            return super().add_adjoint(op, scope, name)
        ends = Ends("+", source.by, self.has_gaps(op, source.by))
        return write_ends(op, scope, adjoint_slot(op.array(name)), op.views[name], ends)
