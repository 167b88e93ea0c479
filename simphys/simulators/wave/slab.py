"""Slabs: parts of a grid along an axis, such as the layers at its sides, and their layouts for loops over lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.simulator import Array, Shape

from .layout import BLOCK, Layout


@dataclass(frozen=True)
class Slab:
    """Cells first ... first + width - 1 along `axis`, all cells along other axes."""

    axis: int
    first: int
    width: int
    offset: int
    """Index of its first cell in the memory of all slabs, which holds each in row-major order."""
    shape: Shape

    @property
    def cells(self) -> tuple[slice, ...]:
        """Its cells in an array of all cells."""
        whole = slice(self.first, self.first + self.width)
        return tuple([whole if axis == self.axis else slice(None) for axis in range(len(self.shape))])


@dataclass(frozen=True)
class SlabPlace:
    """Position of a slab in its own layout and in the layout of the grid.

    Its own layout has a halo of zeros on either side, twice as wide as the differences reach. If lines run along its
    axis, it begins and ends at blocks of the grid.
    """

    slab: Slab
    layout: Layout
    offset: int
    """Index at which it begins in a row of memory in the layouts of all slabs."""
    on_last_axis: bool
    """True if its axis is the last one, so that lines of memory run along it."""
    lead: int
    """Number of cells in its layout before its own first cell; nonzero only if lines run along its axis."""
    numbers: Mapping[str, int]
    """Arguments of loops over its lines."""
    reached: Mapping[str, int]
    """Arguments of loops over the lines of all cells within reach of its differences."""

    def pad(self, values: Array) -> Array:
        """Extend numbers along the slab's axis by zeros to its layout."""
        length = self.layout.shape[self.slab.axis]
        return np.pad(values, (self.lead, length - self.lead - self.slab.width))

    def view_cells(self, memory: Array) -> Array:
        """View its cells [..., *shape] in memory [..., size] in the layouts of all slabs."""
        cells = self.layout.view_cells(memory[..., self.offset : self.offset + self.layout.size])
        return cells[..., self.lead : self.lead + self.slab.width] if self.on_last_axis else cells

    def view_memory(self, memory: Array) -> Array:
        """View its cells [..., *shape] in memory [..., cells] of all slabs."""
        part = memory[..., self.slab.offset : self.slab.offset + math.prod(self.slab.shape)]
        return part.reshape(*memory.shape[:-1], *self.slab.shape)

    def view_grid(self, layout: Layout, rows: Array) -> Array:
        """View its cells in rows [..., size] in the layout of the grid."""
        where: Any = (..., *self.slab.cells)
        return layout.view_cells(rows)[where]


def place_slab(grid: Layout, halo: int, slab: Slab, offset: int) -> SlabPlace:
    """Lay out a slab, whose memory begins at this offset."""
    axis, on_last_axis = slab.axis, slab.axis == len(grid.shape) - 1
    low = max(slab.first - halo, 0)  # the first cell within reach of the slab's differences
    high = min(slab.first + slab.width + halo, grid.shape[axis])
    first, shape, lead = slab.first, slab.shape, 0
    if on_last_axis:
        first = low // BLOCK * BLOCK
        lead, shape = slab.first - first, (*slab.shape[:-1], -(-high // BLOCK) * BLOCK - first)
    layout = Layout(shape, 2 * halo)
    own, outer = layout.strides[axis], grid.strides[axis]
    numbers = {
        **layout.numbers("slab", offset),
        **grid.numbers("grid", first * outer),
        **layout.count_lines(),
        "stride": outer,
        "own_stride": own,
        "line_step": layout.count_lines()["lines2"] if axis == len(grid.shape) - 3 else 1,
        "width": slab.width,
    }
    reached = dict(numbers)
    if not on_last_axis:
        shape = (*shape[:axis], high - low, *shape[axis + 1 :])
        reached |= Layout(shape, 2 * halo).count_lines()
        reached["slab_begin"] += (low - slab.first) * own
        reached["grid_begin"] += (low - slab.first) * outer
    return SlabPlace(slab, layout, offset, on_last_axis, lead, numbers, reached)
