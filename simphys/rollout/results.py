"""Results of the forward sweep, collected block by block: the states of the trajectory and the running sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..simulator import Array, Arrays, Engine
from .inputs import Inputs
from .run import find_rows, split_pieces
from .running import RunningSum


class Results:
    """Collects the kept states of a rollout, or their tangents, and the running sum."""

    def __init__(self, inputs: Inputs, keep: Array, running: RunningSum | None, fields: frozenset[str]) -> None:
        self.inputs, self.keep, self.running = inputs, keep, running
        lead = () if inputs.batch is None else (inputs.batch,)
        self.arrays = {
            name: np.empty((*lead, len(keep) if name in fields else 0, *shape), inputs.dtype)
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
        start = first
        if self.running is None:  # skip pieces before the first kept state
            kept = self.keep[np.searchsorted(self.keep, first, side="right") :][:1]
            start = min([first + count, *(kept - 1).tolist()])
        for begin, end in split_pieces(start, first + count, self.inputs.piece):
            if found := find_rows(self.keep, begin, end, zero=first):
                places, rows = found
                read = engine.read(segment, rows, self._states.keys())
                for name, values in self._states.items():
                    values[:, places] = read[name]
            if self.running is not None:
                self._parts.append(engine.read(segment, slice(begin - first + 1, end - first + 1)))
                self._add_running(self.running, end)

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
