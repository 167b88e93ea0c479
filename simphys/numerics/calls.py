"""Calls in the source of a function: whose they are, and their arguments in order."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from simphys.autograd.kernels.runtime import ti

from .names import LOCAL, resolve

OF_PYTHON = (abs, max, min, pow, round)
"""Functions of Python that the compiler takes for its own."""


def name_built_in(called: Any) -> str | None:
    """Name of a function of the compiler that a rule may know; None for other functions."""
    name = getattr(called, "__name__", "")
    is_built_in = called in OF_PYTHON or (hasattr(ti, name) and getattr(ti, name) is called)
    return name if is_built_in else None


def by_position(call: ast.Call, called: Any) -> ast.Call:
    """A call whose arguments by keyword are in their places, if they can be."""
    plain, given = inspect.unwrap(called), {keyword.arg: keyword.value for keyword in call.keywords}
    if not isinstance(plain, FunctionType):
        return call
    names = list(inspect.signature(plain).parameters)[len(call.args) :]
    if names[: len(given)] != [name for name in names if name in given]:
        return call
    placed = ast.Call(call.func, [*call.args, *[given[name] for name in names[: len(given)]]], [])
    return ast.copy_location(placed, call)


def is_outside(owner: ast.expr, known: Mapping[str, Any]) -> bool:
    """True for a name, or an attribute of one, that is no variable or constant of the function: a module, say."""
    if isinstance(resolve(owner, known), ti.Matrix):
        return False
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and known.get(owner.id, LOCAL) is not LOCAL
