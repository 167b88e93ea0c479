"""Memory layout of a grid for vectorized loops: lines of cells along the last axis, stored in blocks.

A line begins at a multiple of BLOCK numbers and is followed by space for at least one block, so that a block is stored
at once. `halo` numbers before its first cell and after its last one may be read by differences; the other axes have
as many halo lines. Numbers beyond a line's halo need no particular value; differences leave them finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from simphys.autograd.kernels.alignment import aligned_zeros
from simphys.simulator import Array, Shape

BLOCK = 16
"""Numbers that are computed as a vector and stored at once: loops that store single numbers are not vectorized."""


@dataclass(frozen=True)
class Layout:
    """The layout of one grid: cell (i, j, k) is stored at origin + i strides[0] + j strides[1] + k."""

    shape: Shape
    halo: int

    def __post_init__(self) -> None:
        assert 2 * self.halo <= BLOCK, "the halos after a line and before the next one share a block"

    @cached_property
    def line(self) -> int:
        """Distance in memory from one line to the next."""
        return -(-self.shape[-1] // BLOCK) * BLOCK + BLOCK

    @property
    def _lines(self) -> Shape:
        """Number of lines along each axis but the last, including halos."""
        return tuple([count + 2 * self.halo for count in self.shape[:-1]])

    @cached_property
    def strides(self) -> Shape:
        """Distance in memory from one cell to the next along each axis."""
        lines = self._lines
        return (*[self.line * math.prod(lines[axis + 1 :]) for axis in range(len(lines))], 1)

    @property
    def origin(self) -> int:
        """Index of the first cell."""
        return self.halo * sum(self.strides[:-1]) + BLOCK

    @cached_property
    def size(self) -> int:
        """Length of an array in this layout, a multiple of BLOCK."""
        return math.prod(self._lines) * self.line + BLOCK

    @property
    def lines(self) -> int:
        """Number of lines of cells, without halos."""
        return math.prod(self.shape[:-1])

    @property
    def blocks(self) -> int:
        """Number of blocks in a line."""
        return self.line // BLOCK - 1

    def numbers(self, name: str, offset: int = 0) -> dict[str, int]:
        """Arguments of loops, for a grid padded to three axes, whose array begins at an offset.

        Line l begins at name_begin + l // lines2 * name_1 + l % lines2 * name_2.
        """
        stride1, stride2 = (0, 0, *self.strides[:-1])[-2:]
        return {f"{name}_begin": offset + self.origin, f"{name}_1": stride1, f"{name}_2": stride2}

    def count_lines(self) -> dict[str, int]:
        """Count all lines, those along the second of three axes, and the blocks in a line."""
        lines2 = self.shape[-2] if len(self.shape) > 1 else 1
        return {"lines": self.lines, "lines2": lines2, "blocks": self.blocks}

    def view_cells(self, values: Array) -> Array:
        """View the cells [..., *shape] of rows [..., size] in this layout."""
        lead = values.shape[:-1]
        inner = values[..., : self.size - BLOCK].reshape(*lead, *self._lines, self.line)
        whole = (slice(self.halo, -self.halo or None),) * (len(self.shape) - 1)
        return inner[(..., *whole, slice(BLOCK, BLOCK + self.shape[-1]))]

    def pad(self, values: Array) -> Array:
        """Copy cells [..., *shape] into this layout [..., size], with 0 elsewhere."""
        lead = values.shape[: values.ndim - len(self.shape)]
        made = aligned_zeros((*lead, self.size), values.dtype)
        self.view_cells(made)[...] = values
        return made
