"""Regular lattices of nodes with springs along their axes and across their faces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np


def lattice_springs(shape: Sequence[int]) -> np.ndarray:
    """Springs [S, 2] as pairs of node indices.

    The springs along each axis come first, axis by axis. Then, for each pair of axes, come the diagonals
    (i, j)-(i+1, j+1) and the diagonals (i+1, j)-(i, j+1). Within each group the last index runs fastest. A chain has
    no diagonals.
    """
    numbers = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    pairs = [_pairs(numbers, start, end) for start, end in _links(len(shape))]
    return np.concatenate(pairs)


def lattice_face(shape: Sequence[int], face: str) -> np.ndarray:
    """Node indices of a face, given its name: 'y+' has the largest second index, 'x-' has i = 0."""
    numbers = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    return np.take(numbers, -1 if face[1] == "+" else 0, axis="xyz".index(face[0])).reshape(-1)


def _links(dim: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Corners of the unit cell joined by each kind of spring."""
    axes = np.eye(dim, dtype=int)
    for axis in axes:
        yield np.zeros(dim, dtype=int), axis
    for first, second in combinations(axes, 2):
        yield np.zeros(dim, dtype=int), first + second
        yield first, second


def _pairs(numbers: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    cells = np.array(numbers.shape) - np.maximum(start, end)
    first, second = (
        numbers[tuple(slice(offset, offset + count) for offset, count in zip(corner, cells, strict=True))]
        for corner in (start, end)
    )
    return np.stack([first.reshape(-1), second.reshape(-1)], axis=1)
