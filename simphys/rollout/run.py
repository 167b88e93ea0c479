"""Forward and reverse sweeps of a rollout over an engine, block by block, with the states that the plan stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..autograd.errors import UnphysicalValue
from ..simulator import Array, Arrays, Engine, Rewinding, Rows
from ..simulator.arrays import element_name
from . import schedule
from .inputs import Inputs
from .plan import Plan
from .stability import advise_step
from .trajectory import BadValue, BlowUp, find_bad_value

CHECK_PART = 0.01
"""Largest fraction of the time that checks for a blow-up may take; above it they become rarer."""
FIRST_CHECK = 64
"""Smallest number of steps before the first check for a blow-up."""
SEARCH_STEPS = 8
"""Number of steps that are computed again at once to find where a motion blew up."""
FIRST_NUMBERS = 2**19
"""Smallest number of computed values before the first check: some milliseconds, much more than launch and check take.
"""

Progress = Callable[[int, int], None]
"""`on_progress(step, steps)`: called now and then while a rollout runs forward."""


def require_numbers(inputs: Inputs) -> None:
    """Raise BlowUp, of step 0, for a start that is not finite, and UnphysicalValue for NaN in another input.

    Kernels compare, and choose the smaller of two: a motion may well look finite, as if a NaN were not there.
    """
    start = {name: values[:, None] for name, values in inputs.start.items()}
    found = find_bad_value(start, float(np.finfo(inputs.dtype).max))
    if found is not None:
        before = {name: np.array(values[found.member, 0]) for name, values in start.items()}
        raise make_blow_up(inputs, found, step=0, before=before)
    others = {f"params.{name}": values for name, values in inputs.params.arrays().items()}
    if inputs.control is not None:
        others["control"] = inputs.control.data
    for name, values in others.items():
        if values.size and np.isnan(values.min()):
            index = tuple(np.argwhere(np.isnan(values))[0].tolist())
            found_there = f"{element_name(name, index)} = nan"
            raise UnphysicalValue(f"rollout, {name}", "all values are numbers", found_there, "Correct its computation.")


@dataclass
class Monitor:
    """Checks the last state now and then, and stops a motion that has blown up."""

    inputs: Inputs
    limit: float | None
    """Largest magnitude that counts as finite; None for no check."""
    on_progress: Progress | None = None
    rolls: bool = False
    """True if segments hold the last state alone, see `Plan.rolls`."""
    reached: int = 0
    """Last step up to which the motion is known to be sound."""

    def __post_init__(self) -> None:
        numbers = self.inputs.state_bytes(1) // self.inputs.dtype.itemsize
        self.every = max(FIRST_CHECK, FIRST_NUMBERS // max(numbers, 1))

    def advance(self, engine: Engine, segment: Any, *, first: int, steps: int) -> Arrays:
        """Advance a segment from its first state, in pieces. Return the last state [B, 1, *shape]. Errors: BlowUp."""
        done = 0
        last: Arrays = {}
        while done < steps:
            piece = min(self.every, steps - done)
            began = time.perf_counter()
            engine.advance(segment, first=first, start=done, steps=piece)
            middle = time.perf_counter()
            before, last = last, engine.read(segment, [done + piece])
            self._check(before, last, engine, segment, first, done, piece)
            done += piece
            self.reached = first + done
            if self.on_progress is not None:
                self.on_progress(first + done, self.inputs.steps)
            if piece == self.every and time.perf_counter() - middle > CHECK_PART * (middle - began):
                self.every *= 2
        return last

    def _check(
        self, before: Arrays, last: Arrays, engine: Engine, segment: Any, first: int, start: int, piece: int
    ) -> None:
        """Check the last state; if it is bad, search for the first bad state and raise BlowUp.

        `before` is the last state of the piece before, empty at the start.
        """
        if self.limit is None or find_bad_value(last, self.limit) is None:
            return
        if self.rolls:
            self._search_again(engine, {name: values[:, 0] for name, values in before.items()}, first + start, piece)
        self._search(engine, segment, first, start, piece)

    def _search_again(self, engine: Engine, state: Arrays, first: int, steps: int) -> None:
        """Compute the steps from a sound state again, in a segment that stores them, and search there.

        `state` is empty at the start of the horizon.
        """
        state = state or self.inputs.start
        segment = engine.segment(SEARCH_STEPS)
        for begin, count in split_blocks(steps, SEARCH_STEPS):
            engine.load(segment, state)
            engine.advance(segment, first=first + begin, start=0, steps=count)
            last = engine.read(segment, [count])
            if self.limit is not None and find_bad_value(last, self.limit) is not None:
                self._search(engine, segment, first + begin, 0, count)
            state = {name: values[:, 0] for name, values in last.items()}

    def _search(self, engine: Engine, segment: Any, first: int, start: int, piece: int) -> None:
        """Search for the first bad state, and raise BlowUp."""
        assert self.limit is not None, "a bad state was found"
        end = start + piece + 1
        found = None
        for begin in range(start, end, self.inputs.piece):
            found = find_bad_value(engine.read(segment, slice(begin, min(begin + self.inputs.piece, end))), self.limit)
            if found is not None:
                break
        assert found is not None, "the last state is bad"
        row = begin + found.row
        self.reached = first + row - 1
        before = engine.read(segment, [max(row - 1, 0)])
        sound = {name: np.array(values[found.member, 0]) for name, values in before.items()}
        raise make_blow_up(self.inputs, found, step=first + row, before=sound)


def make_blow_up(inputs: Inputs, found: BadValue, *, step: int, before: Arrays) -> BlowUp:
    """Make the error for a bad value; `before` is the batch member's last sound state, without a batch axis."""
    member = found.member
    params = {
        name: values[member] if values.ndim > len(inputs.param_shapes[name]) else values
        for name, values in inputs.params.arrays().items()
    }
    control = None if inputs.control is None else inputs.control.data
    if control is not None:
        control = control[(member, 0) if control.ndim > len(inputs.model.control_shape() or ()) + 1 else 0]
    states = {"at the start": {name: values[member] for name, values in inputs.start.items()}}
    states["in the state that it had reached"] = before
    cause: str | Callable[[], str] = "Correct the start: all its numbers must be finite."
    if step > 0 or np.isfinite(found.value):
        infinite = _find_infinite(inputs, member, step)
        cause = partial(_find_cause, inputs.model, params, states, control, infinite=infinite)
    return BlowUp(
        step=step,
        field=found.field,
        element=found.element if inputs.batch is None else (member, *found.element),
        value=found.value,
        time=step * inputs.model.dt,
        cause=cause,
    )


