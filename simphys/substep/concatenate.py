"""Concatenation: the numbers of several arrays, one after the other, in an array of numbers; and parts of one.

A part has the elements of an index set, such as the signals of a control for each body.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple

from simphys.autograd.errors import InputError
from simphys.simulator import Shape

from .action import Action, Slot
from .contribution import append_map, write_own
from .expressions import build_element, split_element, zero_element
from .function import declare
from .linear_map import LinearMap
from .pattern import Source
from .program import Domain, ElementView, Op, Value, arrays_of, make_local
from .scope import Scope, adjoint_slot
from .site import Site


def concatenate(*fields: str | tuple[str, ...], result: str) -> Any:
    """Declare a sub-step that concatenates the named arrays, of any shapes, in C order.

    A tuple names arrays over one index set: the elements of all of them at the first index, then at the second, ...

    Returns a Function, to be applied to the model and the arrays.
    """
    return declare(Concatenate([(name,) if isinstance(name, str) else name for name in fields], result))


def part(field: str, *, begin: int, shape: Shape, over: str, result: str) -> Any:
    """Declare a sub-step that takes the numbers from `begin` on of an array, as an array of a shape [n, ...].

    Returns a Function, to be applied to the model and the array.
    """
    return declare(Part(field, begin, shape, over, result))


class Piece(NamedTuple):
    """One of the arrays: its element i has the entries from begin + stride * i in the result."""

    value: Value
    view: ElementView
    begin: int
    stride: int

    def addresses(self, index: str) -> list[str]:
        """Expressions of the positions of an element's components in the result."""
        return [f"({self.begin + c} + {self.stride} * {index})" for c in range(self.view.components)]


