"""Arrays of a generated engine: elements along the first axis, on the device."""

import functools
import math
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.errors import InputError
from simphys.autograd.kernels import device
from simphys.autograd.kernels.fill import fill
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array, Rows, Shape, arena
from simphys.substep.program import Value

LARGEST = 2**31 - 1
"""Largest size of an array, since kernels index with 32 bits."""


def to_device(array: Array, element: Shape) -> Any:
    """Bring an array to the device, with its elements along the first axis; on the CPU it is the same memory."""
    shaped = np.ascontiguousarray(array, runtime.real_dtype()).reshape(-1, *element)
    return device.to_device(shaped, axes=len(element))


def make_zeros(count: int, element: Shape) -> Any:
    """Make `count` elements of zeros on the device."""
    if not runtime.settings().on_gpu:
        return np.zeros((count, *element), runtime.real_dtype())
    zeros = device.device_array((count,), element=element)
    fill(zeros, 0.0)
    return zeros


def to_memory(value: Value, array: Array) -> Any:
    """Bring numbers of a value [..., *shape] to the device, in the order in which kernels take them."""
    return to_device(as_elements(value, array), value.memory_element)


def as_elements(value: Value, array: Array) -> Array:
    """Return the numbers of a value [..., *shape] in the order in which kernels take them: [elements, *element]."""
    ordered = _by_component(value, array) if value.by_component else array
    return np.ascontiguousarray(ordered, runtime.real_dtype()).reshape(-1, *value.memory_element)


def make_rows(value: Value, count: int, *, on_host: bool = False) -> Any:
    """Allocate memory for `count` arrays of a value; on a GPU it holds NaN, so that rows that nobody wrote show.

    Errors: InputError beyond the largest size.
    """
    if count * value.size > LARGEST:
        size = count * value.size * runtime.real_dtype().itemsize
        remedy = "Give the rollout a smaller memory budget, which splits it into segments."
        raise InputError("rollout", f"at most {LARGEST} numbers in one array", f"{size:,} bytes", remedy)
    element = value.memory_element
    shape = (count * value.size // math.prod(element), *element)
    if runtime.settings().on_gpu and not on_host:
        rows = device.device_array(shape[:1], element=element)
        fill(rows, math.nan)
        return rows
    return arena.empty(shape, runtime.real_dtype())


def put_first_row(rows: Any, value: Value, array: Array, *, count: int) -> None:
    """Write [B, *shape] to the first row of [B, count, *shape]."""
    members = len(array)
    if isinstance(rows, np.ndarray):
        given = _by_component(value, array) if value.by_component else array
        rows.reshape(members, count, value.size)[:, 0] = given.reshape(members, value.size)
        return
    given = to_memory(value, array)
    _copies(runtime.real(), value.memory_element).put(given, value.memory_count, members, count, rows)


def read_rows(rows: Any, value: Value, members: int, count: int, wanted: Rows) -> Array:
    """Read some rows of [B, count, *shape]."""
    if isinstance(rows, np.ndarray):
        found = _take(rows.reshape(members, count, value.size), wanted)
    else:
        numbers = np.arange(count, dtype=np.int32)[wanted]
        taken = make_rows(value, members * len(numbers))
        copies, sizes = _copies(runtime.real(), value.memory_element), (value.memory_count, members, count)
        strides = np.unique(np.diff(numbers))
        if len(strides) <= 1:  # what a rollout reads, and what no list of rows need travel for
            stride = int(strides[0]) if len(strides) else 1
            copies.take_evenly(rows, *sizes, int(numbers[0]) if len(numbers) else 0, stride, len(numbers), taken)
        else:
            copies.take(rows, *sizes, device.to_device(numbers), len(numbers), taken)
        found = device.to_host(taken, (members, len(numbers), value.size))
    if value.by_component:
        components = math.prod(value.element)
        swapped = found.reshape(*found.shape[:2], components, value.count).swapaxes(2, 3)
        found = np.ascontiguousarray(swapped)
    return found.reshape(*found.shape[:2], *value.shape)


def _take(values: Array, wanted: Rows) -> Array:
    """Copy rows of [B, rows, numbers]."""
    return np.array(values[:, wanted]) if isinstance(wanted, slice) else values.take(wanted, axis=1)


def _by_component(value: Value, array: Array) -> Array:
    """Reorder the vectors of [..., *shape]: all first components, then all second ones."""
    vectors = array.reshape(-1, value.count, math.prod(value.element))
    return np.ascontiguousarray(vectors.swapaxes(1, 2))


def copy_elements(element: Shape, source: Any, begin: int, target: Any, to: int, count: int) -> None:
    """Copy some elements of an array on the device to another one, from the position `begin` to the position `to`."""
    _copies(runtime.real(), element).copy(source, begin, count, target, to)


@functools.cache
@no_type_check
def _copies(real: Any, element: Shape) -> SimpleNamespace:
    """Kernels that copy between rows of a segment [B, rows, size] and [B, count, size], in elements."""
    array = functools.partial(ti.types.ndarray, ndim=1)
    kinds = {0: lambda: real, 1: lambda: ti.types.vector(*element, real), 2: lambda: ti.types.matrix(*element, real)}
    elements = array(dtype=kinds[len(element)]())
    ints = array(dtype=ti.i32)

    @kernel
    def put(given: elements, size: ti.i32, members: ti.i32, rows: ti.i32, segment: elements):
        """Write the first row."""
        for k in range(members * size):
            segment[k // size * rows * size + k % size] = given[k]

    @kernel
    def take(
        segment: elements, size: ti.i32, members: ti.i32, rows: ti.i32, wanted: ints, count: ti.i32, taken: elements
    ):
        """Read the wanted rows."""
        for k in range(members * count * size):
            member, row = k // (count * size), wanted[k // size % count]
            taken[k] = segment[(member * rows + row) * size + k % size]

    @kernel
    def take_evenly(
        segment: elements,
        size: ti.i32,
        members: ti.i32,
        rows: ti.i32,
        begin: ti.i32,
        stride: ti.i32,
        count: ti.i32,
        taken: elements,
    ):
        """Read rows at equal distances."""
        for k in range(members * count * size):
            member, row = k // (count * size), begin + stride * (k // size % count)
            taken[k] = segment[(member * rows + row) * size + k % size]

    @kernel
    def copy(source: elements, begin: ti.i32, count: ti.i32, target: elements, to: ti.i32):
        for k in range(count):
            target[to + k] = source[begin + k]

    return SimpleNamespace(put=put, take=take, take_evenly=take_evenly, copy=copy)
