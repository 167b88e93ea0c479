"""Memory of a GPU: arrays from a pool, and the way there and back. On the CPU, NumPy arrays stand in their place.

To make an array of the device is slow (the driver fills it and waits), and on Vulkan the memory of an array that is
dropped while launches wait is never given back. So arrays return to a pool, from which the next one of the same type
and shape is taken: launches run in order, so what the last owner asked for is done before the next one writes.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np

from ..errors import DeviceMemoryError, InputError
from . import runtime
from .counters import counters

ti = runtime.ti

Array = np.ndarray[Any, Any]
Element = tuple[int, ...]
"""Shape of an element: () for numbers, (n,) for vectors, (n, m) for matrices."""
_Key = tuple[np.dtype[Any], tuple[int, ...], Element]

_pool: dict[_Key, list[Any]] = {}
"""Arrays of the compiler that are not in use."""
_used: dict[int, Any] = {}
"""Those in use, by their ids: a cycle of references that is collected must not end them before they return."""


class DeviceArray:
    """An array [shape] of numbers, vectors or matrices in the memory of a GPU; it holds whatever was there before.

    It belongs to the program of the compiler that was running when it was made, and its memory ends with that.
    """

    __slots__ = ("__weakref__", "dtype", "element", "own", "shape")

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...], element: Element = ()) -> None:
        self.dtype, self.element = dtype, element
        self.shape = tuple([max(length, 1) for length in shape])  # the compiler has no empty arrays
        kept = _pool.get((dtype, self.shape, element))
        if kept:
            self.own = kept.pop()
            counters.hold(live=self.nbytes, pooled=-self.nbytes)
        else:
            if counters.pooled_bytes > counters.live_bytes:
                empty_pool()
            self.own = _make(dtype, self.shape, element)
            counters.hold(live=self.nbytes)
        _used[id(self.own)] = self.own

    @property
    def ndim(self) -> int:
        """Number of axes, with those of the element, as NumPy counts them."""
        return len(self.shape) + len(self.element)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * math.prod(self.element) * self.dtype.itemsize

    def write(self, values: Array) -> None:
        """Copy numbers [*shape, *element] from the host."""
        counters.upload(self.nbytes)
        self.own.from_numpy(np.ascontiguousarray(values, self.dtype))

    def read(self) -> Array:
        """Copy the numbers [*shape, *element] to the host. Errors: InputError if their memory has ended."""
        require_memory(self, "runtime.to_host")
        counters.download(self.nbytes)
        values: Array = self.own.to_numpy()
        return values

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, element={self.element}, dtype={self.dtype})"

    def __del__(self) -> None:
        own = _used.pop(id(getattr(self, "own", None)), None)
        if own is None or _has_ended(own):
            return
        _pool.setdefault((self.dtype, self.shape, self.element), []).append(own)
        counters.hold(live=-self.nbytes, pooled=self.nbytes)


def device_array(shape: tuple[int, ...], *, element: Element = ()) -> Any:
    """Uninitialised working memory of kernels, on the device: real numbers [shape], or vectors or matrices of them.

    On the CPU it is a NumPy array [*shape, *element]; results leave it by `to_host`, values enter by `to_device`.
    """
    if not runtime.settings().on_gpu:
        return np.empty((*shape, *element), runtime.real_dtype())
    return DeviceArray(runtime.real_dtype(), shape, element)


def to_device(array: Array, *, axes: int = 0) -> Any:
    """A kernel argument with the values of `array`: itself on the CPU, a copy on a GPU.

    The last `axes` axes are those of an element: 1 for vectors, 2 for matrices.
    """
    if not runtime.settings().on_gpu:
        return array
    dtype = np.dtype(np.int32) if array.dtype.kind in "iu" else runtime.real_dtype()
    outer = array.ndim - axes
    copy = DeviceArray(dtype, array.shape[:outer], array.shape[outer:])
    if array.size:
        copy.write(array)
    return copy


def to_host(array: Any, shape: tuple[int, ...]) -> Array:
    """The values of working memory as a NumPy array of `shape` (over the same memory on the CPU)."""
    values: Array = array if isinstance(array, np.ndarray) else array.read().reshape(-1)[: math.prod(shape)]
    return values.reshape(shape)


def require_memory(array: Any, source: str) -> None:
    """Raise InputError if an array of the device, or of the compiler, lost its memory, which ends with the program."""
    if _has_ended(array.own if isinstance(array, DeviceArray) else array):
        found = "one of settings before, whose program has ended"
        remedy = "Make it again, with all that holds it: run forward again under the settings in force."
        raise InputError(
            source, f"memory on a device belongs to the settings in force, {runtime.settings()}", found, remedy
        )


def empty_pool() -> None:
    """Give the memory that is not in use back to the driver."""
    if _pool:
        ti.sync()  # on Vulkan, what launches still use would never be given back
        _forget_pool()


def _forget_pool() -> None:
    _pool.clear()
    counters.hold(pooled=-counters.pooled_bytes)


def _end() -> None:
    _forget_pool()
    _used.clear()
    counters.hold(live=-counters.live_bytes)


runtime.before_end(_end)


def _has_ended(own: Any) -> bool:
    return own.arr is None


def _make(dtype: np.dtype[Any], shape: tuple[int, ...], element: Element) -> Any:
    """Make an array of the compiler. Errors: DeviceMemoryError, also with all that is not in use given back."""
    kinds = (ti.ndarray, ti.Vector.ndarray, ti.Matrix.ndarray)
    make = functools.partial(kinds[len(element)], *element, compiler_type(dtype), shape)
    try:
        return make()
    except (RuntimeError, MemoryError) as error:
        _require_lack_of_memory(error)
    empty_pool()
    try:
        return make()
    except (RuntimeError, MemoryError) as error:
        _require_lack_of_memory(error)
        size = math.prod(shape) * math.prod(element) * dtype.itemsize
        found = f"an array of {size:,} bytes, beside {counters.live_bytes:,} in use"
        remedy = (
            "Give the rollout a memory budget, compute fewer batch members at once, or use a device with more memory."
        )
        raise DeviceMemoryError(f"memory of {runtime.settings().arch}", "arrays fit", found, remedy) from error


def _require_lack_of_memory(error: RuntimeError | MemoryError) -> None:
    """Raise an error again that does not say so: one by "an illegal memory access" may show in any later call, too."""
    lack = r"out.of.memory|allocation (\(.*\) )?(has )?failed|failed to allocate"
    if isinstance(error, RuntimeError) and not re.search(lack, str(error), re.IGNORECASE):
        raise error


def compiler_type(dtype: np.dtype[Any]) -> Any:
    """The compiler's type of numbers of a dtype."""
    return getattr(ti, f"{dtype.kind}{8 * dtype.itemsize}")
