"""The arguments of a kernel: checks by the annotations of its parameters, and the way into a launch context."""

from __future__ import annotations

import ctypes
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from . import runtime
from .device import DeviceArray, require_memory
from .memory import Array, Memory

ti = runtime.ti

Put = Callable[[Any], bool]
"""Check a value and put it into a launch context; False for the compiler's own memory, which takes another way."""

_NDARRAY = type(ti.types.ndarray(dtype=ti.f32, ndim=1))
_OWN_MEMORY = ti.lang._ndarray.Ndarray
_REALS = (ti.f32, ti.f64, float)
_INTEGERS = (ti.i32, ti.i64, int)
_QUADRANTS = runtime.compiler == "quadrants"

_REMEDY = "Annotate it with ti.types.ndarray(dtype=..., ndim=...), ti.i32, ti.i64 or a real type."


def parameter(
    kernel: str, name: str, annotation: Any, *, written: bool, record: str | None = None, wide: bool = False
) -> Parameter:
    """A parameter as its annotation describes it, or the field `name` of a record.

    In a `wide` kernel, arrays of vectors begin at a multiple of the vector's size.
    Errors: InputError for a type that fast launches do not take.
    """
    ending = "" if record is None else f" of record {record}"
    source = f"kernel {kernel}, parameter {name}{ending}"
    if isinstance(annotation, _NDARRAY):
        if annotation.dtype in (float, int, bool):  # the compilers take these and fail later
            remedy = "Name one: ti.f32, ti.f64, ti.i32, ti.i64."
            raise InputError(source, "the dtype of an array is one of the compiler's", repr(annotation.dtype), remedy)
        made = ArrayParameter(kernel, name, annotation, written, ending, wide)
        if wide and made.element and not made.has_whole_vectors:
            constraint = "a wide kernel has vectors of 2, 4, 8, ... numbers"
            raise InputError(source, constraint, f"elements of shape {made.element}", "Make the kernel without `wide`.")
        return made
    if annotation in _REALS:
        return RealParameter(kernel, name, ending)
    if annotation in _INTEGERS:
        return IntegerParameter(kernel, name, annotation, ending)
    remedy = _REMEDY
    if ti.template in (annotation, type(annotation)):
        remedy = "Pass arrays as ti.types.ndarray(); for values fixed at compile time, define the kernel in a function."
    elif annotation is inspect.Parameter.empty:
        annotation = None
    elif isinstance(annotation, str):
        remedy = "Remove `from __future__ import annotations`: the compiler reads annotations, not their text."
    shown = annotation.to_string() if type(annotation) is type(ti.f32) else repr(annotation)
    raise InputError(source, "it is an array, an integer or a real number", shown, remedy)


class Parameter(ABC):
    """One parameter: `check` admits a value or raises, `put_into` makes the fast way into one launch context."""

    is_array = False
    written = False

    def __init__(self, kernel: str, name: str, ending: str) -> None:
        """Make it; messages name it with this ending."""
        self.name = name
        self._source = f"kernel {kernel}, argument {name}{ending}"

    @abstractmethod
    def check(self, value: Any) -> Any:
        """The value for the compiler. Errors: InputError for one that it does not take."""

    def stand_in(self, value: Any) -> Any:
        """The value to compile with in place of a checked one: the compiler keeps it in cycles of references."""
        return value

    @abstractmethod
    def put_into(self, context: Any, position: int, like: Any) -> Put:
        """Make the function that puts values into a context; `like` is a checked value.

        Where the annotation leaves dtype or ndim open, other values must have those of `like`.
        """

    def error(self, constraint: str, found: str, remedy: str) -> InputError:
        return InputError(self._source, constraint, found, remedy)


