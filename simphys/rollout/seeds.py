"""Derivatives of the loss with respect to kept states, final state and running sum, assigned to blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Tensor
from ..simulator import Array, Arrays, Engine, arena
from .inputs import Inputs
from .run import find_rows, split_pieces
from .running import RunningSum
from .trajectory import StateAdjoint


class Seeds:
    """Output adjoints of a rollout, which its backward pass starts from.

    A block receives the derivatives for all its states except the last, whose adjoint the following block has computed.
    Thus each sum is formed inside `pull`, in an order that does not depend on the blocks, and the gradients are the
    same to the last bit for every plan.
    """

    def __init__(
        self,
        inputs: Inputs,
        keep: Array,
        running: RunningSum | None,
        adjoint: StateAdjoint | None,
        adjoints: tuple[Tensor | None, ...],
        *,
        sparse: bool = False,
    ) -> None:
        self.inputs, self.keep, self.running, self.adjoint = inputs, keep, running, adjoint
        names = list(inputs.state_shapes)
        batched = inputs.batch is not None
        arrays = [None if a is None else (a.data if batched else a.data[None]) for a in adjoints[: 2 * len(names)]]
        self.kept = {name: a for name, a in zip(names, arrays, strict=False) if a is not None and a.shape[1]}
        self.final = dict(zip(names, arrays[len(names) :], strict=True))
        adj_running = adjoints[-1] if running is not None else None
        self.adj_running = 0.0 if adj_running is None else adj_running.item()
        summed = adj_running is not None
        self.running = running if summed else None
        self.dense = summed or adjoint is not None or (bool(self.kept) and bool(keep[0] != inputs.steps))
        self._rows = frozenset(self.kept if sparse and not summed and adjoint is None else names)
        """Fields with a row for each state of a block, if the adjoint is dense."""
        self._adjoint_arrays: Arrays = {}  # the arrays of `adjoint`, with a batch axis
        if adjoint is not None:
            self._allocate(adjoint)

    def seed_last(self, engine: Engine, segment: Any, count: int) -> Arrays:
        """Compute the adjoint of the last state, [B, 1, *shape], which is row `count` of its block."""
        steps = self.inputs.steps
        adjoint = {}
        for name, shape in self.inputs.state_shapes.items():
            adjoint[name] = np.zeros((self.inputs.members, 1, *shape), self.inputs.dtype)
            given = self.final[name]
            if given is not None:
                adjoint[name][:, 0] = given
            if name in self.kept and self.keep[-1] == steps:
                adjoint[name] += self.kept[name][:, -1:]
        self._add_running(adjoint, engine, segment, first=steps - count, begin=count, end=count + 1, at=0)
        self.store_adjoint(adjoint, steps, 1)
        return adjoint

    def seed_block(self, last: Arrays, engine: Engine, segment: Any, first: int, count: int) -> Arrays:
        """Make the adjoint argument of `pull` for a block; `last` [B, 1, *shape] is the adjoint of its last state."""
        if not self.dense:
            return last
        found = find_rows(self.keep, first - 1, first + count - 1, zero=first)
        adjoint = {}
        for name, values in last.items():
            row_count = count + 1 if name in self._rows else 1
            adjoint[name] = arena.zeros((len(values), row_count, *values.shape[2:]), values.dtype)
            adjoint[name][:, -1:] = values
            if name in self.kept and found:
                places, rows = found
                adjoint[name][:, rows] = self.kept[name][:, places]
        begin = 1 if first == 0 else 0  # the sum excludes the initial state
        self._add_running(adjoint, engine, segment, first=first, begin=begin, end=count, at=begin)
        return adjoint

    def store_adjoint(self, adjoint: Arrays, first: int, count: int) -> None:
        """Store the first `count` rows of `adjoint`, which begin with the step `first`, for the user."""
        for name, values in self._adjoint_arrays.items():
            values[:, first : first + count] = adjoint[name][:, :count]

    def _add_running(
        self, adjoint: Arrays, engine: Engine, segment: Any, *, first: int, begin: int, end: int, at: int
    ) -> None:
        """Add the running sum's derivatives with respect to rows begin ... end - 1 of the segment to rows from `at`."""
        if self.running is None:
            return
        for low, high in split_pieces(begin, end, self.inputs.piece):
            states = engine.read(segment, slice(low, high))
            steps = np.arange(first + low, first + high)
            for name, values in self.running.differentiate(states, steps, self.adj_running).items():
                adjoint[name][:, at + low - begin : at + high - begin] += values

    def _allocate(self, holder: StateAdjoint) -> None:
        """Allocate the arrays along time of `holder`, which the reverse sweep fills."""
        batch = () if self.inputs.batch is None else (self.inputs.batch,)
        for name, shape in self.inputs.state_shapes.items():
            values = np.full((*batch, self.inputs.steps + 1, *shape), np.nan, self.inputs.dtype)
            setattr(holder, name, values)
            self._adjoint_arrays[name] = values if self.inputs.batch is not None else values[None]
