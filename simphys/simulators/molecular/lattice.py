"""Starts of atoms: lattices that fill a box, and velocities of a temperature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simphys.simulator import Array

BASES = {
    "square": [[0.0, 0.0]],
    "cubic": [[0.0, 0.0, 0.0]],
    "fcc": [[0.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]],
    "rocksalt": [[0.5 * (k >> axis & 1) for axis in range(3)] for k in (0, 1, 3, 2, 5, 4, 6, 7)],
}
"""Atoms of a cell of each lattice, in lengths of the cell; those of rock salt alternate between its two kinds."""


def fill(lattice: str, cells: Sequence[int], density: float) -> tuple[Array, Array]:
    """Fill a box with cells of a lattice: positions [n, dim] [m] and lengths [dim] [m] of the box."""
    basis = np.array(BASES[lattice])
    length = (len(basis) / density) ** (1 / basis.shape[1])
    corners = np.indices(cells).reshape(len(cells), -1).T
    places = (corners[:, None] + basis).reshape(-1, len(cells))
    return length * (places + 0.25), length * np.array(cells, dtype=float)


def draw_velocities(mass: Array, dim: int, temperature: float, seed: int) -> Array:
    """Draw velocities [n, dim] [m/s] of a temperature k_B T [J] and of no momentum."""
    velocity = np.random.default_rng(seed).normal(size=(len(mass), dim)) / np.sqrt(mass)[:, None]
    velocity -= (mass[:, None] * velocity).sum(axis=0) / mass.sum()
    found = (mass[:, None] * velocity**2).sum() / (dim * len(mass))
    return velocity * np.sqrt(temperature / found) if found > 0 else velocity