def _find_infinite(inputs: Inputs, member: int, step: int) -> str:
    """Name the first infinite number among the parameters of a batch member, and its control before a step; else ""."""
    given = {f"params.{name}": (values, inputs.param_shapes[name]) for name, values in inputs.params.arrays().items()}
    if inputs.control is not None:
        given["control"] = inputs.control.data, (inputs.steps, *(inputs.model.control_shape() or ()))
    for name, (values, shape) in given.items():
        lead = (member,) if values.ndim > len(shape) else ()
        own = values[lead][:step] if name == "control" else values[lead]
        if not np.isfinite(own).all():
            index = (*lead, *np.argwhere(~np.isfinite(own))[0].tolist())
            return f"{element_name(name, index)} = {values[index]:g}"
    return ""


def _find_cause(model: Any, params: Arrays, states: dict[str, Arrays], control: Array | None, *, infinite: str) -> str:
    """Find cause and remedy: an infinite input, too long a time step, else what the model says of the last state.

    An advice that fails, such as a user's, must not hide the blow-up.
    """
    if infinite:
        return f"{infinite} is not finite: correct it."
    with suppress(Exception):  # it needs more of a model than a rollout does
        if found := advise_step(model, params, states, control):
            return found
    *_, before = states.values()
    general = "Take a smaller time step, or begin with less motion."
    try:
        found = model.advice(params, before)
    except Exception as error:
        reason = f"failed with {type(error).__name__}: {error}"
    else:
        if isinstance(found, str):
            return found or general
        reason = f"returned {found!r}, which is no text"
    return f"{general} (The advice of {type(model).__name__} {reason}.)"


