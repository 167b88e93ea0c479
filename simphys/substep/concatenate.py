"""Concatenation: the numbers of several arrays, one array after the other, in an array of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from simphys.autograd.errors import InputError
from simphys.numerics.element import Element, element

from .action import Action, Site, Slot, build_element, split_element, zero_element
from .contribution import write_own
from .function import declare
from .pattern import Pattern, Source
from .program import Domain, Op, Value, View
from .scope import Scope, adjoint_slot


def concatenate(*fields: str | tuple[str, ...], result: str) -> Any:
    """Declare a sub-step that concatenates the named arrays, of any shapes, in C order.

    A tuple names arrays over one index set: the elements of all of them at the first index, then at the second, ...

    Returns a Function, to be applied to the model and the arrays.
    """
    return declare(Concatenate([(name,) if isinstance(name, str) else name for name in fields], result))


@element
def entry(a):
    return a


@entry.adjoint
def adj_entry(a, adj):
    return adj


@entry.tangent
def jvp_entry(a, da):
    return da


class Piece(NamedTuple):
    """One of the arrays: its element i has the entries from begin + stride * i in the result."""

    value: Value
    view: View
    begin: int
    stride: int


class Concatenate(Pattern):
    """The pattern of `concatenate`."""

    def __init__(self, groups: Sequence[tuple[str, ...]], result: str) -> None:
        self.element: Element = entry.element
        self.groups = groups
        self.varying = tuple([name for group in groups for name in group])
        self.name, self.source, self.over = "Concatenate", f"Concatenate({', '.join(self.varying)})", ""
        self.sources = {name: Source("own", name) for name in self.varying}
        self.arguments, self.places = self.varying, tuple(range(len(self.varying)))
        self.results = {result: (0,)}

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        values = {name: value for name, value in inputs.items() if isinstance(value, Value)}
        views: dict[str, View] = {}
        for group in self.groups:
            sizes = {name: values[name].shape[:1] for name in group}
            if len(group) > 1 and (len(set(sizes.values())) > 1 or () in sizes.values()):
                found = ", ".join([f"{name} has {size}" for name, size in sizes.items()])
                raise InputError(self.source, "arrays over one index set have the same length", found, "Correct them.")
            views |= {name: _view(values[name], group) for name in group}
        size = sum([value.size for value in values.values()])
        domain = Domain("_".join([value.name for value in values.values()]), size)
        made = Value(next(iter(self.results)), (size,), "local", View(domain, ()))
        return Op(self, inputs, domain, views, (made,))

    def forward(self, op: Op, scope: Scope) -> None:
        self._copy(op, scope, "value")

    def tangent(self, op: Op, scope: Scope) -> None:
        self._copy(op, scope, "tangent")

    def adjoint(self, op: Op, scope: Scope) -> None:
        source, view = Slot("adjoint", op.outputs[0]), op.outputs[0].elements
        for piece in self._pieces(op):
            if scope.wants(piece.value):
                self._append_adjoint(piece, source, view, scope)

    def _append_adjoint(self, piece: Piece, source: Slot, view: View, scope: Scope) -> None:
        target = write_own(adjoint_slot(piece.value), piece.view, scope)

        def emit(site: Site) -> None:
            parts = [site.load_at(source, view, at) for at in _addresses(piece, site.index)]
            target.write(site, build_element(parts, piece.view.element))

        reads: Any = {source: "other"} | ({target.slot: "own"} if target.adds else {})
        scope.add(Action(piece.view.domain, emit, reads, {target.slot: "own"}))

    def _copy(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        target, view = Slot(kind, op.outputs[0]), op.outputs[0].elements
        scope.started.add(target)
        together: dict[Domain, list[Piece]] = {}
        for piece in self._pieces(op):
            together.setdefault(piece.view.domain, []).append(piece)
        for domain, pieces in together.items():
            self._append_copies(domain, pieces, target, view, scope)

    def _append_copies(self, domain: Domain, pieces: Sequence[Piece], target: Slot, view: View, scope: Scope) -> None:
        moving = [piece for piece in pieces if target.kind == "value" or scope.moves(piece.value)]

        def emit(site: Site) -> None:
            for piece in pieces:
                source, shape = Slot(target.kind, piece.value), piece.view.element
                given = site.load(source, piece.view) if piece in moving else site.assign("zero", zero_element(shape))
                for at, part in zip(_addresses(piece, site.index), split_element(given, shape), strict=True):
                    site.set_at(target, view, at, part)

        reads: Any = {Slot(target.kind, piece.value): "own" for piece in moving}
        scope.add(Action(domain, emit, reads, {target: "other"}))

    def _pieces(self, op: Op) -> Iterator[Piece]:
        begin = 0
        for group in self.groups:
            counts = [op.views[name].components for name in group]
            for number, name in enumerate(group):
                yield Piece(op.array(name), op.views[name], begin + sum(counts[:number]), sum(counts))
            begin += sum(counts) * op.views[group[0]].domain.size


def entries(value: Value) -> View:
    """View of an array that no sub-step has seen before: its numbers."""
    return View(Domain(f"{value.name}_entries", value.size), ())


def _view(value: Value, group: tuple[str, ...]) -> View:
    """Elements of an array: those of another sub-step, but that arrays of a tuple have theirs along the first axis."""
    if len(group) == 1:
        return value.view or entries(value)
    length, *rest = value.shape
    if value.view is not None and (value.view.domain.size, value.view.element) == (length, tuple(rest)):
        return value.view
    return View(Domain(f"{value.name}_elements", length), tuple(rest))


def _addresses(piece: Piece, index: str) -> list[str]:
    """Expressions of the positions of an element's components in the result."""
    return [f"({piece.begin + part} + {piece.stride} * {index})" for part in range(piece.view.components)]
