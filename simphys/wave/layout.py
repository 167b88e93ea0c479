"""How a grid lies in memory for loops that the compiler vectorizes: lines of cells along the last axis, in blocks.

A line begins at a multiple of BLOCK numbers and is followed by room for one block at least, so that a block is stored
at once. Before its first cell and behind its last one lie `halo` numbers that differences may read; along the other
axes there are as many lines. What is behind a line's halo comes out of differences as it went in, at worst: finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..simulator import Array, Shape

BLOCK = 16
"""Numbers that are computed into a local table and stored at once: loops that store to arrays are not vectorized."""

INDEX = 2**30 - 1
"""Loops are vectorized only where their indices cannot overflow: `& INDEX` tells the compiler that a base is small,"""
STRIDE = 2**24 - 1
"""and `& STRIDE` that a stride is. They change nothing."""


@dataclass(frozen=True)
class Layout:
    """Cell (i, j, k) lies at origin + i strides[0] + j strides[1] + k."""

    shape: Shape
    halo: int

    def __post_init__(self) -> None:
        assert 2 * self.halo <= BLOCK, "halos behind a line and before the next one share a block"

    @cached_property
    def line(self) -> int:
        """From a line to the next one."""
        return -(-self.shape[-1] // BLOCK) * BLOCK + BLOCK

    @property
    def _lines(self) -> Shape:
        """Lines along each axis but the last, with halos."""
        return tuple([count + 2 * self.halo for count in self.shape[:-1]])

    @cached_property
    def strides(self) -> Shape:
        """From a cell to the next one along each axis."""
        lines = self._lines
        return (*[self.line * math.prod(lines[axis + 1 :]) for axis in range(len(lines))], 1)

    @property
    def origin(self) -> int:
        """Where the first cell lies."""
        return self.halo * sum(self.strides[:-1]) + BLOCK

    @cached_property
    def size(self) -> int:
        """Numbers of a grid, a multiple of BLOCK."""
        return math.prod(self._lines) * self.line + BLOCK

    @property
    def lines(self) -> int:
        """Of cells."""
        return math.prod(self.shape[:-1])

    @property
    def blocks(self) -> int:
        """Of a line."""
        return self.line // BLOCK - 1

    @property
    def indices(self) -> tuple[int, int, int, int, int]:
        """What loops take: strides of the first two of three axes, lines of the second one, origin, blocks.

        Line l of the grid begins at origin + l // lines2 * stride1 + l % lines2 * stride2.
        """
        padded = (0, 0, *self.strides[:-1])[-2:]
        return padded[0], padded[1], self.shape[-2] if len(self.shape) > 1 else 1, self.origin, self.blocks

    def cells(self, values: Array) -> Array:
        """A view of the cells [..., *shape] of rows [..., size] in this layout."""
        lead = values.shape[:-1]
        inner = values[..., : self.size - BLOCK].reshape(*lead, *self._lines, self.line)
        whole = (slice(self.halo, -self.halo or None),) * (len(self.shape) - 1)
        return inner[(..., *whole, slice(BLOCK, BLOCK + self.shape[-1]))]

    def padded(self, values: Array) -> Array:
        """A copy of cells [..., *shape] in this layout, 0 elsewhere: [..., size]."""
        lead = values.shape[: values.ndim - len(self.shape)]
        made = np.zeros((*lead, self.size), values.dtype)
        self.cells(made)[...] = values
        return made
