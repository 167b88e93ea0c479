"""Text of events in the order of time: forward, adjoint and tangent of one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .event_text import OWN, ROW, ZERO, EventText, Row, Slots, saved_name
from .expressions import zero_element
from .program import Value
from .scope import adjoint_slot
from .sequence_call import Call, Ends, Frame

LARGEST = 3e38
"""Largest sum of squares of a sound state, which f32 can just hold."""


class EventPasses(EventText):
    """The text of a pass at a site."""

    def forward(self, slots: Slots) -> None:
        """Write the results to slots."""
        site, state = self.site, self.pattern.state
        self.copy(self.given, slots)
        sound = site.assign("sound", "1")
        frame = self.frame(slots)
        with self.each():
            sizes = [frame.state(n, "k") + ".norm_sqr()" * bool(self.op.views[n].element) for n in state]
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
            for name in state:
                self.put(slots, name, "k", f"{zero_element(self.op.views[name].element)} + ti.math.nan")

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

    def adjoint(self, history: Slots, given: Slots, running: Slots, targets: Slots) -> None:
        """Take the adjoints of the results, `given`, back to `running`; those of `targets` are added there."""
        site = self.site
        last = self.trace(history)
        self._begin_adjoint(given, running)
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
        for name, value in self.shared_values():
            if name in self.totals:
                self.add(adjoint_slot(value), name, "0", self.totals[name])
        for name, slot in targets.items():
            with self.each():
                self.add(slot, name, "k", site.load_at(running[name], self.op.views[name], "k"))

    def _begin_adjoint(self, given: Slots, running: Slots) -> None:
        """Copy the adjoints of the results, 0 where there is none, and begin the sums of those of shared inputs."""

        def begin(name: str, index: str) -> str:
            view = self.op.views[name]
            return self.site.load_at(given[name], view, index) if name in given else zero_element(view.element)

        self.copy(begin, running)
        for name, value in self.shared_values():
            if self.scope.wants(value):
                self.totals[name] = self.site.assign("total", zero_element(self.op.views[name].element))

    def _pull_act(self, frame: Frame, history: Slots, running: Slots, row: Row, number: str) -> None:
        """Reverse what a row does to the elements that it names; `frame` sees the state after it."""
        saved, read, ends = self.reader(history), self.reader(running), row.ends
        for kind in self.each_kind(row):
            before = {(s.field, ends.at(s.kind)): saved(saved_name(s), number) for s in kind.act.replaces}

            def see(name: str, index: str, before: Any = before) -> str:
                return str(before.get((name, index)) or frame.state(name, index))

            adjoints = [self.site.assign("adj", read(s.field, ends.at(s.kind))) for s in kind.act.replaces]
            found = row.seen_by(frame.seeing(see)).pull(kind.act, ends, adjoints)
            self._spread(kind.act, ends, running, found)

    def _pull_move(self, frame: Frame, running: Slots) -> str:
        """Reverse the motion of all elements; return the name of the adjoint of its time."""
        site, call, read = self.site, self.pattern.move, self.reader(running)
        adj_time = site.assign("adj_time", ZERO)
        with self.each():
            adjoints = [site.assign("adj", read(source.field, "k")) for source in call.replaces]
            found = frame.pull(call, OWN, adjoints)
            for name in [name for name, source in call.sources.items() if source.kind == "time"]:
                site.line(f"{adj_time} += {found.pop(name)}")
            self._spread(call, OWN, running, found)
        return adj_time

    def _pull_time(self, frame: Frame, running: Slots, row: Row, adj: str) -> None:
        """Take the adjoint of the time of a row to the state before the motion."""
        for kind in self.each_kind(row):
            found = row.seen_by(frame).pull(kind.when, row.ends, (adj, ZERO), (row.time, ZERO))
            self._spread(kind.when, row.ends, running, found)

    def _spread(self, call: Call, ends: Ends, running: Slots, found: Mapping[str, str]) -> None:
        """Bring the adjoints of a call's parameters to the state, and to those of other inputs that want them."""
        read = self.reader(running)
        for name, adj in found.items():
            source = call.sources[name]
            index, value = ends.at(source.kind), self.op.inputs[source.field]
            if source.field in self.pattern.state:
                before = "" if name in (call.replaced or ()) else f"{read(source.field, index)} + "
                self.put(running, source.field, index, f"{before}{adj}")
            elif isinstance(value, Value) and self.scope.wants(value):
                if source.kind == "shared":
                    self.site.line(f"{self.totals[source.field]} += {adj}")
                else:
                    self.add(adjoint_slot(value), source.field, index, adj)

    # --- tangent

    def tangent(self, work: Slots, results: Slots) -> None:
        """Take the tangents of the state to those of the results, along with the state in `work`."""
        site = self.site
        self.copy(self.given, work)
        self.copy(self.read_tangent, results)
        frame = replace(self.frame(work), moved=self.reader(results), dshared=self.load_shared("tangent"))
        left, dleft = site.assign("left", self.duration), site.assign("dleft", ZERO)
        count, going = site.assign("count", "0"), site.assign("going", "1")
        with site.block(f"while {going} == 1:"):
            row = self.search(frame, left)
            time, dtime = site.assign("time", f"ti.min({row.time}, {left})"), site.assign("dtime", dleft)
            with site.block(f"if {row.kind} == 0 or {count} == {self.limit}:"):
                site.line(f"{going} = 0")
                site.line(f"{time} = {left}")
            with site.block("else:"):
                for kind in self.each_kind(row):
                    found = row.seen_by(frame).push(kind.when, row.ends, (row.time, ZERO))
                    site.line(f"{dtime} = {found[0]}")
            with self.each():
                self._push(frame.knowing(time=time, dtime=dtime), self.pattern.move, OWN, work, results)
            with site.block(f"if {going} == 1:"):
                for kind in self.each_kind(row):
                    self._push(row.seen_by(frame), kind.act, row.ends, work, results)
                site.line(f"{left} = {left} - {time}")
                site.line(f"{dleft} = {dleft} - {dtime}")
                site.line(f"{count} = {count} + 1")

    def _push(self, frame: Frame, call: Call, ends: Ends, work: Slots, results: Slots) -> None:
        """Replace entries of the state, and their tangents, by the results of a call and their tangents."""
        found = frame.run(call, ends)
        self.replace(call, ends, results, frame.push(call, ends, found))
        self.replace(call, ends, work, found)
