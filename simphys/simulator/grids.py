"""Description of a simulator's regular grid, which is all that recordings and pictures use of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .units import SI, Units


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Regular grid. The middle of cell (i, j, k) is at spacing * (i + offset, j + offset, k + offset) [m]."""

    cells: tuple[int, ...]
    """Number of cells along each axis."""
    spacing: float
    """Edge of a cell [m]."""
    offset: float
    """Position of cell 0 in units of spacing: 0 if cells are points of a lattice, 0.5 if they fill a box."""
    fields: Mapping[str, str]
    """Fields of the state and of the parameters with a value for each cell, [..., *cells], and their units.

    A field of vectors has the components first; on a staggered grid it may have one entry more along an axis."""
    depth: bool = False
    """True if the last axis is the depth, as in a section x, z: pictures draw it downwards."""
    units: Units = SI
    """Units of length and time in pictures."""

    def axis(self, axis: int) -> npt.NDArray[Any]:
        """Positions of the cells along an axis [m], [cells[axis]]."""
        return self.spacing * (np.arange(self.cells[axis]) + self.offset)
