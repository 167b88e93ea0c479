"""Results of the forward sweep, collected block by block: the states of the trajectory and the running sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..simulator import Array, Arrays, Engine, Rows, arena
from .inputs import Inputs
from .run import find_rows, split_pieces
from .running import RunningSum


class Results:
    """Collects the kept states of a rollout, or their tangents, and the running sum.

    With `reuse`, the memory of states that nobody holds any more is kept for a next rollout, and taken.
    """

    def __init__(
        self,
        inputs: Inputs,
        keep: Array,
        running: RunningSum | None,
        fields: frozenset[str],
        *,
        reuse: bool = False,
    ) -> None:
        self.inputs, self.keep, self.running = inputs, keep, running
        lead = () if inputs.batch is None else (inputs.batch,)
        allocate = arena.owned if reuse else np.empty
        self.arrays = {
            name: allocate((*lead, len(keep) if name in fields else 0, *shape), inputs.dtype)
            for name, shape in inputs.state_shapes.items()
        }
        """[rows, *shape], or [B, rows, *shape] with a batch; fields that are not kept have no rows."""
        batched = self.arrays if inputs.batch is not None else {n: a[None] for n, a in self.arrays.items()}
        self._states = {name: values for name, values in batched.items() if name in fields}
        self._total = 0.0
        self._parts: list[Arrays] = []  # states of the current piece of the running sum

    def running_total(self) -> Array:
        """Running sum so far, a scalar array []."""
        return np.asarray(self._total, self.inputs.dtype)

    def set_start(self, states: Arrays) -> None:
        """Store the initial state [B, *shape], if it is kept."""
        if self.keep[0] == 0:
            for name, values in self._states.items():
                values[:, 0] = states[name]

    def add_block(self, engine: Engine, segment: Any, first: int, count: int) -> None:
        """Collect the states first + 1 ... first + count from rows 1 ... count of a segment."""
        if found := find_rows(self.keep, first, first + count, zero=first):
            self._copy(engine, segment, first, *found)
        if self.running is not None:
            for begin, end in split_pieces(first, first + count, self.inputs.piece):
                self._parts.append(engine.read(segment, slice(begin - first + 1, end - first + 1)))
                self._add_running(self.running, end)

    def _copy(self, engine: Engine, segment: Any, first: int, places: slice, rows: Rows) -> None:
        """Copy rows of a segment that begins with the step `first` to these places among the kept states."""
        views = engine.views(segment)
        if isinstance(rows, slice) and self._states.keys() <= views.keys():
            for name, values in self._states.items():
                values[:, places] = views[name][:, rows]
            return
        for begin in range(places.start, places.stop, self.inputs.piece):
            part = slice(begin, min(begin + self.inputs.piece, places.stop))
            read = engine.read(segment, self.keep[part] - first, self._states.keys())
            for name, values in self._states.items():
                values[:, part] = read[name]

    def _add_running(self, running: RunningSum, end: int) -> None:
        """Add the piece of the running sum that ends with the step `end`, if one does."""
        if end % self.inputs.piece and end < self.inputs.steps:
            return
        states = self._parts[0]
        if len(self._parts) > 1:
            states = {name: np.concatenate([part[name] for part in self._parts], axis=1) for name in states}
        self._parts = []
        rows = next(iter(states.values())).shape[1]
        self._total += running.evaluate(states, np.arange(end - rows + 1, end + 1))

    def add_tangents(self, tangents: Arrays, engine: Engine, segment: Any, first: int, count: int) -> None:
        """Collect tangents [B, count + 1, *shape] of the states first ... first + count."""
        if found := find_rows(self.keep, first, first + count, zero=first):
            places, rows = found
            for name, values in self._states.items():
                values[:, places] = tangents[name][:, rows]
        if self.running is not None:
            for begin, end in split_pieces(first, first + count, self.inputs.piece):
                rows = slice(begin - first + 1, end - first + 1)
                steps = np.arange(begin + 1, end + 1)
                for name, values in self.running.differentiate(engine.read(segment, rows), steps, 1.0).items():
                    self._total += float(np.vdot(values, tangents[name][:, rows]))
