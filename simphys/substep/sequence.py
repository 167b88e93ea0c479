"""Sequences: rows that act one after the other on the one or two elements that each names, in place.

A row is an event of a motion, such as an impact. Between rows all elements move; the next row is the first of all pairs
of elements, and of all elements and sides, at a time that an element function finds. So a step is

    find the first row (i, j), at time t      move all elements by t      row (i, j) acts      and again, until the end

The order of rows is found when the step runs, and no gradient flows to it: derivatives belong to that order. They do
flow to the times. With moves m, times t(s, ...) and acts f of the state s, the adjoint goes through the rows backwards:
f, then m, whose adjoint of t goes to the state before by that of t(s, ...), and to the time that is left for the last
move. It finds the rows again and keeps the state before each in a workspace, as many as the limit of rows allows. The
tangent goes forwards along with the rows.

Rows of a fixed list, such as the constraint rows of several sweeps, take no search, see `rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simphys.autograd.errors import InputError

from .action import Action, Site, Slot, identifier
from .event_text import ROW, EventText, saved_name
from .fit import Use
from .function import declare
from .pattern import Source
from .program import WHOLE, Domain, Op, Value, View
from .scope import Scope, hidden
from .sequence_call import Call, Parameters, counts_of
from .sequence_pattern import SequencePattern


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


class Kind(NamedTuple):
    """Rows of one kind."""

    act: Call
    when: Call
    has_side: bool


class EventSequence(SequencePattern):
    """The pattern of `sequence`. Its inputs go by the names of the arrays."""

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
        calls = [self.move, *[call for kind in self.kinds for call in (kind.when, kind.act)]]
        sources = {name: Source("own", name) for name in state} | {self.duration: Source("constant", self.duration)}
        name = "".join([word.capitalize() for word in over.split("_")])
        self._set_up(f"{name}InSequence", state, calls, sources)

    def _kind(self, event: Event) -> Kind:
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
        return Kind(act, when, bool(event.side))

    def cost_us(self, op: Op) -> float:
        n = op.domain.size
        return self.element_us * n + self.pair_us * n * n

    def count_rounds(self, op: Op) -> int:
        n, (_, sides) = op.domain.size, counts_of(op)
        return EVENTS * n * (n + sides + len(self.state))

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.own_domain(inputs)
        views = {name: self.view(name, v, domain) for name, v in inputs.items() if isinstance(v, Value)}
        counts = [self.read_count(model, name) for name in (self._limit, self._sides)]
        op = Op(self, inputs, domain, views, variant=tuple(counts))
        op.outputs = self.make_outputs(op, domain)
        return op

    def list_uses(self, op: Op) -> list[Use]:
        calls = [self.move, *[call for kind in self.kinds for call in (kind.when, kind.act)]]
        return [call.make_use(op) for call in calls]

    def text(self, site: Site, op: Op, scope: Scope) -> EventText:
        return EventText(site, op, scope)

    def make_work(self, op: Op) -> dict[str, Slot]:
        return self.make_history(op, "adjoint") | self.make_saved(op)

    def make_history(self, op: Op, kind: Any) -> dict[str, Slot]:
        """Make slots for the state before each row, and for what the row is: time, kind, first, second."""
        rows = Domain(f"rows_of_{op.domain.name}", counts_of(op)[0] + 1)
        many = Domain(f"{op.domain.name}_of_rows", rows.size * op.domain.size)
        prefix = op.outputs[0].name if op.outputs else self.over
        found = {}
        for name in self.state:
            found[name] = Slot(kind, hidden(f"{prefix}_{name}_before", many, View(many, op.views[name].element)))
        for name in ROW:
            found[name] = Slot(kind, hidden(f"{prefix}_{name}", rows, View(rows, ())))
        return found

    def make_saved(self, op: Op) -> dict[str, Slot]:
        """Make slots for what rows save: the entries of their first and second element that they replace."""
        rows = Domain(f"rows_of_{op.domain.name}", counts_of(op)[0] + 1)
        found = {}
        for kind in self.kinds:
            for source in kind.act.replaces:
                name = saved_name(source)
                view = View(rows, op.views[source.field].element)
                found[name] = Slot("adjoint", hidden(f"{op.outputs[0].name}_{name}", rows, view))
        return found


class EventTrace(EventSequence):
    """The rows of a sequence, see `trace_of`. It has no derivatives."""

    def __init__(self, pattern: EventSequence) -> None:
        self.__dict__.update(pattern.__dict__)
        self.name = f"{pattern.name}Trace"

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        op = super().make_op(model, inputs)
        op.outputs = ()
        op.outputs = tuple([slot.value for slot in self.make_history(op, "value").values()])
        return op

    def forward(self, op: Op, scope: Scope) -> None:
        slots = {name: Slot("value", v) for name, v in zip((*self.state, *ROW), op.outputs, strict=True)}

        def emit(site: Site) -> None:
            EventText(site, op, scope).trace(slots)

        scope.add(Action(WHOLE, emit, self._reads(op, scope), dict.fromkeys(slots.values(), "other"), heavy=True))
