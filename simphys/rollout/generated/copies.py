"""Copies between states of a segment and arrays of states, on the CPU and on a GPU."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def copy_kernels(real: Any) -> SimpleNamespace:
    """Kernels that copy rows of `size` numbers between a segment [B, rows, size] and [B, count, size]."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def put(given: reals, size: ti.i32, members: ti.i32, rows: ti.i32, segment: reals):
        """Write the first row."""
        for k in range(members * size):
            segment[k // size * rows * size + k % size] = given[k]

    @kernel
    def take(segment: reals, size: ti.i32, members: ti.i32, rows: ti.i32, wanted: ints, count: ti.i32, taken: reals):
        """Read the wanted rows."""
        for k in range(members * count * size):
            member, row = k // (count * size), wanted[k // size % count]
            taken[k] = segment[(member * rows + row) * size + k % size]

    return SimpleNamespace(put=put, take=take)