class Concatenate(LinearMap):
    """The pattern of `concatenate`."""

    def __init__(self, groups: Sequence[tuple[str, ...]], result: str) -> None:
        super().__init__(result, {name: Source("own", name) for group in groups for name in group}, over="")
        self.name, self.source, self.groups = "Concatenate", f"Concatenate({', '.join(self.varying)})", groups

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        values = arrays_of(inputs)
        views: dict[str, ElementView] = {}
        for group in self.groups:
            sizes = {name: values[name].shape[:1] for name in group}
            if len(group) > 1 and (len(set(sizes.values())) > 1 or () in sizes.values()):
                found = ", ".join([f"{name} has {size}" for name, size in sizes.items()])
                raise InputError(self.source, "arrays over one index set have the same length", found, "Correct them.")
            views |= {name: _view(values[name], group) for name in group}
        size = sum([value.size for value in values.values()])
        domain = Domain("_".join([value.name for value in values.values()]), size)
        return Op(self, inputs, domain, views, (make_local(next(iter(self.results)), domain),))

    def adjoint(self, op: Op, scope: Scope) -> None:
        source, view = Slot("adjoint", op.outputs[0]), op.outputs[0].elements
        for piece in self._pieces(op):
            if scope.wants(piece.value):
                _take(piece, source, view, adjoint_slot(piece.value), scope)

    def map(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        target, view = Slot(kind, op.outputs[0]), op.outputs[0].elements
        scope.started.add(target)
        together: dict[Domain, list[Piece]] = {}
        for piece in self._pieces(op):
            together.setdefault(piece.view.domain, []).append(piece)
        for domain, pieces in together.items():
            self._append_copies(domain, pieces, target, view, scope)

    def _append_copies(
        self, domain: Domain, pieces: Sequence[Piece], target: Slot, view: ElementView, scope: Scope
    ) -> None:
        moving = [piece for piece in pieces if target.kind == "value" or scope.moves(piece.value)]

        def emit(site: Site) -> None:
            for piece in pieces:
                source, shape = Slot(target.kind, piece.value), piece.view.element
                given = site.load(source, piece.view) if piece in moving else site.assign("zero", zero_element(shape))
                for at, number in zip(piece.addresses(site.index), split_element(given, shape), strict=True):
                    site.set_at(target, view, at, number)

        reads: Any = {Slot(target.kind, piece.value): "own" for piece in moving}
        scope.add(Action(domain, emit, reads, {target: "other"}))

    def _pieces(self, op: Op) -> Iterator[Piece]:
        begin = 0
        for group in self.groups:
            counts = [op.views[name].components for name in group]
            for number, name in enumerate(group):
                yield Piece(op.array(name), op.views[name], begin + sum(counts[:number]), sum(counts))
            begin += sum(counts) * op.views[group[0]].domain.size


def entries(value: Value) -> ElementView:
    """View of an array that no sub-step has seen before: its numbers."""
    return ElementView(Domain(f"{value.name}_entries", value.size), ())


def _view(value: Value, group: tuple[str, ...]) -> ElementView:
    """Elements of an array: those of another sub-step, but that arrays of a tuple have theirs along the first axis."""
    if len(group) == 1:
        return value.view or entries(value)
    length, *rest = value.shape
    if value.view is not None and (value.view.domain.size, value.view.element) == (length, tuple(rest)):
        return value.view
    return ElementView(Domain(f"{value.name}_elements", length), tuple(rest))


def _take(piece: Piece, source: Slot, view: ElementView, to: Slot, scope: Scope) -> None:
    """Append the loop that takes the elements of a piece out of an array of numbers."""

    def take(site: Site) -> str:
        parts = [site.load_at(source, view, at) for at in piece.addresses(site.index)]
        return build_element(parts, piece.view.element)

    append_map(scope, piece.view.domain, write_own(to, piece.view, scope), take, {source: "other"})


class Part(LinearMap):
    """The pattern of `part`."""

    def __init__(self, field: str, begin: int, shape: Shape, over: str, result: str) -> None:
        super().__init__(result, {field: Source("own", field)}, over=over)
        self.name, self.source = "Part", f"Part({field})"
        given: tuple[object, ...] = (begin, *shape)
        for number in given:
            if isinstance(number, bool) or not isinstance(number, Integral) or number < 0 or not shape:
                constraint = "begin is a number of entries, 0 or more, and shape is numbers of elements [n, ...]"
                raise InputError(self.source, constraint, f"begin={begin!r}, shape={shape!r}", "Count from the front.")
        self._begin, self._shape = int(begin), tuple([int(length) for length in shape])

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        ((name, value),) = inputs.items()
        end = self._begin + math.prod(self._shape)
        if not isinstance(value, Value) or len(value.shape) != 1 or value.size < end:
            found = f"{list(value.shape)}" if isinstance(value, Value) else repr(value)
            raise InputError(self.source, f"the array holds {end} numbers or more", found, "Correct it.")
        domain = Domain(self.over, self._shape[0])
        made = make_local(next(iter(self.results)), domain, self._shape[1:])
        return Op(self, inputs, domain, {name: ElementView(Domain(name, value.size), ())}, (made,), variant=self._begin)

    def map(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        piece, source, view = self._ends(op)
        _take(piece, Slot(kind, source), view, Slot(kind, piece.value), scope)

    def adjoint(self, op: Op, scope: Scope) -> None:
        piece, source, view = self._ends(op)
        target, given = adjoint_slot(source), Slot("adjoint", piece.value)
        scope.begin(target, view, "other")

        def emit(site: Site) -> None:
            parts = split_element(site.load(given, piece.view), piece.view.element)
            terms = zip(piece.addresses(site.index), parts, strict=True)
            site.add_all([(target, view, at, name) for at, name in terms])

        scope.add(Action(op.domain, emit, {given: "own", target: "other"}, {target: "other"}))

    def _ends(self, op: Op) -> tuple[Piece, Value, ElementView]:
        ((name, view),) = op.views.items()
        made = op.outputs[0]
        return Piece(made, made.elements, self._begin, made.elements.components), op.array(name), view
