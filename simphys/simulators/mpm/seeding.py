"""Particles on a regular lattice that fill a box or a ball of material."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def lattice(origin: Sequence[float], counts: Sequence[int], spacing: float | Sequence[float]) -> Array:
    """Place `counts` particles along the axes, `spacing` [m] apart, from `origin` on: [n, dim], last axis fastest."""
    axes = [np.arange(count, dtype=float) for count in counts]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
    return np.asarray(origin, dtype=float) + cells * np.asarray(spacing, dtype=float)


def fill_box(lower: Sequence[float], upper: Sequence[float], spacing: float) -> tuple[Array, float]:
    """Fill a box evenly with particles about `spacing` [m] apart; return positions and volume of each [m^dim].

    Each particle is at the centre of its share, so the outermost are half a spacing inside of the box.
    """
    start, edges = np.asarray(lower, dtype=float), np.subtract(upper, lower)
    counts = np.maximum(1, np.round(edges / spacing)).astype(int)
    share = edges / counts
    return lattice(start + share / 2, counts.tolist(), share.tolist()), float(np.prod(share))


def fill_ball(centre: Sequence[float], radius: float, spacing: float) -> tuple[Array, float]:
    """Fill a ball with the particles of a lattice around its centre, `spacing` [m] apart.

    Return positions and volume of each [m^dim].
    """
    half = max(1, int(np.ceil(radius / spacing)))
    dim = len(centre)
    position = lattice([(0.5 - half) * spacing] * dim, [2 * half] * dim, spacing)
    inside = np.sum(position**2, axis=1) <= radius**2
    return position[inside] + np.asarray(centre, dtype=float), spacing**dim
