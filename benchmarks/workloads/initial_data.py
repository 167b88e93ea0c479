"""Initial data that any language can reproduce: an integer hash instead of a random generator, lattices of springs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def hash01(count: int, seed: int) -> Array:
    """Compute pseudo-random numbers in [0, 1), [count], from 32-bit words.

    Source: the finalizer of MurmurHash3 (A. Appleby), applied to i * 2654435761 + seed * 40503, i = 0, 1, ..
    """
    word = np.uint32(seed) * np.uint32(40503) + np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    word ^= word >> np.uint32(16)
    word *= np.uint32(0x85EBCA6B)
    word ^= word >> np.uint32(13)
    word *= np.uint32(0xC2B2AE35)
    word ^= word >> np.uint32(16)
    return word / 2.0**32


def lattice_nodes(nx: int, ny: int) -> npt.NDArray[np.int64]:
    """Compute lattice coordinates (i, j) of the nodes i * ny + j, [nx * ny, 2]."""
    return np.indices((nx, ny)).reshape(2, -1).T


def lattice_springs(nx: int, ny: int) -> npt.NDArray[np.int32]:
    """Compute the ends of an nx x ny lattice's springs, [S, 2]: horizontal, then vertical, then both diagonals."""
    node = np.arange(nx * ny, dtype=np.int32).reshape(nx, ny)
    kinds = (
        (node[:-1], node[1:]),
        (node[:, :-1], node[:, 1:]),
        (node[:-1, :-1], node[1:, 1:]),
        (node[1:, :-1], node[:-1, 1:]),
    )
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in kinds])
