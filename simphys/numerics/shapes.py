"""Shapes of the results of an element function, found by calling it in Python with some numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from simphys.autograd.kernels.runtime import ti

from .in_python import in_python

Shape = tuple[int, ...]


def find_shapes(func: Any, arguments: Sequence[Shape]) -> tuple[Shape, ...] | None:
    """Return the shape of each result for arguments of these shapes; None where Python cannot compute it.

    Functions that only the compiler understands are among these.
    """
    random = np.random.default_rng(0)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # the numbers mean nothing
            found = in_python(func)(*[_make(random.uniform(0.5, 1.5, shape)) for shape in arguments])
    except Exception:  # whatever the compiler's objects raise outside of a kernel; it refuses operands itself
        return None
    shapes = [_shape_of(value) for value in (found if isinstance(found, tuple) else (found,))]
    return None if None in shapes else tuple([shape for shape in shapes if shape is not None])


def _make(values: np.ndarray) -> Any:
    if not values.shape:
        return float(values)
    return ti.Vector(values.tolist()) if values.ndim == 1 else ti.Matrix(values.tolist())


def _shape_of(value: Any) -> Shape | None:
    if isinstance(value, float | int | np.floating | np.integer):
        return ()
    if isinstance(value, ti.Matrix):
        return (value.n,) if value.ndim == 1 else (value.n, value.m)
    return None
