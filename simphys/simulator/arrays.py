"""Types of the arrays that models and engines exchange, and names of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
"""Arrays by the name of the field that they belong to."""
Shape = tuple[int, ...]
Rows = slice | Sequence[int] | Array
"""Rows of an array along time: consecutive ones as a slice, or their numbers."""


def locked(array: Array) -> Array:
    """Lock an array that others read, such as topology, which has no version to show a write."""
    array.setflags(write=False)
    return array


def element_name(name: str, element: tuple[int, ...]) -> str:
    """Format the name of an element: 'velocity[0, 1]'."""
    return f"{name}[{', '.join(map(str, element))}]" if element else name