class ArrayParameter(Parameter):
    """An array; `dtype` and `ndim` (NumPy's, with the axes of the element) are None where left open."""

    is_array = True

    def __init__(self, kernel: str, name: str, annotation: Any, written: bool, ending: str, wide: bool) -> None:
        super().__init__(kernel, name, ending)
        element = annotation.dtype
        self._wide = wide
        self.written = written
        self.element: tuple[int, ...] = tuple(element.get_shape()) if hasattr(element, "get_shape") else ()
        self.ndim = None if annotation.ndim is None else annotation.ndim + len(self.element)
        self._type = element.dtype if self.element else element
        self.is_open = self._type is None or self.ndim is None

    @property
    def has_whole_vectors(self) -> bool:
        """True if its elements are vectors that a processor's instructions load and store."""
        return len(self.element) == 1 and self.element[0] & (self.element[0] - 1) == 0

    def _alignment(self, array: Array) -> int:
        """The number of bytes of which its address is a multiple."""
        is_aligned = self._wide and self.element and not runtime.settings().on_gpu
        return self.element[0] * array.dtype.itemsize if is_aligned else 1

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """NumPy's dtype; known after the compiler's start, since ti.math.vec3 follows its precision."""
        return None if self._type is None else np.dtype(ti.lang.util.to_numpy_type(self._type))

    def check(self, value: Any) -> Any:
        array = value.data if isinstance(value, Memory) else value
        if isinstance(array, _OWN_MEMORY):
            if self._wide and self.element and not runtime.settings().on_gpu:
                raise self.error("a wide kernel takes NumPy arrays", repr(array), "Pass one made by `aligned_zeros`.")
            require_memory(array, self._source)
            return array  # the compiler checks it
        if isinstance(array, DeviceArray):
            return self._check_device_array(array)
        if not isinstance(array, np.ndarray):
            raise self.error("it is an array", repr(value), "Pass a NumPy array or a Tensor.")
        if self.written and array is value and not array.flags.writeable:
            remedy = "Pass a Tensor, whose version is raised, or a writable array."
            raise self.error("it writes to this argument", "a read-only array", remedy)
        axes = len(self.element)
        admitted = array.dtype == self.dtype if self._type is not None else _known(array.dtype)
        same_ndim = array.ndim >= axes if self.ndim is None else array.ndim == self.ndim
        if not admitted or not same_ndim or array.shape[array.ndim - axes :] != self.element:
            kind = f"of {self.dtype}" if self._type is not None else "of a type that the compiler has"
            kind = ("an array " if self.ndim is None else f"a {self.ndim}-d array ") + kind
            ending = f" whose last axes are {self.element}" if axes else ""
            remedy = "Convert it first."
            reals = {"f": "f32", "d": "f64"}
            if array.dtype.char in reals and not admitted and self.dtype is not None and self.dtype.char in reals:
                precision = reals[array.dtype.char]
                remedy = f"Convert it first, or compute in its precision: runtime.init(precision={precision!r})."
            raise self.error(f"it is {kind}{ending}", f"{array.dtype} of shape {array.shape}", remedy)
        if not array.flags.c_contiguous:
            raise self.error("arrays are C-contiguous", f"strides {array.strides}", "Use np.ascontiguousarray.")
        beyond = address_of(array) % self._alignment(array)
        if beyond and array.size:
            constraint = f"its address is a multiple of {self._alignment(array)} bytes"
            raise self.error(constraint, f"one that is {beyond} bytes beyond", "Allocate it by `aligned_zeros`.")
        return array

    def _check_device_array(self, array: DeviceArray) -> DeviceArray:
        require_memory(array, self._source)
        dtype = self.dtype or array.dtype
        if (array.dtype, array.ndim, array.element) != (dtype, self.ndim or array.ndim, self.element):
            kind = "an array" if self.ndim is None else f"a {self.ndim - len(self.element)}-d array"
            ending = f" with elements of shape {self.element}" if self.element else ""
            raise self.error(f"it is {kind} of {dtype}{ending}", repr(array), "Make it with these.")
        return array

    def stand_in(self, value: Any) -> Any:
        """A small array of that dtype and as many axes, where `value` lies."""
        outer = (1,) * (value.ndim - len(self.element))
        if isinstance(value, DeviceArray):
            return DeviceArray(value.dtype, outer, self.element).own
        return np.empty(outer + self.element, value.dtype)

    def on_device(self, array: Array) -> DeviceArray:
        """An array of the device with the values of a checked one."""
        copy = DeviceArray(array.dtype, array.shape[: array.ndim - len(self.element)], self.element)
        copy.write(array)
        return copy

    def put_into(self, context: Any, position: int, like: Any) -> Put:
        if isinstance(like, DeviceArray):
            return self._put_device_arrays(context, position, like)
        index = _index(position)
        put_array = context.set_arg_external_array_with_shape
        dtype, ndim, element, written = like.dtype, like.ndim, self.element, self.written
        outer, alignment = ndim - len(element), self._alignment(like)

        def put(value: Any) -> bool:
            array = value.data if isinstance(value, Memory) else value
            flags = array.flags if type(array) is np.ndarray else None
            if (
                flags is None
                or array.dtype != dtype
                or array.ndim != ndim
                or not flags.c_contiguous
                or (written and array is value and not flags.writeable)
            ):
                array = self.check(value)  # raises, but for a subclass of arrays and for the compiler's own
                if not isinstance(array, np.ndarray):
                    return False
            shape = array.shape
            if element:
                if shape[outer:] != element:
                    self.check(value)
                shape = shape[:outer]
            address = address_of(array)
            if address % alignment:
                self.check(value)
            put_array(index, address, array.nbytes, shape, 0)
            return True

        return put

    def _put_device_arrays(self, context: Any, position: int, like: DeviceArray) -> Put:
        index, put_array = _index(position), context.set_arg_ndarray

        def put(value: Any) -> bool:
            if not isinstance(value, DeviceArray):
                return False
            own = self._check_device_array(value).own
            put_array(index, own.arr)
            return True

        return put


