"""Sub-steps in which each element is computed by itself: nodes, particles, springs, or the system as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.simulator import Array, Shape

from .contribution import Contribution, Ends, write_ends
from .function import declare
from .loops import LoopPattern
from .pattern import Source
from .program import Domain, Op, Value, View
from .scope import Scope, adjoint_slot


def per_element(
    func: Any,
    *,
    over: str = "",
    own: Mapping[str, str] | None = None,
    shared: Mapping[str, str] | None = None,
    gathered: Mapping[str, tuple[str, str]] | None = None,
    constant: Mapping[str, str] | None = None,
    results: Mapping[str, str | Shape] | None = None,
) -> Any:
    """Declare a sub-step that applies an element function to each element of an index set.

    Each mapping goes from parameters of the element function to names of arrays.

    - `over`: the index set, such as "nodes"; without one, the function takes whole arrays.
    - `own`: arrays with an entry for each element: numbers [n], vectors [n, c] or matrices [n, r, c].
    - `shared`: arrays that all elements share: a number [] or a vector [c].
    - `gathered`: (array, attribute of the model with the index of the entry that each element reads; -1 reads 0).
    - `constant`: numbers, or arrays with an entry for each element, that no gradient flows to.
    - `results`: names of the results. Each is followed by the parameter whose shape an element of it has, or by that
      shape. By default there is one, named like the element function, of the shape of the first parameter.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    sources = {p: Source("own", name) for p, name in (own or {}).items()}
    sources |= {p: Source("shared", name) for p, name in (shared or {}).items()}
    sources |= {p: Source("gathered", name, by) for p, (name, by) in (gathered or {}).items()}
    sources |= {p: Source("constant", name) for p, name in (constant or {}).items()}
    return declare(PerElement(func, sources, results=results, over=over))


class PerElement(LoopPattern):
    """The pattern of `per_element`."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.own_domain(inputs)
        views = {name: self.view(name, v, domain) for name, v in inputs.items() if isinstance(v, Value)}
        relations: dict[str, Array] = {}
        for name, source in self.sources.items():
            if source.kind == "gathered":
                relations |= self.read_relation(model, source.by, (domain.size,), views[name].domain.size)
        op = Op(self, inputs, domain, views, relations=relations)
        gathered = {source.by for source in self.sources.values() if source.kind == "gathered"}
        op.variant = tuple([by for by in sorted(gathered) if (relations[by] < 0).any()])
        op.outputs = self.make_outputs(op, domain)
        return op

    def view(self, name: str, value: Value, domain: Domain) -> View:
        if self.sources[name].kind == "gathered":
            return self.foreign_view(name, value)
        return super().view(name, value, domain)

    def has_gaps(self, op: Op, by: str) -> bool:
        return by in op.variant if isinstance(op.variant, tuple) else True

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        source, value = self.sources[name], op.inputs[name]
        if source.kind != "gathered":
            return super().add_adjoint(op, scope, name)
        assert isinstance(value, Value)
        return write_ends(
            op, scope, adjoint_slot(value), op.views[name], Ends("+", source.by, self.has_gaps(op, source.by))
        )
