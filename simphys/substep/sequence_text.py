"""Text of the loops of rows that act in order: what all kinds of them have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from .action import Kind, Site, Slot, size_name, zero_element
from .pattern import Source
from .program import Op, Value, View
from .scope import Scope, adjoint_slot
from .sequence_call import Call, Ends, Frame, Shared, State

Slots = Mapping[str, Slot]


class Text(ABC):
    """The text of a pass at a site."""

    def __init__(self, site: Site, op: Op, scope: Scope) -> None:
        self.site, self.op, self.scope, self.pattern = site, op, scope, op.pattern
        values = {name: value for name, value in op.inputs.items() if isinstance(value, Value)}
        self.given = self.reader({name: Slot("value", values[name]) for name in self.pattern.state})
        self.shared = Shared(self.load_shared("value"))

    # --- inputs that all elements share

    def load_shared(self, kind: Kind) -> dict[str, str]:
        """Read the shared inputs, or their tangents; those that are 0 take no memory."""
        found = {}
        for name, value in self._shared_values():
            view, slot = self.op.views[name], Slot(kind, value)
            if self.scope.is_zero(value) or (kind == "tangent" and not self.scope.moves(value)):
                found[name] = zero_element(view.element)
            else:
                found[name] = self.site.assign(name, self.site.load_at(slot, view, "0"))
        return found

    def begin_totals(self) -> None:
        """Begin sums of the adjoints of shared inputs."""
        for name, value in self._shared_values():
            if self.scope.wants(value):
                self.shared.totals[name] = self.site.assign("total", zero_element(self.op.views[name].element))

    def add_totals(self) -> None:
        """Add the sums to the adjoints of the shared inputs."""
        for name, value in self._shared_values():
            if name in self.shared.totals:
                slot, view = adjoint_slot(value), self.op.views[name]
                now = self.site.load_at(slot, view, "0")
                self.site.put(slot, view, "0", f"{now} + {self.shared.totals[name]}")

    def _shared_values(self) -> list[tuple[str, Value]]:
        sources = self.pattern.sources
        return [(n, v) for n, v in self.op.inputs.items() if isinstance(v, Value) and sources[n].kind == "shared"]

    # --- reads and writes

    def frame(self, slots: Slots, base: str = "") -> Frame:
        """Make a frame whose state is in slots, behind an index."""
        return Frame(self.site, self.op, self.scope, self.reader(slots, base), self.shared)

    def reader(self, slots: Slots, base: str = "") -> State:
        """Make a function that reads entries of the state from slots, behind an index."""

        def read(name: str, index: str) -> str:
            return self.site.load_at(slots[name], self.view(slots, name), at(base, index))

        return read

    def read_tangents(self) -> State:
        """Make a function that reads the tangents of the state that enters."""

        def read(name: str, index: str) -> str:
            value, view = self.op.inputs[name], self.op.views[name]
            if not isinstance(value, Value) or not self.scope.moves(value):
                return zero_element(view.element)
            return self.site.load_at(Slot("tangent", value), view, index)

        return read

    def view(self, slots: Slots, name: str) -> View:
        """View of a slot."""
        view = slots[name].value.elements
        return view

    def put(self, slots: Slots, name: str, index: str, expression: str) -> None:
        """Set an entry of the state."""
        self.site.put(slots[name], self.view(slots, name), index, expression)

    def each(self, name: str = "k", field: str = "") -> Any:
        """Loop over all elements, those of an array of the state."""
        domain = self.op.views[field].domain if field else self.op.domain
        return self.site.block(f"for {name} in range({size_name(domain)}):")

    def copy(self, read: State, slots: Slots) -> None:
        """Copy a state to slots. All of an element is read before it is written."""
        domains = dict.fromkeys([self.op.views[name].domain for name in self.pattern.state])
        for domain in domains:
            names = [name for name in self.pattern.state if self.op.views[name].domain == domain]
            with self.each(field=names[0]):
                found = {name: self.site.assign(name, read(name, "k")) for name in names}
                for name, value in found.items():
                    self.put(slots, name, "k", value)

    def begin_adjoint(self, given: Slots, running: Slots) -> None:
        """Copy the adjoints of the results; 0 where there is none."""

        def begin(name: str, index: str) -> str:
            view = self.op.views[name]
            return self.site.load_at(given[name], view, index) if name in given else zero_element(view.element)

        self.copy(begin, running)
        self.begin_totals()

    def add_to_targets(self, running: Slots, targets: Slots) -> None:
        """Add the adjoints of the state that enters to slots that hold a sum already; and those of shared inputs."""
        self.add_totals()
        for name, slot in targets.items():
            with self.each(field=name):
                view = self.op.views[name]
                now, found = (self.site.load_at(each, view, "k") for each in (slot, running[name]))
                self.site.put(slot, view, "k", f"{now} + {found}")

    # --- calls

    def put_end(self, frame: Frame, slots: Slots, source: Source, ends: Ends, expression: str, base: str = "") -> None:
        """Set the entry of the state that a source names, unless its element is none."""
        with frame.guard(source, ends) as index:
            self.put(slots, source.field, at(base, index), expression)

    def replace(self, frame: Frame, call: Call, ends: Ends, slots: Slots, found: Sequence[str], base: str = "") -> None:
        """Write what a call returns to the entries that it replaces."""
        for source, result in zip(call.replaces, found, strict=True):
            self.put_end(frame, slots, source, ends, result, base)

    def pull_call(self, frame: Frame, call: Call, ends: Ends, running: Slots) -> None:
        """Reverse a call that replaces entries of the state."""
        read = self.reader(running)
        adjoints = [self.site.assign("adj", frame.read(source, ends, read)) for source in call.replaces]
        results = tuple(frame.run(call, ends)) if call.element.results_read(call.adjoint) else ()
        self.spread(frame, call, ends, running, frame.pull(call, ends, adjoints, results))

    def spread(self, frame: Frame, call: Call, ends: Ends, running: Slots, found: Mapping[str, str]) -> None:
        """Bring the adjoints of a call's parameters to the state, and to the sums of other inputs."""
        read = self.reader(running)
        for name, adj in found.items():
            source = call.sources[name]
            if frame.wants(source):
                frame.add(source, ends, adj)
            elif source.field in self.pattern.state:
                before = "" if name in (call.replaced or ()) else f"{read(source.field, ends.at(source.kind))} + "
                self.put_end(frame, running, source, ends, f"{before}{adj}")

    # --- the passes

    @abstractmethod
    def forward(self, slots: Slots) -> None:
        """Write the results to slots."""

    @abstractmethod
    def adjoint(self, work: Slots, given: Slots, running: Slots, targets: Slots) -> None:
        """Take the adjoints of the results, `given`, back to `running`; those of `targets` are added there."""

    @abstractmethod
    def tangent(self, work: Slots, results: Slots) -> None:
        """Take the tangents of the state to those of the results, along with the state in `work`."""


def hidden_count(count: int, size: str) -> str:
    """Expression of a count that the compiler does not know, so that it compiles a loop's body but once."""
    return f"ti.min({count}, {count} + {size})"


def at(base: str, index: str) -> str:
    """Expression of an index behind another."""
    return f"({base} + {index})" if base else index
