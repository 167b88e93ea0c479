"""Base of patterns of rows that act in order: their arrays, and a pass as one loop body."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from simphys.autograd.errors import InputError
from simphys.numerics.element import Element

from .action import Access, Action, Site, Slot
from .pattern import Pattern, Source
from .program import WHOLE, Op, Value
from .scope import Scope, adjoint_slot, hidden
from .sequence_call import WORDS, Call
from .sequence_text import Text


class SequencePattern(Pattern):
    """Base of patterns of rows. Its inputs go by the names of the arrays; some of them, the state, are replaced."""

    is_cheap = False
    is_serial = True
    reads_results = False
    guards = False
    """True if an element with a negative index is none: it reads 0, and nothing is written there."""

    def _set_up(self, name: str, state: Sequence[str], calls: Sequence[Call], sources: Mapping[str, Source]) -> None:
        """Set what patterns have; `sources` are those of the state, and constants that no call takes."""
        self.state, self.name = tuple(state), name
        self.source = f"{type(self).__name__}({', '.join([call.element.name for call in calls])})"
        self.element: Element = calls[0].element
        self._calls = tuple(calls)
        found = {name: source for name, source in sources.items() if source.kind != "constant"}
        for call in calls:
            collect_sources(call, found)
        self.sources = found | {name: source for name, source in sources.items() if source.kind == "constant"}
        self.arguments = tuple([source.field for source in self.sources.values()])
        self.places = tuple(range(len(self.arguments)))
        self.varying = tuple([name for name, source in self.sources.items() if source.kind != "constant"])
        self.results = {name: name for name in self.state}

    def require_tangent(self) -> None:
        for call in self._calls:
            _ = call.tangent

    def read_count(self, model: Any, name: str) -> int:
        """Read a count of the model."""
        found = getattr(model, name, None) if name else 0
        if not isinstance(found, int) or found < 0:
            raise InputError(self.source, f"`{name}` of the model is a count", repr(found), "Correct the model.")
        return found

    # --- what a pattern says

    @abstractmethod
    def text(self, site: Site, op: Op, scope: Scope) -> Text:
        """Make the text of its passes."""

    @abstractmethod
    def make_work(self, op: Op) -> dict[str, Slot]:
        """Make the slots of the adjoint's workspace: what rows save."""

    # --- the three passes

    def forward(self, op: Op, scope: Scope) -> None:
        if all([Slot("value", value) in scope.frozen for value in op.outputs]):
            return
        slots = {}
        for name, value in zip(self.state, op.outputs, strict=True):
            known = Slot("value", value)
            slots[name] = Slot("value", self._hidden(op, name, "again")) if known in scope.frozen else known
        scope.started |= set(slots.values())

        def emit(site: Site) -> None:
            self.text(site, op, scope).forward(slots)

        scope.add(Action(WHOLE, emit, self._reads(op, scope), dict.fromkeys(slots.values(), "other"), heavy=True))

    def adjoint(self, op: Op, scope: Scope) -> None:
        given = {n: Slot("adjoint", v) for n, v in zip(self.state, op.outputs, strict=True) if scope.has_adjoint(v)}
        history = self.make_work(op)
        reads = self._reads(op, scope)
        running: dict[str, Slot] = {}
        targets: dict[str, Slot] = {}
        others = [
            value for name in self.varying if name not in self.state and isinstance(value := op.inputs[name], Value)
        ]
        taken = set(map(adjoint_slot, others))  # what is state and something else, too, is a sum of both
        for name in self.state:
            value = op.array(name)
            slot = adjoint_slot(value)
            in_place = slot.kind != "sum" and slot not in scope.started and slot not in taken
            if scope.wants(value) and in_place:
                running[name] = slot
                scope.started.add(slot)
                taken.add(slot)
                continue
            running[name] = Slot("adjoint", self._hidden(op, name, "running"))
            if scope.wants(value):
                scope.begin(slot, op.views[name], "other")
                targets[name] = slot
        slots = [s for n in self.varying if n not in self.state and (s := self._begin_adjoint(op, scope, n))]
        writes: dict[Slot, Access] = dict.fromkeys([*running.values(), *targets.values(), *slots], "other")
        writes |= dict.fromkeys(history.values(), "other")
        reads |= dict.fromkeys([*given.values(), *targets.values(), *slots], "other")

        def emit(site: Site) -> None:
            self.text(site, op, scope).adjoint(history, given, running, targets)

        scope.add(Action(WHOLE, emit, reads, writes, heavy=True))

    def tangent(self, op: Op, scope: Scope) -> None:
        work = {name: Slot("tangent", self._hidden(op, name, "along")) for name in self.state}
        results = {name: Slot("tangent", value) for name, value in zip(self.state, op.outputs, strict=True)}
        scope.started |= set(results.values())
        reads = self._reads(op, scope)
        reads |= {Slot("tangent", value): "other" for value in op.values() if scope.moves(value)}

        def emit(site: Site) -> None:
            self.text(site, op, scope).tangent(work, results)

        writes: dict[Slot, Access] = dict.fromkeys([*work.values(), *results.values()], "other")
        scope.add(Action(WHOLE, emit, reads, writes, heavy=True))

    # --- parts

    def _hidden(self, op: Op, name: str, what: str) -> Value:
        view = op.views[name]
        return hidden(f"{op.outputs[0].name}_{name}_{what}", view.domain, view)

    def _reads(self, op: Op, scope: Scope) -> dict[Slot, Access]:
        values = [value for value in op.values() if not scope.is_zero(value)]
        return {Slot("value", value): "other" for value in values}

    def _begin_adjoint(self, op: Op, scope: Scope, name: str) -> Slot | None:
        value = op.inputs[name]
        if not isinstance(value, Value) or not scope.wants(value):
            return None
        slot = adjoint_slot(value)
        scope.begin(slot, op.views[name], "other")
        return slot


def collect_sources(call: Call, found: dict[str, Source]) -> None:
    """Add the arrays that a call reads to those found: entries of elements or rows, shared ones, constants."""
    for name, source in call.sources.items():
        kind = {"second": "own"}.get(source.kind, source.kind)
        if kind in WORDS:
            continue
        if found.setdefault(source.field, Source(kind, source.field)).kind != kind:
            constraint = f"{source.field} is {found[source.field].kind} everywhere"
            raise InputError(call.label, constraint, f"{name} takes it as {kind}", "Correct the declaration.")
