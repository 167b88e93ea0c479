"""A tape, from which the states of a wave can be recomputed backward in time.

Leapfrog runs backward: a height is the same function of the two that follow it. Absorbing layers lose the energy that
they absorb. The tape therefore stores heights and memories of the layers at every step, and the last two heights. It
stores nothing else of the cells between the layers. It is exact to rounding. Source: Dussaud, Symes et al. 2008 compare
this with checkpoints.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array

from .grid_loops import GridLoops
from .segment import Segment


class Tape:
    """The layers' contents and source positions of states 0 ... steps, for a horizon of `steps` steps."""

    def __init__(self, grid: GridLoops, steps: int) -> None:
        model, real = grid.model, runtime.real_dtype()
        rows = (grid.batch, steps + 1)
        self._grid, self.steps = grid, steps
        self._slabs = [np.zeros((*rows, *place.slab.shape), real) for place in grid.slabs]
        self._memories = [np.zeros((*rows, grid.memory if grid.slabs else 0), real) for _ in range(2)]
        self._position = np.zeros((*rows, len(model.sources), model.dim), real)
        self._end = np.zeros((grid.batch, 2, grid.layout.size), real)
        """The last two heights."""

    @staticmethod
    def bytes_of(grid: GridLoops, steps: int) -> int:
        """Compute the memory [B] of a tape."""
        memory = grid.memory if grid.slabs else 0
        row = grid.model.layer_cells + 2 * memory + len(grid.model.sources) * grid.model.dim
        return grid.batch * ((steps + 1) * row + 2 * grid.layout.size) * runtime.real_dtype().itemsize

    def record(self, segment: Segment, *, first: int, steps: int) -> None:
        """Store rows 0 ... steps of a segment."""
        states, rows = slice(first, first + steps + 1), slice(0, steps + 1)
        for place, stored in zip(self._grid.slabs, self._slabs, strict=True):
            stored[:, states] = place.view_grid(self._grid.layout, segment.height[:, 1:][:, rows])
        for stored, memory in zip(self._memories, (segment.slope_memory, segment.curvature_memory), strict=True):
            stored[:, states] = memory[:, rows, : stored.shape[2]]
        self._position[:, states] = segment.source_position[:, rows]
        if first + steps == self.steps:
            self._end[...] = segment.height[:, steps : steps + 2]

    def restore(self, segment: Segment, *, first: int, steps: int) -> None:
        """Restore the stored parts of rows 0 ... steps, and the last two heights into rows steps and steps + 1."""
        states, rows = slice(first, first + steps + 1), slice(0, steps + 1)
        last = self._end if first + steps == self.steps else segment.height[:, :2].copy()
        segment.height[:, steps : steps + 2] = last
        for stored, memory in zip(self._memories, (segment.slope_memory, segment.curvature_memory), strict=True):
            memory[:, rows, : stored.shape[2]] = stored[:, states]
        segment.source_position[:, rows] = self._position[:, states]

    def restore_layers(self, height: Array, step: int) -> None:
        """Overwrite the layers' cells of the height [B, size] of state `step` with the stored values."""
        for place, stored in zip(self._grid.slabs, self._slabs, strict=True):
            place.view_grid(self._grid.layout, height)[...] = stored[:, step]
