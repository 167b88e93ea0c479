"""Functions of the compiler as functions of Python: for what their source alone does not tell, such as shapes."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from simphys.autograd.kernels.runtime import ti


def in_python(function: Any) -> Callable[..., Any]:
    """Copy a function, so that those of the compiler that it calls by name run in Python, too.

    Functions with loops that may not end are left to the compiler, which raises an exception outside of a kernel.
    """
    return _copy(inspect.unwrap(function), {})


class _Compiler:
    """The compiler's module, but for what runs in kernels alone and has the shape of its argument."""

    def __getattr__(self, name: str) -> Any:
        return getattr(ti, name)

    @staticmethod
    def cast(value: Any, _: Any) -> Any:
        return value


def _copy(plain: FunctionType, known: dict[FunctionType, FunctionType]) -> FunctionType:
    if plain in known:
        return known[plain]
    space = dict(plain.__globals__)
    cells = [CellType() for _ in plain.__closure__ or ()]
    made = known[plain] = FunctionType(plain.__code__, space, plain.__name__, plain.__defaults__, tuple(cells))
    for name in plain.__code__.co_names:
        if name in space:
            space[name] = _replace(space[name], known)
    for cell, given in zip(cells, plain.__closure__ or (), strict=True):
        cell.cell_contents = _replace(given.cell_contents, known)
    return made


def _replace(value: Any, known: dict[FunctionType, FunctionType]) -> Any:
    """Return what stands for a value in Python."""
    if value is ti:
        return _Compiler()
    plain = inspect.unwrap(value) if hasattr(value, "__wrapped__") else value
    is_function = plain is not value and isinstance(plain, FunctionType)
    return _copy(plain, known) if is_function and not _may_not_end(plain) else value


@functools.cache
def _may_not_end(plain: FunctionType) -> bool:
    """True for a function with a `while`, or without a source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
    except (OSError, SyntaxError):
        return True
    return any([isinstance(node, ast.While) for node in ast.walk(tree)])
