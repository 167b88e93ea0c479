"""Rotation matrices of orientations, on the host; rotation.py has those of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def matrices(orientation: Array) -> Array:
    """Return the matrices [..., dim, dim] of angles [..., 1] in the plane, or of quaternions (w, x, y, z) [..., 4].

    Quaternions may have any length but 0.
    """
    from scipy.spatial.transform import Rotation  # only where it is used

    if orientation.shape[-1] == 1:
        c, s = np.cos(orientation), np.sin(orientation)
        rows = np.concatenate([c, -s], axis=-1), np.concatenate([s, c], axis=-1)
        return np.stack(rows, axis=-2)
    flat = np.roll(orientation, -1, axis=-1).reshape(-1, 4)  # scipy has w last
    return Rotation.from_quat(flat).as_matrix().reshape(*orientation.shape[:-1], 3, 3)
