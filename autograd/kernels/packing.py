"""Launches with more arrays than a driver binds: arrays of the host go to the device as parts of one.

Drivers of Vulkan may bind 32 arrays; a kernel with more reads zeros. Here flat arrays of the host become one array of
the device for each type, and the kernel gets views of it (flattened.py). Written ones are copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from . import runtime
from .arguments import ArrayParameter, Parameter, as_writable
from .device import DeviceArray
from .device_variant import as_given

ARCHS = ("vulkan", "metal")
"""Archs whose drivers bind few arrays."""
BINDINGS = 30
"""Number of arrays that a kernel binds there, besides the compiler's own."""


def needs_packing(arguments: Sequence[Parameter]) -> bool:
    """True if a kernel has more arrays than are bound in the arch in force."""
    return runtime.settings().arch in ARCHS and sum(argument.is_array for argument in arguments) > BINDINGS


def launch(
    name: str, arguments: Sequence[Parameter], values: Sequence[Any], kernel_of: Callable[[dict[str, int]], Any]
) -> None:
    """Launch with checked values; `kernel_of` makes the kernel whose parameters with these names are in these groups.

    Errors: InputError if too many arrays of the device, or of vectors, remain to be bound.
    """
    groups: dict[np.dtype[Any], dict[int, ArrayParameter]] = {}
    for position, (argument, value) in enumerate(zip(arguments, values, strict=True)):
        if isinstance(argument, ArrayParameter) and isinstance(value, np.ndarray) and _is_flat(argument):
            groups.setdefault(value.dtype, {})[position] = argument
    packed = {position: number for number, group in enumerate(groups.values()) for position in group}
    bound = len(groups) + sum(a.is_array for i, a in enumerate(arguments) if i not in packed)
    if bound > BINDINGS:
        remedy = "Keep fewer arrays on the device, or make them parts of one (views)."
        raise InputError(f"kernel {name}", f"a device binds {BINDINGS} arrays", f"{bound}", remedy)
    own: list[Any] = []
    starts: dict[int, int] = {}
    for group in groups.values():
        array, where = _pack(group, values)
        own.append(array)
        starts |= where
    given = [starts.get(position, value) for position, value in enumerate(values)]
    launched = [as_given(value, on_gpu=True) for value in (*own, *given)]
    kernel_of({arguments[position].name: number for position, number in packed.items()})(*launched)
    for array, group in zip(own, groups.values(), strict=True):
        written = [position for position, argument in group.items() if argument.written]
        after = array.read() if written else np.empty(0)
        for position in written:
            host = as_writable(values[position])
            host[...] = after[starts[position] : starts[position] + host.size]


def _is_flat(argument: ArrayParameter) -> bool:
    """True for an array with one axis of numbers, whose type the annotation names."""
    return argument.ndim == 1 and not argument.element and argument.dtype is not None


def _pack(group: dict[int, ArrayParameter], values: Sequence[Any]) -> tuple[Any, dict[int, int]]:
    """An array of the device with the values at these positions, and where each begins."""
    starts: dict[int, int] = {}
    places: dict[tuple[int, int], int] = {}
    parts, size = [], 0
    for position in group:
        array = values[position]
        key = array.ctypes.data, array.size  # of the same memory there is one copy
        if key not in places:
            places[key] = size
            parts.append(array)
            size += array.size
        starts[position] = places[key]
    packed = DeviceArray(values[next(iter(group))].dtype, (size,))
    if size:
        packed.write(np.concatenate(parts))
    return packed, starts
