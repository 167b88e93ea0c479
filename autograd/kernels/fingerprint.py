"""Fingerprints of kernels: a hash of all that the compiler reads of a kernel, its functions, and what they capture.

It holds the bytecode of the kernel and of each function that it reaches, their constants, closures, annotations, and
the values of the global names that they mention. Whatever has no known content has no fingerprint.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
import types
from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

ABROAD = sys.stdlib_module_names | {"numpy", "quadrants", "scipy", "taichi"}
"""Packages of whose content kernels take functions and types alone, which their names tell."""


SETTINGS = "simphys.autograd.kernels.runtime"
"""The module of the settings in force, which are among the circumstances."""


_STARTED = time.time()


class Unfit(Exception):
    """An object whose content is not known."""


def fingerprint(kernel: Callable[..., Any], *circumstances: Any) -> str | None:
    """Return the hash of a kernel compiled in these circumstances; None if it captures something unknown."""
    reader = _Reader()
    try:
        reader.read(sys.version)
        reader.read(circumstances)
        reader.read(kernel)
    except Unfit:
        return None
    return reader.digest.hexdigest()


class _Reader:
    """Reads objects into a hash. An object that was read before is named by its number."""

    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=24)
        self._numbers: dict[int, int] = {}
        self._mentioned: set[tuple[str, str]] = set()
        self._files: set[str] = set()
        self._kept: list[Any] = []  # while it lives, no other object has its id

    def _note(self, *words: object) -> None:
        for word in words:
            text = repr(word).encode()
            self.digest.update(len(text).to_bytes(4, "big") + text)

    def read(self, value: Any, names: Collection[str] = ()) -> None:
        """Read an object; `names` are those that its reader mentions, of which a module may have some."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | types.EllipsisType):
            return self._note(type(value).__name__, value)
        if id(value) in self._numbers and not isinstance(value, types.ModuleType):
            return self._note("again", self._numbers[id(value)])
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)
        self._note(type(value).__qualname__)
        self._read_content(value, names)

    def _read_content(self, value: Any, names: Collection[str]) -> None:
        match value:
            case types.FunctionType():
                self._read_function(value)
            case types.ModuleType():
                self._read_module(value, names)
            case np.ndarray():
                self._note(value.dtype.str, value.shape, value.tobytes())
            case np.generic() | np.dtype():
                self._note(repr(value))
            case type():
                self._read_class(value)
            case tuple() | list():
                self._read_all(value)
            case dict():
                self._read_all(value.items())
            case frozenset() | set():
                self._note(sorted(map(repr, map(_plain, value))))
            case functools.partial():
                self._read_all((value.func, value.args, value.keywords))
            case types.MethodType():
                self._read_all((value.__func__, value.__self__))
            case types.BuiltinFunctionType():
                self._note(value.__module__, value.__qualname__)
            case types.SimpleNamespace():
                self._read_all(vars(value).items())
            case Enum():
                self._note(value.name, value.value)
            case types.GenericAlias() | types.UnionType():
                self._note(repr(value))
            case _:
                self._read_other(value)

    def _read_all(self, values: Any) -> None:
        values = list(values)
        self._note(len(values))
        for value in values:
            self.read(value)

    def _read_function(self, function: types.FunctionType) -> None:
        if _package(function.__module__) in ABROAD or function.__module__ == SETTINGS:
            return self._note(function.__module__, function.__qualname__)
        self._require_unchanged(function.__code__.co_filename)
        names = sorted(self._read_code(function.__code__))
        self._read_all((function.__defaults__, function.__kwdefaults__, function.__annotations__))
        for cell in function.__closure__ or ():
            try:
                self.read(cell.cell_contents, names)
            except ValueError:  # an empty cell
                self._note("empty")
        for name in names:
            if name in function.__globals__:
                self._note(name)
                self.read(function.__globals__[name], names)

    def _require_unchanged(self, file: str) -> None:
        """Raise Unfit if a file was written since it was imported: the compiler reads it, and not the bytecode here."""
        if file not in self._files:
            self._files.add(file)
            try:
                changed = os.stat(file).st_mtime > _STARTED
            except OSError:  # a kernel made of text
                return
            if changed:
                raise Unfit(file)

    def _read_code(self, code: types.CodeType) -> set[str]:
        """Read bytecode with its constants; return the names that it mentions."""
        self._note(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_flags)
        found = set(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                found |= self._read_code(constant)
            else:
                self.read(constant)
        return found

    def _read_module(self, module: types.ModuleType, names: Collection[str]) -> None:
        self._note(module.__name__)
        if _package(module.__name__) not in ABROAD and module.__name__ != SETTINGS:
            for name in sorted(names):
                if hasattr(module, name):
                    self._note(name)
                    if (module.__name__, name) not in self._mentioned:
                        self._mentioned.add((module.__name__, name))
                        self.read(getattr(module, name), names)

    def _read_class(self, value: type) -> None:
        """Read a class: the file that defines it, and its attributes that are plain values."""
        self._note(value.__module__, value.__qualname__)
        if _package(value.__module__) not in ABROAD:
            self._note(_file_hash(value.__module__))
            plain = {name: each for name, each in vars(value).items() if isinstance(each, bool | int | float | str)}
            self._read_all(sorted(plain.items()))

    def _read_other(self, value: Any) -> None:
        if hasattr(value, "__wrapped__"):  # a ti.func, a cached function
            return self.read(value.__wrapped__)
        if is_dataclass(value):
            return self._read_all((each.name, getattr(value, each.name)) for each in fields(value))
        if hasattr(value, "to_string"):  # a type of the compiler
            return self._note(value.to_string())
        if _package(type(value).__module__) in ("quadrants", "taichi") and hasattr(value, "__dict__"):
            return self._read_all(sorted(vars(value).items()))
        raise Unfit(repr(value))


@functools.cache
def _file_hash(module: str) -> str:
    """Hash the file of a module, once. Errors: Unfit for one without a file."""
    file = getattr(sys.modules.get(module), "__file__", None)
    try:
        return hashlib.blake2b(Path(file or "").read_bytes(), digest_size=24).hexdigest()
    except OSError:
        raise Unfit(module) from None


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _plain(value: Any) -> Any:
    """Return a member of a set that is told from others by its text."""
    if isinstance(value, bool | int | float | str | bytes) or value is None:
        return value
    raise Unfit(repr(value))
