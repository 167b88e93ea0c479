"""`profile`: the cost of each Function in a part of a program: calls, time forward and backward, memory saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple

from ..context import Context
from ..errors import InputError
from ..function import Observer
from ..kernels.compilation import Compilation, compiled
from ..mode import switch
from ..node import Node
from ..tensor import Tensor
from .html import html_table
from .saved_memory import find_saved, saved_bytes

_FORWARD, _BACKWARD = 0, 1


class NodeCost(NamedTuple):
    """The cost of one recorded node, including Functions that ran inside it."""

    forward: float
    """[s]"""
    backward: float | None
    """[s], of all its backward calls; None if there was none."""
    bytes_saved: int
    """[B] distinct memory that it keeps, including its inner graph."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The cost of one Function. Times exclude other Functions that ran inside it, which have rows of their own."""

    function: str
    forward_calls: int
    backward_calls: int
    forward: float
    """[s]"""
    backward: float
    """[s]"""
    bytes_saved: int
    """[B], summed over its nodes: the distinct memory of each without its inner graph."""

    @property
    def time(self) -> float:
        """[s], forward and backward."""
        return self.forward + self.backward


class _Running:
    """A Function's forward or backward that has not returned."""

    __slots__ = ("absent", "entered", "inner", "node", "started")

    def __init__(self, node: Node, entered: float) -> None:
        self.node = node
        self.entered = entered  # [s], before the profile's work for it
        self.started = entered  # [s], after it
        self.inner = 0.0  # [s], time of Functions inside it
        self.absent = 0.0  # [s], the same with the profile's work for them

    def own_time(self, left: float) -> float:
        return left - self.started - self.absent

    def total_time(self, left: float) -> float:
        return self.own_time(left) + self.inner

    def absorb(self, failed: _Running) -> None:
        """Add the inner times of a failed Function to this one's; its own time becomes this one's."""
        self.inner += failed.inner
        self.absent += failed.absent


class _Tally:
    """The running sums of a row."""

    def __init__(self) -> None:
        self.calls = [0, 0]
        self.times = [0.0, 0.0]
        self.bytes_saved = 0


FEW = 4
"""Largest number of Functions in a short description."""


