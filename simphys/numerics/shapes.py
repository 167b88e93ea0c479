"""Shapes of the results of an element function, found by calling it in Python with some numbers."""

from __future__ import annotations

import ast
import re
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd.kernels.runtime import ti

from .in_python import in_python

Shape = tuple[int, ...]

_MISFIT = re.compile(
    r"operands could not be broadcast together with shapes|dimension mismatch between|required shapes to be the same"
    r"|[lr]hs for dot is not a vector"
)
"""Messages about operands whose shapes do not fit each other, of NumPy and of the compiler."""
_NUMBER = re.compile(r"'float' object (has no attribute|is not subscriptable)")
"""Messages about a number in the place of a vector."""


class Misfit(NamedTuple):
    """Operands within a function that do not fit each other, in words."""

    text: str


def find_shapes(
    func: Any, definition: ast.FunctionDef, arguments: Sequence[Shape]
) -> tuple[Shape, ...] | Misfit | None:
    """Return the shape of each result for arguments of these shapes; None where Python cannot compute it.

    Functions that only the compiler understands are among these, and those with loops that may not end.
    """
    if any([isinstance(node, ast.While) for node in ast.walk(definition)]):
        return None
    random = np.random.default_rng(0)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # the numbers mean nothing
            found = in_python(func)(*[_make(random.uniform(0.5, 1.5, shape)) for shape in arguments])
    except Exception as error:  # whatever the compiler's objects raise outside of a kernel
        return _find_misfit(error)
    shapes = [_shape_of(value) for value in (found if isinstance(found, tuple) else (found,))]
    return None if None in shapes else tuple([shape for shape in shapes if shape is not None])


def _find_misfit(error: Exception) -> Misfit | None:
    """Tell from an exception that operands do not fit each other; None if it may come from Python alone."""
    text = str(error).strip()
    if _MISFIT.search(text):
        return Misfit(text)
    frame = list(traceback.walk_tb(error.__traceback__))[-1][0]
    is_compiler = frame.f_globals.get("__name__", "").partition(".")[0] == ti.__name__.partition(".")[0]
    return None if is_compiler or not _NUMBER.match(text) else Misfit(text.replace("'float' object", "a number"))


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
