"""A part of an array of numbers as elements of an index set: such as the signals of a control for each body."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from simphys.autograd.errors import InputError
from simphys.numerics.element import Element
from simphys.simulator import Shape

from .action import Action, Site, Slot, build_element, split_element
from .concatenate import entry
from .contribution import write_own
from .function import declare
from .pattern import Pattern, Source
from .program import Domain, Op, Value, View
from .scope import Scope, adjoint_slot


def part(field: str, *, begin: int, shape: Shape, over: str, result: str) -> Any:
    """Declare a sub-step that takes the numbers from `begin` on of an array, as an array of a shape [n, ...].

    Returns a Function, to be applied to the model and the array.
    """
    return declare(Part(field, begin, shape, over, result))


class Part(Pattern):
    """The pattern of `part`."""

    def __init__(self, field: str, begin: int, shape: Shape, over: str, result: str) -> None:
        self.element: Element = entry.element
        self.name, self.source, self.over = "Part", f"Part({field})", over
        self.sources, self.arguments, self.places = {field: Source("own", field)}, (field,), (0,)
        self.varying, self.results = (field,), {result: shape}
        self._begin, self._shape = begin, shape

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        ((name, value),) = inputs.items()
        end = self._begin + math.prod(self._shape)
        if not isinstance(value, Value) or len(value.shape) != 1 or value.size < end:
            found = f"{list(value.shape)}" if isinstance(value, Value) else repr(value)
            raise InputError(self.source, f"the array holds {end} numbers or more", found, "Correct it.")
        domain = Domain(self.over, self._shape[0])
        ((result, shape),) = self.results.items()
        assert isinstance(shape, tuple), "given so"
        made = Value(result, shape, "local", View(domain, shape[1:]))
        return Op(self, inputs, domain, {name: View(Domain(name, value.size), ())}, (made,), variant=self._begin)

    def forward(self, op: Op, scope: Scope) -> None:
        self._copy(op, scope, "value")

    def tangent(self, op: Op, scope: Scope) -> None:
        self._copy(op, scope, "tangent")

    def _copy(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        source, view, made = self._ends(op)
        target = write_own(Slot(kind, op.outputs[0]), made, scope)

        def emit(site: Site) -> None:
            parts = [site.load_at(Slot(kind, source), view, at) for at in self._addresses(site, made)]
            target.write(site, build_element(parts, made.element))

        scope.add(Action(op.domain, emit, {Slot(kind, source): "other"}, {target.slot: "own"}))

    def adjoint(self, op: Op, scope: Scope) -> None:
        source, view, made = self._ends(op)
        target, given = adjoint_slot(source), Slot("adjoint", op.outputs[0])
        scope.begin(target, view, "other")

        def emit(site: Site) -> None:
            parts = split_element(site.load(given, made), made.element)
            terms = zip(self._addresses(site, made), parts, strict=True)
            site.add_all([(target, view, at, name) for at, name in terms])

        scope.add(Action(op.domain, emit, {given: "own", target: "other"}, {target: "other"}))

    def _ends(self, op: Op) -> tuple[Value, View, View]:
        ((name, view),) = op.views.items()
        value, made = op.inputs[name], op.outputs[0].view
        assert isinstance(value, Value) and made is not None, "checked when made"
        return value, view, made

    def _addresses(self, site: Site, made: View) -> list[str]:
        return [f"({self._begin + c} + {made.components} * {site.index})" for c in range(made.components)]