class RealParameter(Parameter):
    """A real number."""

    def check(self, value: Any) -> float:
        if not isinstance(value, float | int | np.floating | np.integer):
            raise self.error("it is a number", repr(value), "Pass a float.")
        return float(value)

    def put_into(self, context: Any, position: int, like: Any) -> Put:
        index, put_float = _index(position), context.set_arg_float

        def put(value: Any) -> bool:
            put_float(index, value if type(value) is float else self.check(value))
            return True

        return put


class IntegerParameter(Parameter):
    """An integer of 32 or 64 bits."""

    def __init__(self, kernel: str, name: str, annotation: Any, ending: str) -> None:
        super().__init__(kernel, name, ending)
        limits = np.iinfo(np.int64 if annotation == ti.i64 else np.int32)
        self.lowest, self.highest = int(limits.min), int(limits.max)

    def check(self, value: Any) -> int:
        if not isinstance(value, int | np.integer) or not self.lowest <= value <= self.highest:
            constraint = f"it is an integer within {(self.lowest, self.highest)}"
            raise self.error(constraint, repr(value), "Pass an int in this range.")
        return int(value)

    def put_into(self, context: Any, position: int, like: Any) -> Put:
        index, put_int = _index(position), context.set_arg_int
        lowest, highest = self.lowest, self.highest

        def put(value: Any) -> bool:
            put_int(index, value if type(value) is int and lowest <= value <= highest else self.check(value))
            return True

        return put


def _index(position: int) -> Any:
    return position if _QUADRANTS else (position,)


def _known(dtype: np.dtype[Any]) -> bool:
    """True if the compiler has this type of numbers."""
    return dtype.isnative and dtype.char in "fdbhilqBHILQ"


_DATA = object.__basicsize__  # where NumPy's C structure holds the address of the elements: behind the object's head
_pointer_at = ctypes.c_void_p.from_address


def address_of(array: Array) -> int:
    """The address of the elements, read from NumPy's C structure: 1 us quicker than `array.ctypes.data`."""
    return _pointer_at(id(array) + _DATA).value or 0


def as_writable(array: Array) -> Array:
    """The memory of a contiguous array, such as that of a Tensor, whose version the writer raises."""
    memory: Any = (ctypes.c_char * array.nbytes).from_address(address_of(array))
    return np.frombuffer(memory, array.dtype).reshape(array.shape)


def _address_by_attribute(array: Array) -> int:
    return int(array.ctypes.data)


if address_of(_probe := np.zeros(1)) != _address_by_attribute(_probe):
    address_of = _address_by_attribute
