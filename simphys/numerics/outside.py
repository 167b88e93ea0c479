"""Names that a function takes from outside itself, with what they stood for when it was first used.

A step that was read as a program does not run again, and a compiled element function keeps the numbers that it was
compiled with. If a
global number, or a sub-step, got another value later, some modes would take the new one, and others the old one.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError

LIBRARIES = sys.stdlib_module_names | {"numpy", "quadrants", "scipy", "simphys", "taichi"}
"""Packages whose names stand for the same at any time."""
MOST = 1000
"""Largest number of entries of a list, a table or an array whose content is compared."""
MISSING = object()
_PLAIN = bool | int | float | complex | str | bytes | None | np.generic

Place = tuple[dict[str, Any] | CellType, str]
"""A name in a namespace, or a variable of a function around."""


class Outside:
    """Names that functions, and those that they call by name, take from outside, with what these stand for now."""

    def __init__(self, *functions: Callable[..., Any], name: str = "") -> None:
        self._name, self._code = name, getattr(_plain_function(functions[0]), "__code__", None)
        self._seen = [(place, _keep(value)) for place, value in _find_names(functions)]

    @property
    def is_same(self) -> bool:
        """True if all names stand for what they stood for."""
        return self.find_change() is None

    def require_same(self) -> None:
        """Raise InputError if a name that a compiled function captures stands for something else.

        Of what is compiled, one part would have the new value, and what was compiled before has the old one.
        """
        if changed := self.find_change():
            captured, value, before = changed
            constraint = f"what a compiled function captures, such as {captured}, stays as it was at its first use"
            remedy = f"Pass {captured} to the sub-step, as a constant, or define functions and sub-step again."
            place = f"{self._code.co_filename}:{self._code.co_firstlineno}, " if self._code else ""
            raise InputError(f"{place}{self._name}", constraint, f"{captured} = {value!r}, before {before!r}", remedy)

    def find_change(self) -> tuple[str, Any, Any] | None:
        """Return the first name that stands for something else now: the name, that, and what it stood for."""
        for place, kept in self._seen:
            value = _look_up(place)
            if value is not kept and not _equal(value, kept):
                return place[1], value, kept
        return None


def is_of_user(function: Any) -> bool:
    """True for a function of no module of this package, whose names stand for the same at any time."""
    return _package(_plain_function(function)) != "simphys"


def _find_names(functions: Iterable[Any]) -> Iterator[tuple[Place, Any]]:
    """List the names that functions take from outside, each with its value, and those of functions behind them."""
    waiting, known = [_plain_function(function) for function in functions], set()
    while waiting:
        found = waiting.pop()
        if not isinstance(found, FunctionType) or found in known:
            continue
        known.add(found)
        names = names_of(found.__code__)
        cells = zip(found.__code__.co_freevars, found.__closure__ or (), strict=True)
        places: list[Place] = [(cell, name) for name, cell in cells]
        places += [(found.__globals__, name) for name in names if name in found.__globals__]
        seen: set[int] = set()
        while places:
            place = places.pop()
            value = _look_up(place)
            yield place, value
            if _has_parts(value) and id(value) not in seen:
                seen.add(id(value))
                places += [(vars(value), name) for name in names if name in vars(value)]
            called = _plain_function(value)
            if isinstance(called, FunctionType) and _package(called) not in LIBRARIES:
                waiting.append(called)


def names_of(code: CodeType) -> list[str]:
    """List the names that code takes from outside, that of functions within it included."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in names_of(part)]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _plain_function(value: Any) -> Any:
    """Return the function of Python behind a partial or a decorated one."""
    while isinstance(value, functools.partial):
        value = value.func
    return inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value


def _package(value: Any) -> str:
    return str(getattr(value, "__module__", None) or "").partition(".")[0]


def _has_parts(value: Any) -> bool:
    """True for a module, or an object of a user's class, whose attributes may change."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] not in LIBRARIES
    of_user = _package(type(value)) not in LIBRARIES and not isinstance(value, type | FunctionType)
    return isinstance(value, SimpleNamespace) or (of_user and hasattr(value, "__dict__"))


def _look_up(place: Place) -> Any:
    owner, name = place
    if isinstance(owner, dict):
        return owner.get(name, MISSING)
    try:
        return owner.cell_contents
    except ValueError:  # not assigned yet
        return MISSING


def _keep(value: Any) -> Any:
    """Copy what can change in place, if it is small; keep anything else, which is known by its identity."""
    if isinstance(value, np.ndarray):
        return value.copy() if value.size <= MOST and value.dtype != object else value
    return copy.deepcopy(value) if isinstance(value, list | dict | set) and _is_plain(value) else value


def _is_plain(value: Any) -> bool:
    """True for numbers and text, and small tables of these."""
    if isinstance(value, list | tuple | set | dict):
        parts = value.values() if isinstance(value, dict) else value
        return len(value) <= MOST and all([_is_plain(part) for part in parts])
    return isinstance(value, _PLAIN)


def _equal(value: Any, kept: Any) -> bool:
    if value is kept:
        return True
    if type(value) is not type(kept):
        return False
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype == kept.dtype and value.shape == kept.shape and value.tobytes() == kept.tobytes()
    return _is_plain(value) and _is_plain(kept) and bool(value == kept)
