"""Pool of memory for states along time: the system takes long to provide fresh memory, page by page.

An optimizer runs the same rollout over and over, and so can reuse the memory of the previous run. Freed buffers are
kept for requests of the same size, and released when another size is requested. Results of a Function own their memory,
which a buffer's arrays do not: such arrays are kept themselves, by `owned`.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from simphys.autograd.kernels.alignment import aligned_empty

from .arrays import Array, Shape

LEAST_BYTES = 1 << 16
"""Size [B] below which arrays come from NumPy, which pools them itself."""

_kept: dict[int, list[Array]] = {}
"""Free buffers, by their number of bytes."""
_owned: list[Array] = []
"""Arrays that `owned` made last, free or in use."""


def empty(shape: Shape, dtype: Any) -> Array:
    """Allocate like `aligned_empty`."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < LEAST_BYTES:
        return aligned_empty(shape, dtype)
    free = _kept.get(size)
    if not free:
        _kept.clear()
    buffer = free.pop() if free else aligned_empty((size,), np.uint8)
    return np.asarray(_Lease(buffer)).view(dtype).reshape(shape)


def zeros(shape: Shape, dtype: Any) -> Array:
    """Allocate zeros in the same way."""
    made = empty(shape, dtype)
    made[...] = 0
    return made


def _count_references(arrays: list[Array], place: int) -> int:
    return sys.getrefcount(arrays[place])


UNUSED = _count_references([np.empty(0)], 0)
"""Number of references to an array of a list that nothing else refers to, as this interpreter counts them."""


def owned(shape: Shape, dtype: Any) -> Array:
    """Allocate an array that owns its memory, and is used again for the same shape once nobody else refers to it.

    Views, Tensors, and memory shared with another library refer to their array.
    """
    if math.prod(shape) * np.dtype(dtype).itemsize < LEAST_BYTES:
        return np.empty(shape, dtype)
    free = [place for place in range(len(_owned)) if _count_references(_owned, place) == UNUSED]
    for place in free:
        if _owned[place].shape == shape and _owned[place].dtype == dtype:
            _owned[place].flags.writeable = True  # a Tensor had locked it
            return _owned[place]
    for place in reversed(free):
        del _owned[place]
    _owned.append(np.empty(shape, dtype))
    return _owned[-1]


class _Lease:
    """Owner of a buffer, referenced by its arrays; when the last of them is deleted, the buffer returns to the pool."""

    def __init__(self, buffer: Array) -> None:
        self._buffer = buffer
        self.__array_interface__ = buffer.__array_interface__

    def __del__(self, kept: dict[int, list[Array]] = _kept) -> None:  # the name is gone when the interpreter ends
        kept.setdefault(self._buffer.nbytes, []).append(self._buffer)
