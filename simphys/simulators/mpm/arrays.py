"""Conversion of arrays to the form that the kernels of sub-steps take."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.simulator import Array


def flatten(values: Any) -> Array:
    """Flatten an array or Tensor in memory order, copying only if it is not contiguous."""
    array = values.data if isinstance(values, Tensor) else values
    return np.ascontiguousarray(array).reshape(-1)


def flatten_nonempty(values: Any) -> Array:
    """Flatten an array, or replace an empty one by a single zero, as kernels take no empty arrays."""
    array = flatten(values)
    return array if array.size else np.zeros(1, array.dtype)


def empty_like(*values: Any) -> list[Array]:
    """Allocate an array of the same shape and precision for each value."""
    return [np.empty(value.shape, value.dtype) for value in values]
