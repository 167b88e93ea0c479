"""Matrices for LAPACK, which prints to stderr for some that are not finite, and never returns for others."""

from __future__ import annotations

from typing import Any

import numpy as np


def finite(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a matrix, all of whose numbers are finite. Errors: LinAlgError, as of LAPACK."""
    if not np.isfinite(matrix).all():
        raise np.linalg.LinAlgError("a matrix holds numbers that are not finite")
    return matrix
