"""Arrays as the kernels of sub-steps take them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.simulator import Array


def flat(values: Any) -> Array:
    """The numbers of an array or Tensor in memory order, not copied unless they are scattered."""
    array = values.data if isinstance(values, Tensor) else values
    return np.ascontiguousarray(array).reshape(-1)


def flat_or_one(values: Any) -> Array:
    """The same; one zero for an empty array, which kernels do not take."""
    array = flat(values)
    return array if array.size else np.zeros(1, array.dtype)


def given(tangents: Iterable[Any], saved: Iterable[Any]) -> list[Array]:
    """Tangents of what was saved, zero where there is none."""
    return [np.zeros(s.shape, s.dtype) if d is None else d for d, s in zip(tangents, saved, strict=True)]


def empty_like(*values: Any) -> list[Array]:
    """Memory for results of the shape and precision of each."""
    return [np.empty(value.shape, value.dtype) for value in values]
