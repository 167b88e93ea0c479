"""Starts of particles: lattices that fill blocks of fluid and walls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from simphys.simulator import Array


def fill(low: Sequence[float], counts: Sequence[int], spacing: float) -> Array:
    """Fill a block with cells of a square or cubic lattice, a particle in each centre: positions [n, dim] [m]."""
    cells = np.indices(counts).reshape(len(counts), -1).T
    return np.asarray(np.array(low) + spacing * (cells + 0.5))


def fill_blocks(blocks: Sequence[Any], spacing: float) -> list[Array]:
    """Fill each block of fluid."""
    return [
        fill(block.low, [round((b - a) / spacing) for a, b in zip(block.low, block.high, strict=True)], spacing)
        for block in blocks
    ]


def count_layers(spacing: float, smoothing: float) -> int:
    """Count the layers of particles that make a wall, so that the fluid meets nothing behind it."""
    return math.ceil(2 * smoothing / spacing - 0.5)


def place_walls(size: Sequence[float], walls: Sequence[str], spacing: float, layers: int) -> Array:
    """Place the particles of walls around a tank of a size [m]: positions [n, dim] [m]."""
    counts = [math.ceil(length / spacing - 1e-6) for length in size]
    before = [layers if f"{axis}-" in walls else 0 for axis in "xyz"[: len(size)]]
    after = [layers if f"{axis}+" in walls else 0 for axis in "xyz"[: len(size)]]
    whole = [count + low + high for count, low, high in zip(counts, before, after, strict=True)]
    cells = np.indices(whole).reshape(len(size), -1).T - np.array(before)
    outside = ((cells < 0) | (cells >= np.array(counts))).any(axis=1)
    return np.asarray(spacing * (cells[outside] + 0.5))
