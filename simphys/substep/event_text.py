"""Text of events in the order of time: forward, adjoint and tangent of one step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from .action import Site, size_name, zero_element
from .pattern import Source
from .program import Op
from .scope import Scope
from .sequence_call import ZERO, Call, Ends, Frame, counts_of
from .sequence_text import Slots, Text, hidden_count

NEVER = 1e30
"""Time that a search returns for elements that never meet [s]: later than any time that occurs."""
LARGEST = 3e38
"""Largest sum of squares of a sound state, which f32 can just hold."""
ROW = ("row_time", "row_kind", "row_first", "row_second")
"""Data of a row: its time, its kind (0 for none), which elements, or which element and side."""


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


class EventText(Text):
    """The text of events at a site."""

    def __init__(self, site: Site, op: Op, scope: Scope) -> None:
        super().__init__(site, op, scope)
        self.limit, self.sides = counts_of(op)
        self.size = size_name(op.domain)
        self.duration = scope.number(op, self.pattern.duration)

    # --- parts

    def search(self, frame: Frame, end: str) -> Row:
        """Find the first row until `end`."""
        site = self.site
        row = Row(
            *[site.assign(name, begin) for name, begin in zip(ROW, (f"real({NEVER})", "0", "0", "0"), strict=True)]
        )
        slack = site.assign("slack", ZERO)
        frame = frame.knowing(end=end)
        with self.each("i"):
            for number, kind in enumerate(self.pattern.kinds, 1):
                if kind.has_side and self.sides == 0:
                    continue
                own = [name for name, source in kind.when.sources.items() if source.kind == "own"]
                known = {name: frame.load(kind.when, name, Ends("i")) for name in own}
                begin, count = ("0", hidden_count(self.sides, self.size)) if kind.has_side else ("i + 1", self.size)
                with site.block(f"for j in range({begin}, {count}):"):
                    time, uncertainty = frame.knowing(side="j").run(kind.when, Ends("i", "j"), known)
                    with site.block(f"if {time} <= {end} and {time} + {uncertainty} + {slack} < {row.time}:"):
                        for name, value in zip((*row, slack), (time, str(number), "i", "j", uncertainty), strict=True):
                            site.line(f"{name} = {value}")
        return row

    def move(self, frame: Frame, slots: Slots, base: str, time: str) -> None:
        """Move all elements by a time, into slots behind an index."""
        call: Call = self.pattern.move
        with self.each():
            found = frame.knowing(time=time).run(call, Ends("k"))
            self.replace(frame, call, Ends("k"), slots, found, base)

    def act(self, frame: Frame, slots: Slots, base: str, row: Row, save: str = "") -> None:
        """Let a row act on the state in slots, which the frame sees; with room for it, save what is replaced."""
        for number, kind in enumerate(self.pattern.kinds, 1):
            with self.site.block(f"if {row.kind} == {number}:"):
                ends = Ends(row.first, row.second)
                for source in kind.act.replaces:
                    if saved_name(source) in slots:
                        self.put(slots, saved_name(source), save, frame.state(source.field, ends.at(source.kind)))
                found = frame.knowing(side=row.second).run(kind.act, ends)
                self.replace(frame, kind.act, ends, slots, found, base)

    # --- forward

    def forward(self, slots: Slots) -> None:
        site = self.site
        self.copy(self.given, slots)
        sound = site.assign("sound", "1")
        frame = self.frame(slots)
        with self.each():
            sizes = [
                frame.state(n, "k") + ".norm_sqr()" * bool(self.view(slots, n).element) for n in self.pattern.state
            ]
            total = site.assign("total", " + ".join([f"ti.abs({size})" for size in sizes]))
            # False for NaN, too. Taichi 1.7.4 crashes on isnan and isinf in kernels for Vulkan.
            with site.block(f"if not {total} <= {LARGEST}:"):
                site.line(f"{sound} = 0")
        left, count, going = site.assign("left", self.duration), site.assign("count", "0"), site.assign("going", sound)
        with site.block(f"while {going} == 1:"):
            row = self.search(frame, left)
            time = site.assign("time", f"ti.min({row.time}, {left})")
            self.move(frame, slots, "", time)
            site.line(f"{left} = {left} - {time}")
            with site.block(f"if {row.kind} == 0:"):
                site.line(f"{going} = 0")
            with site.block(f"elif {count} == {self.limit}:"):
                site.line(f"{going} = 0")
                site.line(f"{sound} = 0")
            with site.block("else:"):
                self.act(frame, slots, "", row)
                site.line(f"{count} = {count} + 1")
        with site.block(f"if {sound} == 0:"), self.each():
            for name in self.pattern.state:
                self.put(slots, name, "k", f"{zero_element(self.view(slots, name).element)} + ti.math.nan")

    def trace(self, history: Slots) -> str:
        """Write the rows of a step, and the state before each, to slots. Returns the name of the last row's number."""
        site = self.site
        self.copy(self.given, history)
        number, left, going = site.assign("number", "0"), site.assign("left", self.duration), site.assign("going", "1")
        with site.block(f"while {going} == 1:"):
            now = site.assign("now", f"{number} * {self.size}")
            frame = self.frame(history, now)
            row = self.search(frame, left)
            for name, value in zip(ROW, row, strict=True):
                self.put(history, name, number, value)
            with site.block(f"if {row.kind} == 0:"):
                self.put(history, "row_time", number, left)
            with site.block(f"if {row.kind} == 0 or {number} == {self.limit}:"):
                site.line(f"{going} = 0")
            with site.block("else:"):
                after = site.assign("after", f"{now} + {self.size}")
                self.move(frame, history, after, row.time)
                self.act(self.frame(history, after), history, after, row, number)
                site.line(f"{left} = {left} - {row.time}")
                site.line(f"{number} = {number} + 1")
        return number

    # --- adjoint

    def adjoint(self, work: Slots, given: Slots, running: Slots, targets: Slots) -> None:
        site, history = self.site, work
        last = self.trace(history)
        self.begin_adjoint(given, running)
        adj_left = site.assign("adj_left", ZERO)
        with site.block(f"for later in range({last} + 1):"):
            number = site.assign("number", f"{last} - later")
            read = self.reader(history)
            time = site.assign("time", read("row_time", number))
            row = Row(time, *[site.assign(name, f"ti.cast({read(name, number)}, ti.i32)") for name in ROW[1:]])
            frame = self.frame(history, site.assign("now", f"{number} * {self.size}")).knowing(time=time)
            with site.block("if later > 0:"):
                after = self.frame(history, site.assign("after", f"({number} + 1) * {self.size}"))
                self._pull_act(after, history, running, row, number)
            adj_time = self._pull_move(frame, running)
            with site.block("if later == 0:"):
                site.line(f"{adj_left} = {adj_time}")
            with site.block("else:"):
                self._pull_time(frame, running, row, f"({adj_time} - {adj_left})")
        self.add_to_targets(running, targets)

    def _pull_act(self, frame: Frame, history: Slots, running: Slots, row: Row, number: str) -> None:
        """Reverse what a row does to the elements that it names; `frame` sees the state after it."""
        saved = self.reader(history)
        for kind_number, kind in enumerate(self.pattern.kinds, 1):
            with self.site.block(f"if {row.kind} == {kind_number}:"):
                ends = Ends(row.first, row.second)
                before = {(s.field, ends.at(s.kind)): saved(saved_name(s), number) for s in kind.act.replaces}

                def see(name: str, index: str, before: Any = before) -> str:
                    return str(before.get((name, index)) or frame.state(name, index))

                self.pull_call(frame.seeing(see).knowing(side=row.second), kind.act, ends, running)

    def _pull_move(self, frame: Frame, running: Slots) -> str:
        """Reverse the motion of all elements; return the name of the adjoint of its time."""
        site, call = self.site, self.pattern.move
        adj_time = site.assign("adj_time", ZERO)
        read = self.reader(running)
        with self.each():
            ends = Ends("k")
            adjoints = [site.assign("adj", read(call.sources[name].field, "k")) for name in call.replaced or ()]
            results = frame.run(call, ends) if call.element.results_read(call.adjoint) else ()
            found = frame.pull(call, ends, adjoints, results)
            times = [name for name, source in call.sources.items() if source.kind == "time"]
            for name in times:
                site.line(f"{adj_time} += {found.pop(name)}")
            self.spread(frame, call, ends, running, found)
        return adj_time

    def _pull_time(self, frame: Frame, running: Slots, row: Row, adj: str) -> None:
        """Take the adjoint of the time of a row to the state before the motion."""
        for number, kind in enumerate(self.pattern.kinds, 1):
            with self.site.block(f"if {row.kind} == {number}:"):
                ends = Ends(row.first, row.second)
                seen = frame.knowing(side=row.second, end=row.time)
                found = seen.pull(kind.when, ends, (adj, ZERO), (row.time, ZERO))
                self.spread(seen, kind.when, ends, running, found)

    # --- tangent

    def tangent(self, work: Slots, results: Slots) -> None:
        site = self.site
        self.copy(self.given, work)
        self.copy(self.read_tangents(), results)
        self.shared = replace(self.shared, tangents=self.load_shared("tangent"))
        frame = replace(self.frame(work), moved=self.reader(results))
        left, dleft = site.assign("left", self.duration), site.assign("dleft", ZERO)
        count, going = site.assign("count", "0"), site.assign("going", "1")
        with site.block(f"while {going} == 1:"):
            row = self.search(frame, left)
            time, dtime = site.assign("time", f"ti.min({row.time}, {left})"), site.assign("dtime", dleft)
            with site.block(f"if {row.kind} == 0 or {count} == {self.limit}:"):
                site.line(f"{going} = 0")
                site.line(f"{time} = {left}")
            with site.block("else:"):
                self._push_time(frame, row, dtime)
            with self.each():
                call, ends, seen = self.pattern.move, Ends("k"), frame.knowing(time=time, dtime=dtime)
                found = seen.run(call, ends)
                self.replace(seen, call, ends, results, seen.push(call, ends, found))
                self.replace(seen, call, ends, work, found)
            with site.block(f"if {going} == 1:"):
                self._push_act(frame, work, results, row)
                site.line(f"{left} = {left} - {time}")
                site.line(f"{dleft} = {dleft} - {dtime}")
                site.line(f"{count} = {count} + 1")

    def _push_time(self, frame: Frame, row: Row, dtime: str) -> None:
        for number, kind in enumerate(self.pattern.kinds, 1):
            with self.site.block(f"if {row.kind} == {number}:"):
                seen = frame.knowing(side=row.second, end=row.time)
                found = seen.push(kind.when, Ends(row.first, row.second), (row.time, ZERO))
                self.site.line(f"{dtime} = {found[0]}")

    def _push_act(self, frame: Frame, work: Slots, results: Slots, row: Row) -> None:
        for number, kind in enumerate(self.pattern.kinds, 1):
            with self.site.block(f"if {row.kind} == {number}:"):
                ends, seen = Ends(row.first, row.second), frame.knowing(side=row.second)
                found = seen.run(kind.act, ends)
                self.replace(seen, kind.act, ends, results, seen.push(kind.act, ends, found))
                self.replace(seen, kind.act, ends, work, found)
