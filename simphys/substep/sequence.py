"""Sequences: rows that act one after the other on the one or two elements that each names, in place.

A row is an event of a motion, such as an impact. Between rows all elements move; the next row is the first of all pairs
of elements, and of all elements and sides, at a time that an element function finds. So a step is

    find the first row (i, j), at time t      move all elements by t      row (i, j) acts      and again, until the end

The order of rows is found when the step runs, and no gradient flows to it: derivatives belong to that order. They do
flow to the times. With moves m, times t(s, ...) and acts f of the state s, the adjoint goes through the rows backwards:
f, then m, whose adjoint of t goes to the state before by that of t(s, ...), and to the time that is left for the last
move. It finds the rows again and keeps the state before each in a workspace, as many as the limit of rows allows. The
tangent goes forwards along with the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simphys.autograd.errors import InputError
from simphys.numerics.element import Element

from .action import Access, Action, Kind, Slot
from .event_passes import EventPasses
from .event_text import ROW, saved_name
from .expressions import identifier
from .fit import Use
from .function import declare
from .pattern import Pattern, Source, camel_case
from .program import WHOLE, Domain, ElementView, Op, Value
from .scope import Scope, adjoint_slot, hidden
from .sequence_call import WORDS, Call, Parameters
from .site import Site


class Move(NamedTuple):
    """Motion of each element between rows, for a time that is the parameter `time` of the function."""

    func: Any
    parameters: Parameters
    replaces: Sequence[str]
    """Parameters, entries of the state, that the results replace."""
    time: str = "t"


class Event(NamedTuple):
    """Rows of one kind: of two elements each, i < j, or of one element and a side with a number."""

    func: Any
    """Element function of what happens then, whose results replace entries of the state."""
    parameters: Parameters
    """Origin of the parameters of both functions; those of the same name are the same."""
    replaces: Sequence[str]
    when: Any
    """Element function of the time at which it happens, later than `end` for never, and of the uncertainty of the time.

    Of rows that come at the same time within their uncertainties, that with the lower numbers is the first. The rules
    ignore the uncertainty; they may take the results.
    """
    end: str = "end"
    """Parameter of `when`: a time beyond which nothing needs to be found."""
    side: str = ""
    """Parameter that takes the number of the side, for rows of one element and a side."""


def sequence(
    *, state: Sequence[str], move: Move, events: Sequence[Event], over: str, duration: str, limit: str, sides: str = ""
) -> Any:
    """Declare a sub-step in which elements move, and events change one or two of them, in the order of time.

    - `state`: arrays of the elements that are moved and changed; the results have the same names.
    - `move`, `events`: what happens between events, and at each.
    - `over`: the index set, such as "balls".
    - `duration`: name of the constant that says how long it takes.
    - `limit`, `sides`: attributes of the model with the maximum number of events, and with the number of sides.

    If there are more events than the limit, the results are not numbers. Returns a Function, to be applied to the model
    and the arrays: the state, then others in the order in which `move` and `events` name them first, then the duration.
    """
    return declare(EventSequence(state, move, events, over=over, duration=duration, limit=limit, sides=sides))


def trace_of(substep: Any) -> Any:
    """Make the Function that returns the rows of a sequence; it is applied to the same arguments.

    Results, with room for one row beyond the limit: each array of the state before the rows; then, all [rows], the
    time since the row before, the kind (from 1 on; 0 is the end), the first element, and the second, or the side.
    """
    return declare(EventTrace(substep.pattern))


EVENTS = 2
"""Events of a step that estimates of its rounds assume; there are hardly ever as many."""


class RowKind(NamedTuple):
    """Rows of one kind."""

    act: Call
    when: Call
    has_side: bool


class EventSequence(Pattern):
    """The pattern of `sequence`. Its inputs go by the names of the arrays; some of them, the state, are replaced."""

    is_cheap = False
    is_serial = True
    reads_results = False
    element_us = 0.03
    pair_us = 0.004

    def __init__(
        self,
        state: Sequence[str],
        move: Move,
        events: Sequence[Event],
        *,
        over: str,
        duration: str,
        limit: str,
        sides: str,
    ) -> None:
        self.state, self.over = tuple(state), over
        self._limit, self._sides = limit, sides
        self.duration = identifier(duration)
        given = {**move.parameters.sources(), move.time: Source("time", "")}
        self.move = Call(move.func, given, move.replaces, self.state)
        self.kinds = [self._kind(event) for event in events]
        self._calls = [self.move, *[call for kind in self.kinds for call in (kind.when, kind.act)]]
        self.name = f"{camel_case(over)}InSequence"
        self.source = f"{type(self).__name__}({', '.join([call.element.name for call in self._calls])})"
        self.element: Element = self.move.element
        sources = {name: Source("own", name) for name in state}
        for call in self._calls:
            _collect_sources(call, sources)
        self.take_arrays(sources | {self.duration: Source("constant", self.duration)}, {n: n for n in self.state})

    def _kind(self, event: Event) -> RowKind:
        given = {**event.parameters.sources(), event.end: Source("end", "")}
        if event.side:
            given[event.side] = Source("side", "")
        when, act = Call(event.when, given, None, self.state), Call(event.func, given, event.replaces, self.state)
        seconds = [name for name, source in given.items() if source.kind == "second"]
        if bool(seconds) == bool(event.side):
            found = f"{', '.join(seconds) or 'one element'}, and {event.side or 'no side'}"
            remedy = "Name parameters of `both` elements, or a `side`."
            raise InputError(when.label, "an event is one of two elements, or of one element and a side", found, remedy)
        for rule in (when.adjoint, when.element.by_hand):
            if rule is not None and event.end in rule.reads((True,) * len(rule.results)):
                remedy = "Write it with the time, which a rule may take."
                raise InputError(f"{when.label}, {rule.name}", "it does not depend on the end", event.end, remedy)
        return RowKind(act, when, bool(event.side))

    def require_tangent(self) -> None:
        for call in self._calls:
            _ = call.tangent

    def cost_us(self, op: Op) -> float:
        n = op.domain.size
        return self.element_us * n + self.pair_us * n * n

    def count_rounds(self, op: Op) -> int:
        n, (_, sides) = op.domain.size, op.variant
        return EVENTS * n * (n + sides + len(self.state))

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.own_domain(inputs)
        views = self.make_views(inputs, domain)
        counts = [self._read_count(model, name) for name in (self._limit, self._sides)]
        op = Op(self, inputs, domain, views, variant=tuple(counts))
        op.outputs = self.make_outputs(op, domain)
        return op

    def _read_count(self, model: Any, name: str) -> int:
        """Read a count of the model."""
        found = getattr(model, name, None) if name else 0
        if not isinstance(found, int) or found < 0:
            raise InputError(self.source, f"`{name}` of the model is a count", repr(found), "Correct the model.")
        return found

    def list_uses(self, op: Op) -> list[Use]:
        return [call.make_use(op) for call in self._calls]

    # --- the three passes

    def forward(self, op: Op, scope: Scope) -> None:
        if all([Slot("value", value) in scope.frozen for value in op.outputs]):
            return
        slots = {}
        for name, value in zip(self.state, op.outputs, strict=True):
            known = Slot("value", value)
            slots[name] = self._hidden(op, name, "again", "value") if known in scope.frozen else known
        scope.started |= set(slots.values())

        def emit(site: Site) -> None:
            EventPasses(site, op, scope).forward(slots)

        scope.add(Action(WHOLE, emit, self._reads(op, scope), dict.fromkeys(slots.values(), "other"), heavy=True))

    def adjoint(self, op: Op, scope: Scope) -> None:
        given = {n: Slot("adjoint", v) for n, v in zip(self.state, op.outputs, strict=True) if scope.has_adjoint(v)}
        history = self._make_history(op, "adjoint") | self._make_saved(op)
        reads = self._reads(op, scope)
        running: dict[str, Slot] = {}
        targets: dict[str, Slot] = {}
        others = {n: op.array(n) for n in self.varying if n not in self.state}
        taken = set(map(adjoint_slot, others.values()))  # what is state and something else, too, is a sum of both
        for name in self.state:
            value = op.array(name)
            slot = adjoint_slot(value)
            in_place = slot.kind != "sum" and slot not in scope.started and slot not in taken
            if scope.wants(value) and in_place:
                running[name] = slot
                scope.started.add(slot)
                taken.add(slot)
                continue
            running[name] = self._hidden(op, name, "running", "adjoint")
            if scope.wants(value):
                scope.begin(slot, op.views[name], "other")
                targets[name] = slot
        slots = {n: adjoint_slot(value) for n, value in others.items() if scope.wants(value)}
        for name, slot in slots.items():
            scope.begin(slot, op.views[name], "other")
        writes: dict[Slot, Access] = dict.fromkeys([*running.values(), *targets.values(), *slots.values()], "other")
        writes |= dict.fromkeys(history.values(), "other")
        reads |= dict.fromkeys([*given.values(), *targets.values(), *slots.values()], "other")

        def emit(site: Site) -> None:
            EventPasses(site, op, scope).adjoint(history, given, running, targets)

        scope.add(Action(WHOLE, emit, reads, writes, heavy=True))

    def tangent(self, op: Op, scope: Scope) -> None:
        work = {name: self._hidden(op, name, "along", "tangent") for name in self.state}
        results = {name: Slot("tangent", value) for name, value in zip(self.state, op.outputs, strict=True)}
        scope.started |= set(results.values())
        reads = self._reads(op, scope)
        reads |= {Slot("tangent", value): "other" for value in op.values() if scope.moves(value)}

        def emit(site: Site) -> None:
            EventPasses(site, op, scope).tangent(work, results)

        writes: dict[Slot, Access] = dict.fromkeys([*work.values(), *results.values()], "other")
        scope.add(Action(WHOLE, emit, reads, writes, heavy=True))

    # --- slots

    def _hidden(self, op: Op, name: str, what: str, kind: Kind) -> Slot:
        """Make a slot for a copy of an array of the state."""
        view = op.views[name]
        return Slot(kind, hidden(f"{op.outputs[0].name}_{name}_{what}", view.domain, view))

    def _reads(self, op: Op, scope: Scope) -> dict[Slot, Access]:
        return {Slot("value", value): "other" for value in op.values() if not scope.is_zero(value)}

    def _make_history(self, op: Op, kind: Kind) -> dict[str, Slot]:
        """Make slots for the state before each row, and for what the row is: time, kind, first, second."""
        rows = _rows(op)
        many = Domain(f"{op.domain.name}_of_rows", rows.size * op.domain.size)
        prefix = op.outputs[0].name if op.outputs else self.over
        found = {}
        for name in self.state:
            found[name] = Slot(kind, hidden(f"{prefix}_{name}_before", many, ElementView(many, op.views[name].element)))
        for name in ROW:
            found[name] = Slot(kind, hidden(f"{prefix}_{name}", rows, ElementView(rows, ())))
        return found

    def _make_saved(self, op: Op) -> dict[str, Slot]:
        """Make slots for what rows save: the entries of their first and second element that they replace."""
        rows, found = _rows(op), {}
        for kind in self.kinds:
            for source in kind.act.replaces:
                name = saved_name(source)
                view = ElementView(rows, op.views[source.field].element)
                found[name] = Slot("adjoint", hidden(f"{op.outputs[0].name}_{name}", rows, view))
        return found


def _rows(op: Op) -> Domain:
    """Index set of the rows of a step."""
    return Domain(f"rows_of_{op.domain.name}", op.variant[0] + 1)


def _collect_sources(call: Call, found: dict[str, Source]) -> None:
    """Add the arrays that a call reads to those found: entries of elements, shared ones, constants."""
    for name, source in call.sources.items():
        kind = "own" if source.kind == "second" else source.kind
        if kind in WORDS:
            continue
        if found.setdefault(source.field, Source(kind, source.field)).kind != kind:
            constraint = f"{source.field} is {found[source.field].kind} everywhere"
            raise InputError(call.label, constraint, f"{name} takes it as {kind}", "Correct the declaration.")


class EventTrace(EventSequence):
    """The rows of a sequence, see `trace_of`. It has no derivatives."""

    def __init__(self, pattern: EventSequence) -> None:
        self.__dict__.update(pattern.__dict__)
        self.name = f"{pattern.name}Trace"

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        op = super().make_op(model, inputs)
        op.outputs = ()
        op.outputs = tuple([slot.value for slot in self._make_history(op, "value").values()])
        return op

    def forward(self, op: Op, scope: Scope) -> None:
        slots = {name: Slot("value", v) for name, v in zip((*self.state, *ROW), op.outputs, strict=True)}

        def emit(site: Site) -> None:
            EventPasses(site, op, scope).trace(slots)

        scope.add(Action(WHOLE, emit, self._reads(op, scope), dict.fromkeys(slots.values(), "other"), heavy=True))
