"""Launches on a GPU with arrays of the host: these are copied to the device, and what the kernel writes is copied back.

Each array has a copy of its own, with two exceptions. Arrays that share memory share one copy, as else what the kernel
writes by one name would not be seen by the other, and would be lost on the way back. And drivers of Vulkan may bind no
more than 32 arrays (a kernel with more reads zeros): there, many flat arrays become parts of one for each type. Parts
are views inside the kernel (flattened.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from . import runtime
from .arguments import ArrayParameter, Parameter, address_of, as_writable
from .device import DeviceArray
from .device_variant import as_given
from .overlap import are_one, can_be_parts, is_flat, is_written, overlapping, refusal

Array = np.ndarray[Any, Any]

ARCHS = ("vulkan", "metal")
"""Archs whose drivers bind few arrays."""
BINDINGS = 30
"""Number of arrays that a kernel binds there, besides the compiler's own."""

CompilationError: type[Exception] = getattr(runtime.ti, f"{runtime.compiler.capitalize()}CompilationError")


class Packed(NamedTuple):
    """One array of the device with a part for each of several arguments."""

    own: DeviceArray
    starts: dict[int, int]
    """Index at which the part of each position begins."""


def needs_packing(arguments: Sequence[Parameter]) -> bool:
    """True if a kernel has more arrays than are bound in the arch in force."""
    return runtime.settings().arch in ARCHS and sum(argument.is_array for argument in arguments) > BINDINGS


def launch(
    name: str, arguments: Sequence[Parameter], values: Sequence[Any], kernel_of: Callable[[dict[str, int]], Any]
) -> None:
    """Launch with checked values; `kernel_of` makes the kernel whose parameters with these names are in these groups.

    Errors: InputError if too many arrays remain to be bound, or for arrays that share memory and cannot be one.
    """
    shared = overlapping(arguments, values)
    packed = [_pack(positions, values) for positions in _groups(name, arguments, values, shared)]
    starts = {position: start for group in packed for position, start in group.starts.items()}
    first = {position: together[0] for together in shared for position in together}  # of those that are one array
    copies: dict[int, DeviceArray] = {}
    given = [starts.get(position, value) for position, value in enumerate(values)]
    for position, argument in enumerate(arguments):
        value = given[position]
        if isinstance(value, np.ndarray) and value.size and (is_written(argument) or position in first):
            owner = first.get(position, position)
            if owner not in copies:  # of the compiler's own copy, what a kernel only writes to is not filled
                copies[owner] = _copy(argument, value)
            given[position] = copies[owner]
    kernel = kernel_of({arguments[i].name: number for number, group in enumerate(packed) for i in group.starts})
    try:
        kernel(*[as_given(value, on_gpu=True) for value in (*[group.own for group in packed], *given)])
    except CompilationError as error:
        together = [each for each in shared if each[0] in starts]
        if not together:
            raise
        why = "are parts of one array there, and with this the kernel does not compile"
        raise refusal(name, together[0], arguments, values, why) from error
    written = [position for position, argument in enumerate(arguments) if is_written(argument)]
    for group in packed:
        _copy_back(group.own.read, {i: group.starts[i] for i in written if i in group.starts}, values)
    for owner, copy in copies.items():
        _copy_back(copy.read, {i: 0 for i in written if first.get(i, i) == owner and i not in starts}, values)


def _groups(
    name: str, arguments: Sequence[Parameter], values: Sequence[Any], shared: list[list[int]]
) -> list[list[int]]:
    """The positions of arrays that become parts of one array each. Errors: InputError, see `launch`."""
    for together in shared:
        if not are_one(together, arguments, values) and not can_be_parts(together, arguments, values):
            raise refusal(name, together, arguments, values, "have one axis of numbers of one type, or are the same")
    if not needs_packing(arguments):
        return [together for together in shared if not are_one(together, arguments, values)]
    by_type: dict[np.dtype[Any], list[int]] = {}
    for position, (argument, value) in enumerate(zip(arguments, values, strict=True)):
        if isinstance(value, np.ndarray) and is_flat(argument):
            by_type.setdefault(value.dtype, []).append(position)
    rest = sum(a.is_array for a in arguments) - sum(map(len, by_type.values()))
    if len(by_type) + rest > BINDINGS:
        remedy = "Keep fewer arrays on the device, or make them parts of one (views)."
        found = f"{len(by_type) + rest}"
        raise InputError(f"kernel {name}", f"a device binds {BINDINGS} arrays", found, remedy)
    return list(by_type.values())


def _pack(positions: Iterable[int], values: Sequence[Any]) -> Packed:
    """An array of the device with the values at these positions; what shares memory on the host shares it there."""
    arrays = {position: values[position] for position in positions}
    dtype = next(iter(arrays.values())).dtype
    starts: dict[int, int] = {}
    parts: list[Array] = []
    begin, end, size = 0, 0, 0  # addresses of the memory that was taken last, and the numbers taken so far
    for position, array in sorted(arrays.items(), key=lambda item: address_of(item[1])):
        address = address_of(array)
        if not begin <= address < end or (address - begin) % dtype.itemsize:
            begin, end, origin = address, address, size
        starts[position] = origin + (address - begin) // dtype.itemsize
        new = array[min((end - address) // dtype.itemsize, array.size) :]
        parts.append(new)
        end += new.nbytes
        size += new.size
    own = DeviceArray(dtype, (size,))
    if size:
        own.write(np.concatenate(parts))
    return Packed(own, {position: starts[position] for position in arrays})


def _copy(argument: Parameter, value: Array) -> DeviceArray:
    assert isinstance(argument, ArrayParameter), "the value of an array's parameter"
    return argument.on_device(value)


def _copy_back(read: Callable[[], Array], starts: Mapping[int, int], values: Sequence[Any]) -> None:
    """Copy parts of an array of the device to the arrays of the host at these positions."""
    if starts:
        after = read().reshape(-1)
        for position, start in starts.items():
            host = as_writable(values[position])
            host.reshape(-1)[...] = after[start : start + host.size]
