"""Arrows of the gradient of the loss by the position of each body, along time."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.record import Recording

Array = np.ndarray[Any, Any]

MOST = 2000
"""Largest number of arrows; of more bodies, evenly chosen ones have an arrow."""


def read_gradient(recording: Recording, time: Array, count: int) -> tuple[Array, Array] | None:
    """Read the gradient by position at times [T] of `count` shown bodies: their numbers [m], and [T, m, dim].

    None for a run without it.
    """
    if "adjoint/position" not in recording or "adjoint/time" not in recording:
        return None
    rows = np.clip(np.searchsorted(recording["adjoint/time"], time - 1e-12), 0, None)
    gradient = recording["adjoint/position"]
    if gradient.ndim != 3:  # of several experiments
        return None
    gradient = np.asarray(gradient[np.minimum(rows, len(gradient) - 1)], float)
    gradient = gradient[:, :: -(-gradient.shape[1] // count)]
    chosen = np.arange(0, gradient.shape[1], -(-gradient.shape[1] // MOST))
    return chosen, np.nan_to_num(gradient[:, chosen])


def scale_arrows(vectors: Array, length: float, *, logarithmic: bool) -> Array:
    """Scale arrows [T, m, 3] such that the longest is `length`; `logarithmic`: by decades, six of them at most."""
    size = np.linalg.norm(vectors, axis=-1, keepdims=True)
    most = float(size.max(initial=0.0)) or 1.0
    part = size / most
    if logarithmic:
        part = np.clip(1 + np.log10(np.maximum(part, 1e-12)) / 6, 0, 1)
    return length * part * vectors / np.where(size > 0, size, 1.0)
