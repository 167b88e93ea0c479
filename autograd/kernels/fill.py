"""Filling arrays of a device: for vectors and matrices, the compiler's own call would make a kernel at each call."""

import functools
from typing import Any, no_type_check

import numpy as np

from . import runtime
from .counters import counters
from .device import compiler_type
from .launch import Kernel, kernel

ti = runtime.ti


def fill(array: Any, number: float) -> None:
    """Set all numbers of an array of the device to one; on the CPU this is NumPy's."""
    if isinstance(array, np.ndarray):
        array.fill(number)
        return
    counters.fills += 1
    if array.element:
        _make(array.dtype, array.element, len(array.shape))(array, number)
    else:
        array.own.fill(number)


@functools.cache
@no_type_check
def _make(dtype: np.dtype[Any], element: tuple[int, ...], axes: int) -> Kernel:
    number_type = compiler_type(dtype)
    kind = (ti.types.vector if len(element) == 1 else ti.types.matrix)(*element, number_type)
    elements = ti.types.ndarray(dtype=kind, ndim=axes)

    @kernel
    def fill_elements(array: elements, number: number_type):
        for place in ti.grouped(array):
            array[place] = kind(number)

    return fill_elements
