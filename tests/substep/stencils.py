"""Weighted sums of neighbouring cells, with the same in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.substep.stencil import Term

from .grids import Grid

Array = np.ndarray[Any, Any]

GRIDS = {"small": Grid((4, 5)), "long rows": Grid((3, 37)), "single rows": Grid((1, 2)), "space": Grid((2, 3, 18))}
"""Rows of 18 cells and more are computed in blocks."""

SHIFTS = ((0, 0), (1, 0), (0, -1), (-1, 1), (1, 1))
NUMBER_WEIGHTS = ((1.0, 0.5, 0.0, -0.3, 0.0), (0.0, 0.5, -1.0, 0.5, 0.7))
"""Weight of each shift of the array of numbers, for the two components of the result."""
VECTOR_WEIGHTS = ((0.0, -2.0, 0.4, 0.0, 1.0), (0.6, 0.0, 0.0, -1.0, 0.2))
"""Those of the vectors: of the other component."""


def pad(shift: tuple[int, int], dim: int) -> tuple[int, ...]:
    """Let a shift in the plane be along the last two axes."""
    return (0,) * (dim - 2) + shift


def number_weights(dim: int) -> list[list[Term]]:
    rows = [zip(weights, SHIFTS, strict=True) for weights in NUMBER_WEIGHTS]
    return [[Term(w, pad(shift, dim)) for w, shift in row if w] for row in rows]


def vector_weights(dim: int) -> list[list[Term]]:
    rows = [zip(weights, SHIFTS, strict=True) for weights in VECTOR_WEIGHTS]
    return [[Term(w, pad(shift, dim), 1 - c) for w, shift in row if w] for c, row in enumerate(rows)]


WEIGHTS = {"s": number_weights, "v": vector_weights}


def take_neighbour(values: Array, shift: tuple[int, int]) -> Array:
    """Return the values of the cells some steps away along the last two axes."""
    return np.roll(values, (-shift[0], -shift[1]), axis=(-2, -1))


def apply_by_numpy(s: Array, v: Array) -> Array:
    """Compute the sums."""
    found = np.zeros_like(v)
    for c in (0, 1):
        for k, shift in enumerate(SHIFTS):
            found[c] += NUMBER_WEIGHTS[c][k] * take_neighbour(s, shift)
            found[c] += VECTOR_WEIGHTS[c][k] * take_neighbour(v[1 - c], shift)
    return found
