"""A kernel that fills arrays of vectors and matrices on a device: the compiler's own call makes one at each call."""

import functools
from typing import Any, no_type_check

import numpy as np

from . import runtime
from .device import DeviceArray, compiler_type
from .launch import Kernel, kernel

ti = runtime.ti


def fill(array: DeviceArray, number: float) -> None:
    """Set all numbers of an array to one."""
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
