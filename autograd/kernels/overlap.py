"""Arguments of one launch that share memory: a device that copies each of them would lose what the others write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .arguments import ArrayParameter, Parameter, address_of


def overlapping(arguments: Sequence[Parameter], values: Sequence[Any]) -> list[list[int]]:
    """Find the arrays of the host that share memory, at least one of them written: lists of their positions."""
    spans = [
        (address_of(value), position)
        for position, value in enumerate(values)
        if isinstance(value, np.ndarray) and value.nbytes
    ]
    found: list[list[int]] = []
    end = -1
    for start, position in sorted(spans):
        if start < end:
            found[-1].append(position)
        else:
            found.append([position])
        end = max(end, start + values[position].nbytes)
    return [sorted(shared) for shared in found if len(shared) > 1 and any(is_written(arguments[i]) for i in shared)]


def are_one(shared: Sequence[int], arguments: Sequence[Parameter], values: Sequence[Any]) -> bool:
    """True if the arrays at these positions are the same one, element by element."""
    elements = {getattr(arguments[i], "element", ()) for i in shared}
    return len(elements) == len({(address_of(values[i]), values[i].shape, values[i].dtype) for i in shared}) == 1


def can_be_parts(shared: Sequence[int], arguments: Sequence[Parameter], values: Sequence[Any]) -> bool:
    """True if the arrays at these positions can be parts of one flat array."""
    first = min(address_of(values[i]) for i in shared)
    size = values[shared[0]].itemsize
    return len({values[i].dtype for i in shared}) == 1 and all(
        is_flat(arguments[i]) and not (address_of(values[i]) - first) % size for i in shared
    )


def is_written(argument: Parameter) -> bool:
    """True for an array that the kernel writes."""
    return isinstance(argument, ArrayParameter) and argument.written


def is_flat(argument: Parameter) -> bool:
    """True for an array with one axis of numbers, whose type the annotation names."""
    return (
        isinstance(argument, ArrayParameter)
        and argument.ndim == 1
        and not argument.element
        and argument.dtype is not None
    )


def refusal(
    kernel: str, shared: Sequence[int], arguments: Sequence[Parameter], values: Sequence[Any], why: str
) -> InputError:
    """The error for arrays that share memory and cannot be one on the device; it names two of them."""
    written = next(i for i in shared if is_written(arguments[i]))
    other = next(i for i in shared if i != written and np.may_share_memory(values[i], values[written]))
    one, two = (arguments[i].name for i in sorted((written, other)))
    kinds = " and ".join(f"{values[i].dtype} of shape {values[i].shape}" for i in sorted((written, other)))
    return InputError(
        f"kernel {kernel}, arguments {one} and {two}",
        f"on a GPU, arrays that share memory, of which one is written, {why}",
        f"{kinds}; the kernel writes {arguments[written].name}",
        "Pass a copy of one of them, or flat arrays of one type, indexed without their `.shape`.",
    )
