"""States of a wave over time, in the layout of the engine's loops. Each height is stored once, though two states
share it."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.autograd.kernels.alignment import aligned_zeros
from simphys.simulator import Array, Arrays, Rows, arena

from .grid_loops import GridLoops, Launch
from .line_text import INDEX


class Segment:
    """Storage for `steps` + 1 states. Row r + 1 of `height` belongs to state r; row 0 precedes the first state.

    If steps are bare, it may be advanced further, and then holds the last states, see `Engine.segments_roll`.
    """

    def __init__(self, grid: GridLoops, steps: int) -> None:
        model, real = grid.model, runtime.real_dtype()
        self._grid = grid
        size, rows = grid.layout.size, steps + 1
        if grid.batch * (rows + 1) * size > INDEX:
            found = f"{grid.batch} x {rows + 1} x {size}"
            remedy = "Give rollout a memory budget, so that states are stored in segments."
            raise InputError("wave", f"a segment holds at most {INDEX} numbers per field", found, remedy)
        self.height = arena.empty((grid.batch, rows + 1, size), real)
        self.height[...] = 0
        self.slope_memory = aligned_zeros((grid.batch, rows, grid.memory), real)
        self.curvature_memory = aligned_zeros((grid.batch, rows, grid.memory), real)
        self.source_position = np.zeros((grid.batch, rows, len(model.sources), model.dim), real)
        self.received = np.zeros((grid.batch, rows, model.receivers), real)
        self.launches: tuple[Launch, Launch, Launch] | None = None
        """Loops of a step that an engine has bound to these arrays: layers, leap, halo."""

    @staticmethod
    def bytes_of(grid: GridLoops, steps: int) -> int:
        """Compute the memory [B] of a segment."""
        sources = len(grid.model.sources) * grid.model.dim
        row = grid.layout.size + 2 * grid.memory + sources + grid.model.receivers
        return grid.batch * ((steps + 1) * row + grid.layout.size) * runtime.real_dtype().itemsize

    def load(self, state: Arrays) -> None:
        """Make `state` [B, *shape] the first state."""
        cells, pack_memory = self._grid.layout.view_cells, self._grid.pack_memory
        cells(self.height[:, 0])[...] = state["previous"]
        cells(self.height[:, 1])[...] = state["height"]
        self.slope_memory[:, 0] = pack_memory(state["slope_memory"])
        self.curvature_memory[:, 0] = pack_memory(state["curvature_memory"])
        self.source_position[:, 0] = state["source_position"]
        self.received[:, 0] = state["received"]

    def read(self, rows: Rows, names: Collection[str] | None = None) -> Arrays:
        """Copy states, [B, rows, *shape], with these fields or all."""
        cells, unpack_memory = self._grid.layout.view_cells, self._grid.unpack_memory
        readers: dict[str, Callable[[], Array]] = {
            "height": lambda: cells(_rows(self.height, rows, 1)),
            "previous": lambda: cells(_rows(self.height, rows)),
            "slope_memory": lambda: unpack_memory(_rows(self.slope_memory, rows)),
            "curvature_memory": lambda: unpack_memory(_rows(self.curvature_memory, rows)),
            "source_position": lambda: _rows(self.source_position, rows),
            "received": lambda: _rows(self.received, rows),
        }
        return {name: read().copy() for name, read in readers.items() if names is None or name in names}


def _rows(values: Array, rows: Rows, shift: int = 0) -> Array:
    """Take rows [B, rows, ...] of an array, `shift` rows later; numbers of rows are modulo their number."""
    numbers = range(rows.start or 0, rows.stop) if isinstance(rows, slice) else rows
    places = [(row + shift) % values.shape[1] for row in numbers]
    if not places or places[-1] - places[0] == len(places) - 1:  # in order: no copy
        return values[:, places[0] : places[-1] + 1] if places else values[:, :0]
    return values[:, places]
