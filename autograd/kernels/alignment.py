"""Aligned memory of the host, for kernels that load and store whole vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .memory import Array

ALIGNMENT = 256
"""Multiple [B] of the addresses of aligned arrays: the size of a vector of 32 numbers in f64."""


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Allocate like `numpy.empty`, at a multiple of ALIGNMENT; NumPy's own arrays begin at multiples of 16 bytes."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    begin = -buffer.ctypes.data % ALIGNMENT
    return buffer[begin : begin + size].view(dtype).reshape(shape)


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Allocate like `numpy.zeros`, at a multiple of ALIGNMENT."""
    made = aligned_empty(shape, dtype)
    made[...] = 0
    return made
