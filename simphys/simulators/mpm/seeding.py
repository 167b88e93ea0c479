"""Particles that fill a piece of material: a regular lattice inside of a box or a ball."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def lattice(origin: Sequence[float], counts: Sequence[int], spacing: float | Sequence[float]) -> Array:
    """`counts` particles along the axes, `spacing` apart [m], from `origin` on: [n, dim]. The last index runs first."""
    axes = [np.arange(count, dtype=float) for count in counts]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
    return np.asarray(origin, dtype=float) + cells * np.asarray(spacing, dtype=float)


def fill_box(lower: Sequence[float], upper: Sequence[float], spacing: float) -> tuple[Array, float]:
    """Particles about `spacing` apart [m] that divide a box evenly, and the volume of each [m^dim].

    Each stands in the middle of its share, so that the outer ones are half a spacing inside of the box.
    """
    start, edges = np.asarray(lower, dtype=float), np.subtract(upper, lower)
    counts = np.maximum(1, np.round(edges / spacing)).astype(int)
    share = edges / counts
    return lattice(start + share / 2, counts.tolist(), share.tolist()), float(np.prod(share))


def fill_ball(centre: Sequence[float], radius: float, spacing: float) -> tuple[Array, float]:
    """Those of a lattice `spacing` apart [m] about the centre that lie in a ball, and the volume of each [m^dim]."""
    half = max(1, int(np.ceil(radius / spacing)))
    dim = len(centre)
    position = lattice([(0.5 - half) * spacing] * dim, [2 * half] * dim, spacing)
    inside = np.sum(position**2, axis=1) <= radius**2
    return position[inside] + np.asarray(centre, dtype=float), spacing**dim
