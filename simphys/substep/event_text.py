"""Text of events in the order of time: the parts that the passes of a step have in common, see event_passes.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .action import Kind, Slot
from .expressions import size_name, zero_element
from .pattern import Source
from .program import Op, Value
from .scope import Scope
from .sequence_call import Call, Ends, Frame, State
from .site import Site

Slots = Mapping[str, Slot]
NEVER = 1e30
"""Time that a search returns for elements that never meet [s]: later than any time that occurs."""
ROW = ("row_time", "row_kind", "row_first", "row_second")
"""Data of a row: its time, its kind (0 for none), which elements, or which element and side."""
ZERO = "real(0.0)"
OWN = Ends("k")
"""The element of a loop over all of them."""


def saved_name(source: Source) -> str:
    """Name of what a row saves of an entry of the state that it replaces."""
    return f"row_saved_{source.kind}_{source.field}"


class Row(NamedTuple):
    """Names of the local variables of a row."""

    time: str
    kind: str
    """Number of the kind, from 1 on; 0 for none."""
    first: str
    second: str

    @property
    def ends(self) -> Ends:
        return Ends(self.first, self.second)

    def seen_by(self, frame: Frame) -> Frame:
        """Return the frame of the row's calls."""
        return frame.knowing(side=self.second, end=self.time)


class EventText:
    """Parts of the text of a pass at a site."""

    def __init__(self, site: Site, op: Op, scope: Scope) -> None:
        self.site, self.op, self.scope, self.pattern = site, op, scope, op.pattern
        self.given = self.reader({name: Slot("value", op.array(name)) for name in self.pattern.state})
        self.shared = self.load_shared("value")
        self.totals: dict[str, str] = {}
        """Sums of the adjoints of shared inputs, which are added to these after all loops."""
        self.limit, self.sides = op.variant
        self.size = size_name(op.domain)
        self.duration = scope.number(op, self.pattern.duration)

    # --- inputs that all elements share

    def load_shared(self, kind: Kind) -> dict[str, str]:
        """Read the shared inputs, or their tangents; those that are 0 take no memory."""
        found = {}
        for name, value in self.shared_values():
            view, slot = self.op.views[name], Slot(kind, value)
            if self.scope.is_zero(value, kind):
                found[name] = zero_element(view.element)
            else:
                found[name] = self.site.assign(name, self.site.load_at(slot, view, "0"))
        return found

    def shared_values(self) -> list[tuple[str, Value]]:
        """List the shared inputs."""
        sources = self.pattern.sources
        return [(n, v) for n, v in self.op.arrays.items() if sources[n].kind == "shared"]

    # --- reads and writes

    def frame(self, slots: Slots, base: str = "") -> Frame:
        """Make a frame whose state is in slots, behind an index."""
        return Frame(self.site, self.op, self.scope, self.reader(slots, base), self.shared)

    def reader(self, slots: Slots, base: str = "") -> State:
        """Make a function that reads entries from slots, behind an index."""

        def read(name: str, index: str) -> str:
            return self.site.load_at(slots[name], slots[name].value.elements, at(base, index))

        return read

    def read_tangent(self, name: str, index: str) -> str:
        """Expression of the tangent of an entry of the state that enters."""
        value, view = self.op.array(name), self.op.views[name]
        moves = self.scope.moves(value)
        return self.site.load_at(Slot("tangent", value), view, index) if moves else zero_element(view.element)

    def put(self, slots: Slots, name: str, index: str, expression: str) -> None:
        """Set an entry."""
        self.site.put(slots[name], slots[name].value.elements, index, expression)

    def add(self, slot: Slot, name: str, index: str, expression: str) -> None:
        """Add to an entry of an array of the shape of an input."""
        view = self.op.views[name]
        self.site.put(slot, view, index, f"{self.site.load_at(slot, view, index)} + {expression}")

    def replace(self, call: Call, ends: Ends, slots: Slots, found: Sequence[str], base: str = "") -> None:
        """Write what a call returns to the entries that it replaces."""
        for source, result in zip(call.replaces, found, strict=True):
            self.put(slots, source.field, at(base, ends.at(source.kind)), result)

    def copy(self, read: State, slots: Slots) -> None:
        """Copy a state to slots. All of an element is read before it is written."""
        with self.each():
            found = {name: self.site.assign(name, read(name, "k")) for name in self.pattern.state}
            for name, value in found.items():
                self.put(slots, name, "k", value)

    def each(self, name: str = "k") -> Any:
        """Loop over all elements."""
        return self.site.block(f"for {name} in range({self.size}):")

    def each_kind(self, row: Row) -> Iterator[Any]:
        """Write a branch for each kind of rows, whose text the body of a loop over this writes."""
        for number, kind in enumerate(self.pattern.kinds, 1):
            with self.site.block(f"if {row.kind} == {number}:"):
                yield kind

    # --- parts of the passes

    def search(self, frame: Frame, end: str) -> Row:
        """Find the first row until `end`."""
        site = self.site
        row = Row(
            *[site.assign(name, begin) for name, begin in zip(ROW, (f"real({NEVER})", "0", "0", "0"), strict=True)]
        )
        slack = site.assign("slack", ZERO)
        frame = frame.knowing(end=end, side="j")
        with self.each("i"):
            for number, kind in enumerate(self.pattern.kinds, 1):
                if kind.has_side and self.sides == 0:
                    continue
                own = [name for name, source in kind.when.sources.items() if source.kind == "own"]
                known = {name: frame.load(kind.when, name, Ends("i")) for name in own}
                # A number of sides that the compiler does not know: it compiles the body of the loop but once.
                sides = f"ti.min({self.sides}, {self.sides} + {self.size})"
                begin, count = ("0", sides) if kind.has_side else ("i + 1", self.size)
                with site.block(f"for j in range({begin}, {count}):"):
                    time, uncertainty = frame.run(kind.when, Ends("i", "j"), known)
                    with site.block(f"if {time} <= {end} and {time} + {uncertainty} + {slack} < {row.time}:"):
                        for name, value in zip((*row, slack), (time, str(number), "i", "j", uncertainty), strict=True):
                            site.line(f"{name} = {value}")
        return row

    def move(self, frame: Frame, slots: Slots, base: str, time: str) -> None:
        """Move all elements by a time, into slots behind an index."""
        call: Call = self.pattern.move
        with self.each():
            self.replace(call, OWN, slots, frame.knowing(time=time).run(call, OWN), base)

    def act(self, frame: Frame, slots: Slots, base: str, row: Row, save: str = "") -> None:
        """Let a row act on the state in slots, which the frame sees; with room for it, save what is replaced."""
        for kind in self.each_kind(row):
            for source in kind.act.replaces:
                if saved_name(source) in slots:
                    before = frame.state(source.field, row.ends.at(source.kind))
                    self.put(slots, saved_name(source), save, before)
            self.replace(kind.act, row.ends, slots, row.seen_by(frame).run(kind.act, row.ends), base)


def at(base: str, index: str) -> str:
    """Expression of an index behind another."""
    return f"({base} + {index})" if base else index
