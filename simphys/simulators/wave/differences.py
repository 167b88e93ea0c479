"""Undivided central differences on regular grids and on parts of them, as sparse matrices for `weighted`.

The coefficients are those of `numerics.stencil`. Beyond a side, a field is continued as in `numerics.boundary`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simphys.numerics.boundary import fold
from simphys.numerics.stencil import first_difference, second_difference
from simphys.simulator import Array, Shape
from simphys.substep.weighted import Weights

Terms = list[tuple[Array, Array]]
"""Columns and weights of each term of sums."""


def neighbours(shape: Shape, axis: int, steps: int, sides: Sequence[str], begin: int = 0) -> tuple[Array, Array]:
    """Find the number of the cell some steps along an axis, and its sign, for each cell of a grid; [*shape].

    Cells are numbered from `begin` on.
    """
    at = np.arange(shape[axis])
    index, sign = fold(at + steps, shape[axis], *sides)
    along = [-1 if other == axis else 1 for other in range(len(shape))]
    moved = (index - at).reshape(along) * math.prod(shape[axis + 1 :])
    numbers = begin + np.arange(math.prod(shape)).reshape(shape)
    return numbers + moved, np.broadcast_to(sign.reshape(along), shape)


def second(shape: Shape, axis: int, sides: Sequence[str], order: int) -> Terms:
    """List the terms of dx^2 times the second derivative along an axis."""
    found = []
    for steps, c in enumerate(second_difference(order)):
        for side in (1, -1) if steps else (1,):
            index, sign = neighbours(shape, axis, side * steps, sides)
            found.append((index, c * sign))
    return found


def first(shape: Shape, axis: int, sides: Sequence[str], order: int, begin: int = 0) -> Terms:
    """List the terms of dx times the first derivative along an axis."""
    found = []
    for steps, c in enumerate(first_difference(order), 1):
        for side in (1, -1):
            index, sign = neighbours(shape, axis, side * steps, sides, begin)
            found.append((index, side * c * sign))
    return found


def make_weights(terms: Terms, part: tuple[slice, ...] = ()) -> Weights:
    """Make the matrix whose rows are the entries of arrays, or of a part of these."""
    index, weight = (np.stack([each[part].reshape(-1) for each in side], -1) for side in zip(*terms, strict=True))
    return Weights(np.where(weight != 0, index, -1), weight)


def stack(parts: Sequence[Weights]) -> Weights:
    """Put matrices of as many terms below each other."""
    index, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Weights(index, weight)
