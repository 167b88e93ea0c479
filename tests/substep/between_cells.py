"""Grids with points between their cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor

DX = 0.4


@dataclass(frozen=True, eq=False)
class Grid:
    """Everything that the patterns read of a model."""

    cells: tuple[int, ...]
    boundaries: tuple[str, ...]
    even: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(3, np.int32))
    spacing: float = DX


PLANE = Grid((5, 6), ("zero", "free", "periodic", "periodic"), np.array([0, 1, 2], np.int32))
GRIDS = {
    "line": Grid((7,), ("free", "zero"), np.array([0, 1, 0], np.int32)),
    "plane": PLANE,
    "plain": Grid((5, 6), ("zero", "free", "periodic", "periodic")),
    "space": Grid((5, 4, 6), ("absorbing", "free", "zero", "zero", "zero", "free")),
}


def make_points(grid: Grid, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a field, points inside of the grid and up to half a cell beyond, and their strengths."""
    random = np.random.default_rng(seed)
    count, dim = len(grid.even), len(grid.cells)
    points = random.uniform(-0.5, np.array(grid.cells) - 0.5, size=(count, dim)) * DX
    drawn = random.normal(size=grid.cells), points, random.normal(size=count)
    made = [tensor(values, requires_grad=True) for values in drawn]
    return made[0], made[1], made[2]
