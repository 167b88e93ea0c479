"""Memory for states along time, used again: the system takes long to hand out fresh memory, page by page.

An optimizer runs the same rollout over and over; its states lie in the memory of the run before. What the last run gave
back is kept for one of the same size, and let go of when another size is wanted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arrays import Array, Shape

LEAST_BYTES = 1 << 20
"""What is smaller comes from NumPy, which keeps it itself."""

_kept: dict[int, list[Array]] = {}
"""Buffers that nobody uses, by their number of bytes."""


def empty(shape: Shape, dtype: Any) -> Array:
    """As `numpy.empty`."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < LEAST_BYTES:
        return np.empty(shape, dtype)
    free = _kept.get(size)
    if not free:
        _kept.clear()
    buffer = free.pop() if free else np.empty(size, np.uint8)
    return np.asarray(_Lease(buffer)).view(dtype).reshape(shape)


class _Lease:
    """What the arrays over a buffer hold on to: when the last of them goes, the buffer is kept for the next."""

    def __init__(self, buffer: Array) -> None:
        self._buffer = buffer
        self.__array_interface__ = buffer.__array_interface__

    def __del__(self, kept: dict[int, list[Array]] = _kept) -> None:  # the name is gone when the interpreter ends
        kept.setdefault(self._buffer.nbytes, []).append(self._buffer)