class profile(Observer):
    """Context manager that measures each Function applied inside: `with profile() as p: ...`, then `print(p)`.

    Forward time is that of `apply`, with recording. Backward time is that of the Function's backward, without the
    traversal. Functions that run inside another (in a combined node, or in its replay for backward) have rows of their
    own, and their time is subtracted from the outer one's: rows add up, nothing is counted twice. Memory that several
    nodes keep counts for each of them; `compare` counts it once. The time of the profile itself is in no row, but makes
    the block slower.

    Entered again, one block after another, it adds to its sums. Errors: InputError when entered inside itself.
    """

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self._forward: dict[int, tuple[float, int]] = {}  # time [s] and memory [B] of recorded nodes, by sequence
        self._backward: dict[int, float] = {}
        self._running: list[_Running] = []  # the outermost first
        self.compilation = Compilation()
        """Kernels compiled inside, and the time [s] that took, which is in the rows of the Functions that waited."""
        self._before = Compilation()

    def __enter__(self) -> profile:
        if self in switch.observers:
            constraint = "one object measures one block at a time"
            raise InputError(
                "profile", constraint, "a block inside its own", "Use another profile() for the inner one."
            )
        switch.observers = (*switch.observers, self)
        self._before = compiled()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        switch.observers = tuple([observer for observer in switch.observers if observer is not self])
        self._running.clear()
        found = compiled() - self._before
        self.compilation.kernels += found.kernels
        self.compilation.seconds += found.seconds

    # --- results

    @property
    def rows(self) -> list[Row]:
        """A row for each Function's name, the most time first."""
        rows = [
            Row(
                function=name,
                forward_calls=tally.calls[_FORWARD],
                backward_calls=tally.calls[_BACKWARD],
                forward=tally.times[_FORWARD],
                backward=tally.times[_BACKWARD],
                bytes_saved=tally.bytes_saved,
            )
            for name, tally in self._tallies.items()
        ]
        return sorted(rows, key=lambda row: -row.time)

    def of(self, node: Node) -> NodeCost | None:
        """The cost of a node that was recorded inside the block; None for another."""
        forward = self._forward.get(node.sequence)
        if forward is None:
            return None
        time, bytes_saved = forward
        return NodeCost(forward=time, backward=self._backward.get(node.sequence), bytes_saved=bytes_saved)

    def __str__(self) -> str:
        """A table with a line for each Function, the total, and what was compiled."""
        rows = self.rows
        total = Row(
            function="total",
            forward_calls=sum(row.forward_calls for row in rows),
            backward_calls=sum(row.backward_calls for row in rows),
            forward=sum(row.forward for row in rows),
            backward=sum(row.backward for row in rows),
            bytes_saved=sum(row.bytes_saved for row in rows),
        )
        head = ("Function", "calls fwd", "calls bwd", "fwd [ms]", "bwd [ms]", "total [ms]", "saved [B]")
        lines = [head, *[_cells(row) for row in rows], _cells(total)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
        rule = "-" * len(text[0])
        note = [str(self.compilation)] if self.compilation.kernels else []
        return "\n".join([text[0], rule, *text[1:-1], rule, text[-1], *note])

    def __repr__(self) -> str:
        """Describe the most expensive Functions, in a few lines; `print` shows all of them."""
        shown, left = self.rows[:FEW], self.rows[FEW:]
        lines = [f"  {row.function}  {1e3 * row.time:.3g} ms" for row in shown]
        rest = [f"  and {len(left)} more  {1e3 * sum([row.time for row in left]):.3g} ms"] if left else []
        return "\n".join([f"Profile of {len(self.rows)} Functions", *lines, *rest])

    def _repr_html_(self) -> str:
        heads = ("Function", "calls fwd", "calls bwd", "fwd [ms]", "bwd [ms]", "total [ms]", "saved [B]")
        return html_table("Cost of each Function", heads, [_cells(row) for row in self.rows], numbers=range(1, 7))

    # --- measuring

    def before_forward(self, ctx: Context, inputs: tuple[Any, ...]) -> None:
        self._enter(ctx)

    def after_forward(self, ctx: Context, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> None:
        left = perf_counter()
        running = self._leave(ctx)
        if running is None:
            return
        time, tally = running.total_time(left), self._tally(ctx)
        tally.calls[_FORWARD] += 1
        tally.times[_FORWARD] += running.own_time(left)
        if hasattr(ctx, "sequence"):  # it is recorded
            memory, makers = find_saved(ctx)
            own = sum([array.nbytes for array in memory.values()])
            inner = any([maker.sequence > ctx.sequence for maker in makers])
            tally.bytes_saved += own
            self._forward[ctx.sequence] = time, saved_bytes([ctx], since=ctx.sequence) if inner else own
        self._add_to_outer(running, time)

    def before_backward(self, node: Node, adjoints: Sequence[Any]) -> None:
        self._enter(node)

    def after_backward(self, node: Node, adjoints: Sequence[Any], results: Sequence[Any]) -> None:
        left = perf_counter()
        running = self._leave(node)
        if running is None:
            return
        time, tally = running.total_time(left), self._tally(node)
        tally.calls[_BACKWARD] += 1
        tally.times[_BACKWARD] += running.own_time(left)
        self._backward[node.sequence] = self._backward.get(node.sequence, 0.0) + time
        self._add_to_outer(running, time)

    def failed(self, node: Node) -> None:
        running = self._leave(node)
        if running is not None and self._running:
            self._running[-1].absorb(running)

    def _enter(self, node: Node) -> None:
        running = _Running(node, perf_counter())
        self._running.append(running)
        running.started = perf_counter()

    def _leave(self, node: Node) -> _Running | None:
        """Remove the node from the stack, with failed ones inside it; None if the block ended inside it."""
        running = self._running
        if running and running[-1].node is node:  # nearly always
            return running.pop()
        if not any([one.node is node for one in running]):
            return None
        while (last := running.pop()).node is not node:
            running[-1].absorb(last)
        return last

    def _tally(self, node: Node) -> _Tally:
        function = node.name().removesuffix("Backward")
        tally = self._tallies.get(function)
        if tally is None:
            tally = self._tallies[function] = _Tally()
        return tally

    def _add_to_outer(self, running: _Running, time: float) -> None:
        """Exclude this Function, and the profile's work until now, from the outer one's time. To be called last."""
        if self._running:
            outer = self._running[-1]
            outer.inner += time
            outer.absent += perf_counter() - running.entered


def _cells(row: Row) -> tuple[str, ...]:
    calls = f"{row.forward_calls:,}", f"{row.backward_calls:,}"
    times = [f"{1e3 * time:,.3f}" for time in (row.forward, row.backward, row.time)]
    return (row.function, *calls, *times, f"{row.bytes_saved:,}")
