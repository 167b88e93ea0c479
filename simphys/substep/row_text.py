"""Text of listed rows: forward, adjoint and tangent of all sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from .action import size_name
from .pattern import Source
from .sequence_call import Ends, counts_of
from .sequence_text import Slots, Text, hidden_count


def saved_name(number: int, source: Source) -> str:
    """Name of what rows of a kind save of an entry that they replace."""
    return f"kind_{number}_{source.kind}_{source.field}"


class RowText(Text):
    """The text of rows at a site."""

    @contextmanager
    def rows(self, *, backward: bool = False) -> Iterator[None]:
        """Loop over the sweeps, the number `sweep`."""
        sweeps = counts_of(self.op)[0]
        with self.site.block(f"for turn in range({hidden_count(sweeps, size_name(self.op.domain))}):"):
            self.site.line(f"sweep = {sweeps} - 1 - turn" if backward else "sweep = turn")
            yield

    @contextmanager
    def row(self, number: int, *, backward: bool = False) -> Iterator[tuple[Ends, str]]:
        """Loop over the rows of a kind; yields the elements, and the number of the act among those of all sweeps."""
        count = counts_of(self.op)[number + 1]
        relation = self.scope.relation(self.op, self.pattern.kinds[number][1])
        with self.site.block(f"for k in range({hidden_count(count, size_name(self.op.domain))}):"):
            row = self.site.assign("row", f"{count} - 1 - k" if backward else "k")
            first, second = (self.site.assign("end", f"{relation}[{row}][{end}]") for end in (0, 1))
            yield Ends(first, second, row), self.site.assign("act", f"sweep * {count} + {row}")

    def forward(self, slots: Slots) -> None:
        self._run(slots, save=False)

    def _run(self, slots: Slots, *, save: bool) -> None:
        """Let all rows act on the state in slots, and save there what they replace."""
        self.copy(self.given, slots)
        frame = self.frame(slots)
        with self.rows():
            for number, (call, _) in enumerate(self.pattern.kinds):
                with self.row(number) as (ends, act):
                    for source in call.replaces if save else ():
                        self.put(slots, saved_name(number, source), act, frame.read(source, ends, frame.state))
                    self.replace(frame, call, ends, slots, frame.run(call, ends))

    def adjoint(self, work: Slots, given: Slots, running: Slots, targets: Slots) -> None:
        self._run(work, save=True)
        self.begin_adjoint(given, running)
        frame, saved = self.frame(work), self.reader(work)
        with self.rows(backward=True):
            for number, (call, _) in reversed(list(enumerate(self.pattern.kinds))):
                with self.row(number, backward=True) as (ends, act):
                    for source in call.replaces:
                        before = saved(saved_name(number, source), act)
                        self.put_end(frame, work, source, ends, before)
                    self.pull_call(frame, call, ends, running)
        self.add_to_targets(running, targets)

    def tangent(self, work: Slots, results: Slots) -> None:
        self.copy(self.given, work)
        self.copy(self.read_tangents(), results)
        self.shared = replace(self.shared, tangents=self.load_shared("tangent"))
        frame = replace(self.frame(work), moved=self.reader(results))
        with self.rows():
            for number, (call, _) in enumerate(self.pattern.kinds):
                with self.row(number) as (ends, _):
                    found = frame.run(call, ends)
                    self.replace(frame, call, ends, results, frame.push(call, ends, found))
                    self.replace(frame, call, ends, work, found)
