"""Sums of the vectors that belong to an element of another index set: such as the forces of all springs on each body.

It is the transpose of reading by an index, as `gathered` parameters of `per_element` do: so its adjoint reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from simphys.autograd.errors import InputError
from simphys.simulator import Array

from .action import Slot
from .contribution import Ends, append_map, write_ends, write_own
from .expressions import zero_element
from .function import declare
from .linear_map import LinearMap
from .loops import LoopPattern
from .pattern import Source
from .program import Domain, ElementView, Op, Value, make_local
from .scope import Scope, adjoint_slot
from .site import Site


def collect(result: str, *, parts: Mapping[str, str], over: str, onto: str) -> Any:
    """Declare a sub-step that adds the entries of arrays to elements of another index set.

    - `parts`: from names of arrays to attributes of the model with the element that each entry goes to; -1 is none.
    - `over`: the index set of these arrays, such as "springs".
    - `onto`: the index set of the result, an attribute of the model with its size, such as "bodies".

    Returns a Function, to be applied to the model and the arrays.
    """
    return declare(Collect(result, parts, over, onto))


class Collect(LinearMap, LoopPattern):
    """The pattern of `collect`."""

    def __init__(self, result: str, parts: Mapping[str, str], over: str, onto: str) -> None:
        super().__init__(result, {name: Source("own", name, by) for name, by in parts.items()}, over=over)
        self._onto = onto

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain, onto = self.own_domain(inputs), Domain(self._onto, getattr(model, self._onto))
        views = self.make_views(inputs, domain)
        elements = {name: view.element for name, view in views.items()}
        if len(set(elements.values())) != 1:
            raise InputError(self.source, "its arrays have entries of one shape", str(elements), "Correct them.")
        relations: dict[str, Array] = {}
        for source in self.sources.values():
            relations |= self.read_relation(model, source.by, (domain.size,), onto.size)
        gaps = tuple([source.by for source in self.sources.values() if (relations[source.by] < 0).any()])
        op = Op(self, inputs, domain, views, relations=relations, onto=onto, variant=gaps)
        element = next(iter(elements.values()))
        op.outputs = (make_local(next(iter(self.results)), onto, element),)
        return op

    def map(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        (result,) = op.outputs
        for name, source in self.sources.items():
            slot, view = self._slot(op, name, kind), op.views[name]
            moves = kind == "value" or scope.moves(slot.value)
            ends = Ends("+", source.by, self.has_gaps(op, source.by))
            target = write_ends(op, scope, Slot(kind, result), result.elements, ends)

            def load(site: Site, slot: Slot = slot, view: ElementView = view, moves: bool = moves) -> str:
                return site.load(slot, view) if moves else zero_element(view.element)

            append_map(scope, op.domain, target, load, {slot: "own"} if moves else {})

    def adjoint(self, op: Op, scope: Scope) -> None:
        given, view = Slot("adjoint", op.outputs[0]), op.outputs[0].elements
        for name, source in self.sources.items():
            slot = self._slot(op, name, "adjoint")
            if not scope.wants(slot.value):
                continue

            def gather(site: Site, by: str = source.by) -> str:
                return self.load_gathered(site, op, scope, by, given, view)

            target = write_own(adjoint_slot(slot.value), op.views[name], scope)
            append_map(scope, op.domain, target, gather, {given: "other"})

    def has_gaps(self, op: Op, by: str) -> bool:
        return by in op.variant

    def _slot(self, op: Op, name: str, kind: Any) -> Slot:
        return Slot(kind, op.array(name))
