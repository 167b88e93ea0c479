"""Results of the forward sweep, collected block by block: the states of the trajectory and the running sum."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..simulator import Array, Arrays, Engine
from .inputs import Inputs
from .run import pieces, rows_in
from .running import RunningSum


class Kept:
    """Collects the kept states of a rollout, or their tangents, and the running sum."""

    def __init__(
        self, inputs: Inputs, keep: Array, running: RunningSum | None, fields: frozenset[str] | None = None
    ) -> None:
        self.inputs, self.keep, self.running = inputs, keep, running
        lead = () if inputs.batch is None else (inputs.batch,)
        chosen = inputs.state_shapes.keys() if fields is None else fields
        self.results = {
            name: np.empty((*lead, len(keep) if name in chosen else 0, *shape), inputs.dtype)
            for name, shape in inputs.state_shapes.items()
        }
        """[rows, *shape], or [B, rows, *shape] with a batch; fields that are not kept have no rows."""
        of_all = self.results if inputs.batch is not None else {n: a[None] for n, a in self.results.items()}
        self._states = {name: values for name, values in of_all.items() if name in chosen}
        self._total = 0.0
        self._parts: list[Arrays] = []  # states of the current piece of the running sum

    def total(self) -> Array:
        """Running sum so far, a scalar array []."""
        return np.asarray(self._total, self.inputs.dtype)

    def start(self, states: Arrays) -> None:
        """Store the initial state [B, *shape], if it is kept."""
        if self.keep[0] == 0:
            for name, values in self._states.items():
                values[:, 0] = states[name]

    def take(self, engine: Engine, segment: Any, first: int, count: int) -> None:
        """Collect the states first + 1 ... first + count from rows 1 ... count of a segment."""
        for begin, end in pieces(first, first + count, self.inputs.piece):
            if found := rows_in(self.keep, begin, end, zero=first):
                places, rows = found
                read = self._read(engine, segment, rows)
                for name, values in self._states.items():
                    values[:, places] = read[name]
            if self.running is not None:
                self._parts.append(engine.read(segment, slice(begin - first + 1, end - first + 1)))
                self._add(self.running, end)

    def _read(self, engine: Engine, segment: Any, rows: slice | list[int]) -> Arrays:
        """Read states of a segment: the kept fields alone, if the engine can read single fields."""
        if getattr(engine, "fields_apart", False):
            states: Arrays = cast(Any, engine).read(segment, rows, self._states.keys())
            return states
        return engine.read(segment, rows)

    def _add(self, running: RunningSum, end: int) -> None:
        """Add the piece of the running sum that ends with the step `end`, if one does."""
        if end % self.inputs.piece and end < self.inputs.steps:
            return
        states = self._parts[0]
        if len(self._parts) > 1:
            states = {name: np.concatenate([part[name] for part in self._parts], axis=1) for name in states}
        self._parts = []
        rows = next(iter(states.values())).shape[1]
        self._total += running.value(states, np.arange(end - rows + 1, end + 1))

    def take_tangents(self, tangents: Arrays, engine: Engine, segment: Any, first: int, count: int) -> None:
        """Collect tangents [B, count + 1, *shape] of the states first ... first + count."""
        if found := rows_in(self.keep, first, first + count, zero=first):
            places, rows = found
            for name, values in self._states.items():
                values[:, places] = tangents[name][:, rows]
        if self.running is not None:
            for begin, end in pieces(first, first + count, self.inputs.piece):
                at = slice(begin - first + 1, end - first + 1)
                derivatives = self.running.derivatives(engine.read(segment, at), np.arange(begin + 1, end + 1), 1.0)
                for name, values in derivatives.items():
                    self._total += float(np.vdot(values, tangents[name][:, at]))
