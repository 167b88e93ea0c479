"""What a simulator of fields on a regular grid tells of it: recordings and pictures know no more of any simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A regular grid. The middle of cell (i, j, k) is at spacing * (i + offset, j + offset, k + offset) [m]."""

    cells: tuple[int, ...]
    """How many along each axis."""
    spacing: float
    """Edge of a cell [m]."""
    offset: float
    """Position of cell 0 in units of spacing: 0 where cells are points of a lattice, 0.5 where they fill a box."""
    fields: Mapping[str, str]
    """The fields of the state and of the parameters that have a number for each cell, [..., *cells], and their units.

    A field of vectors has their components first; on a staggered grid it may have an entry more along an axis."""

    def axis(self, axis: int) -> npt.NDArray[Any]:
        """Where the cells are along an axis [m], [cells[axis]]."""
        return self.spacing * (np.arange(self.cells[axis]) + self.offset)
