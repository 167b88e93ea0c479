"""Particles on a regular lattice that fill a box or a ball of material."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simphys.scenefile.shared import place_lattice
from simphys.simulator import Array


def fill_box(lower: Sequence[float], upper: Sequence[float], spacing: float) -> tuple[Array, float]:
    """Fill a box evenly with particles about `spacing` [m] apart; return positions and volume of each [m^dim].

    Each particle is at the centre of its share, so the outermost are half a spacing inside of the box.
    """
    start, edges = np.asarray(lower, dtype=float), np.subtract(upper, lower)
    counts = np.maximum(1, np.round(edges / spacing)).astype(int)
    share = edges / counts
    return place_lattice(start + share / 2, counts.tolist(), share), float(np.prod(share))


def fill_ball(centre: Sequence[float], radius: float, spacing: float) -> tuple[Array, float]:
    """Fill a ball with the particles of a lattice around its centre, `spacing` [m] apart.

    Return positions and volume of each [m^dim].
    """
    half = max(1, int(np.ceil(radius / spacing)))
    dim = len(centre)
    position = place_lattice([(0.5 - half) * spacing] * dim, [2 * half] * dim, spacing)
    inside = np.sum(position**2, axis=1) <= radius**2
    return position[inside] + np.asarray(centre, dtype=float), spacing**dim