class Sweep:
    """Runs the horizon forward and in reverse as planned; yields each block as (first step, steps, segment)."""

    def __init__(self, engine: Engine, plan: Plan, monitor: Monitor, start: Arrays) -> None:
        self.monitor = monitor
        self.start = start
        self.current = start
        """State at the sweep's current position, [B, *shape]."""
        self._checkpoints: dict[int, Arrays] = {}
        self.begin(engine, plan)

    def begin(self, engine: Engine, plan: Plan) -> None:
        """Take an engine and a plan; those before give back their memory first."""
        self._segment = self._tape = None
        self._checkpoints.clear()
        self.engine, self.plan = engine, plan
        self.monitor.rolls = plan.rolls
        self._segment = engine.segment(0 if plan.rolls else min(plan.block, plan.steps))
        self._rewinding = engine if plan.strategy == "rebuilt" and isinstance(engine, Rewinding) else None
        self._tape = None if self._rewinding is None else self._rewinding.tape(plan.steps)
        self._ready = False  # True if everything is as the forward sweep left it

    def forward(self, *, keep: bool) -> Iterator[tuple[int, int, Any]]:
        """Compute each block in order; with `keep`, store what the reverse sweep needs."""
        self.current = self.start
        self._ready = False
        self._checkpoints.clear()  # an interrupted reverse sweep may have left some
        actions = self.plan.forward() if keep else iter([schedule.Advance(0, self.plan.blocks)])
        for action in actions:
            if isinstance(action, schedule.Advance):
                for block in range(action.first, action.last):
                    yield self._fill(block, self.monitor.advance)
                    self._record(block)
            elif isinstance(action, schedule.Record):
                yield self._fill(action.block, self.monitor.advance)
            else:
                self._execute(action)
        self._ready = keep

    def reverse(self, *, dense: bool) -> Iterator[tuple[int, int, Any]]:
        """Yield each block in reverse with its states; the horizon as one block if no state in between is needed."""
        if not self._ready:  # a second backward through the same graph
            for _ in self.forward(keep=True):
                pass
        self._ready = self.plan.blocks == 1 or self.plan.strategy != "stored"
        if self.plan.strategy == "stateless" and not dense:
            yield 0, self.plan.steps, self._segment
            return
        for action in self.plan.reverse():
            if isinstance(action, schedule.Reverse):
                self._rebuild(action.block)
                yield self._block(action.block)
            else:
                self._execute(action)

    def whole_horizon(self) -> tuple[int, int, Any] | None:
        """Return the horizon as one block if all its states are stored, else None."""
        return self._block(0) if self._ready and self.plan.blocks == 1 and not self.plan.rolls else None

    def _execute(self, action: schedule.Action) -> None:
        match action:
            case schedule.Store(block):
                self._checkpoints[block] = {name: values.copy() for name, values in self.current.items()}
            case schedule.Restore(block):
                self.current = self._checkpoints[block]
            case schedule.Free(block):
                del self._checkpoints[block]
            case schedule.Advance(first, last):
                for block in range(first, last):
                    self._fill(block, self._advance)
            case schedule.Record(block):
                self._fill(block, self._advance)

    def _record(self, block: int) -> None:
        """Record the block on the tape, if there is one."""
        if self._rewinding is not None:
            first, count, segment = self._block(block)
            self._rewinding.record(self._tape, segment, first=first, steps=count)

    def _rebuild(self, block: int) -> None:
        """Recompute the block's states backward in time from the tape, if there is one."""
        if self._rewinding is not None:
            first, count, segment = self._block(block)
            self._rewinding.rebuild(self._tape, segment, first=first, steps=count)

    def _block(self, block: int) -> tuple[int, int, Any]:
        return (*self.plan.span(block), self._segment)

    def _fill(self, block: int, advance: Any) -> tuple[int, int, Any]:
        """Compute a block's states from the current state, and make its last state the current one."""
        first, count, segment = self._block(block)
        self.engine.load(segment, self.current)
        last = advance(self.engine, segment, first=first, steps=count)
        self.current = {name: values[:, 0] for name, values in last.items()}
        return first, count, segment

    @staticmethod
    def _advance(engine: Engine, segment: Any, *, first: int, steps: int) -> Arrays:
        engine.advance(segment, first=first, start=0, steps=steps)
        return engine.read(segment, [steps])


def split_blocks(steps: int, block: int) -> Iterator[tuple[int, int]]:
    """Iterate over (first step, number of steps) of each block of the horizon."""
    for first in range(0, steps, block):
        yield first, min(block, steps - first)


def split_pieces(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """Split the range first ... last at the multiples of `size`."""
    while first < last:
        end = min((first // size + 1) * size, last)
        yield first, end
        first = end


def find_rows(keep: Array, first: int, last: int, *, zero: int) -> tuple[slice, Rows] | None:
    """Find the kept steps in first < step <= last; None if there is none.

    Return their indices in `keep`, and their rows relative to step `zero`: as a slice if they are consecutive.
    """
    begin, end = keep.searchsorted((first, last), side="right").tolist()
    if begin == end:
        return None
    low, high = int(keep[begin]) - zero, int(keep[end - 1]) - zero
    rows = slice(low, high + 1) if high - low == end - begin - 1 else keep[begin:end] - zero
    return slice(begin, end), rows
