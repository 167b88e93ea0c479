"""Small grids that tests of the mpm package share."""

from __future__ import annotations

from typing import Any

from simphys.mpm.model import MPM


def grid(cells: tuple[int, ...], **options: Any) -> MPM:
    """A model of one particle, of which only the grid matters."""
    return MPM(cells=cells, spacing=0.1, dt=0.02, particles=1, **options)
