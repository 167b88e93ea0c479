"""The magnitude of the right side of a linear system, by which iterations are scaled: squares over- or underflow."""

from __future__ import annotations

import math

import numpy as np

from simphys.autograd.tensor import Array


def find_magnitude(values: Array) -> float:
    """Return the power of two below the largest magnitude; 0 if all values are 0, NaN if one is not finite.

    To divide by a power of two is exact, so that a solve of ordinary numbers is the same, bit by bit.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not math.isfinite(largest):
        return math.nan
    if largest < np.finfo(values.dtype).tiny:  # compilers may take it for 0
        return 0.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)
