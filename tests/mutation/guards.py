"""Guards against what would be silently wrong, each broken in turn: the code of a function is exchanged in place."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from simphys.autograd.kernels.launch import Kernel

ROOT = Path(__file__).resolve().parents[2]


class Guard(NamedTuple):
    """A place in a function that keeps something from being silently wrong, and a test that must fail without it."""

    what: str
    function: Any
    """A function, a method or a property; wrappers of decorators are looked through."""
    before: str
    """Text of the source, which is there once."""
    after: str
    notices: Callable[..., None]
    """The test."""
    arguments: tuple[Any, ...] = ()
    """Those of the test, but for `tmp_path`, `file` and `monkeypatch`."""
    also: tuple[Any, str, str] | None = None
    """A second place, of another function, that keeps the same: both are broken."""
    elsewhere: bool = False
    """True if the test runs the place in another process: its argument `broken` is a program that breaks it there."""
    writes_beyond: bool = False
    """True if kernels would write beyond an array once the guard is broken: none is launched then."""

    def program(self) -> str:
        """Program that breaks the place in the process that runs it."""
        function, exchange = _innermost(self.function), f"{self.before!r}, {self.after!r}"
        return (
            f"\nimport sys\nsys.path.append({str(ROOT)!r})\nfrom tests.mutation.guards import exchanged\n"
            f"from {function.__module__} import {function.__name__}\n"
            f"breaking = exchanged({function.__name__}, {exchange})\nbreaking.__enter__()\n"
        )


def run_test(guard: Guard, folder: Path) -> None:
    """Run the test of a guard in a folder."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        fixtures = {"tmp_path": folder, "file": folder / "data.txt", "monkeypatch": monkeypatch}
        names = [name for name in inspect.signature(guard.notices).parameters if name != "broken"]
        given = zip([name for name in names if name not in fixtures], guard.arguments, strict=True)
        guard.notices(**dict(given), **{name: place for name, place in fixtures.items() if name in names})


def is_noticed(guard: Guard, folder: Path) -> bool:
    """True if the test of a guard fails when the guard is broken."""
    if guard.elsewhere:
        try:
            guard.notices(folder, *guard.arguments, broken=guard.program())
        except Exception:
            return True
        return False
    second = exchanged(*guard.also) if guard.also else nullcontext()
    unlaunched = patch.object(Kernel, "__call__") if guard.writes_beyond else nullcontext()
    with exchanged(guard.function, guard.before, guard.after), second, unlaunched:
        try:
            run_test(guard, folder)
        except (Exception, pytest.fail.Exception):
            return True
    return False


@contextmanager
def exchanged(function: Any, before: str, after: str) -> Iterator[None]:
    """Let a function run other code, wherever it is called from, while the context lasts."""
    plain = _innermost(function)
    original = plain.__code__
    plain.__code__ = _changed_code(plain, before, after)
    try:
        yield
    finally:
        plain.__code__ = original


def _innermost(function: Any) -> FunctionType:
    function = function.fget if isinstance(function, property) else function
    found = inspect.unwrap(getattr(function, "__func__", function))
    assert isinstance(found, FunctionType)
    return found


def _changed_code(function: FunctionType, before: str, after: str) -> CodeType:
    """The code of a function with a part of its source replaced; it is compiled inside one that has its closure."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(before) == 1, f"{function.__qualname__} has {before!r} {source.count(before)} times"
    tree = ast.parse(f"def outer({', '.join(function.__code__.co_freevars)}):\n  pass")
    outer, (definition,) = tree.body[0], ast.parse(source.replace(before, after)).body
    assert isinstance(outer, ast.FunctionDef) and isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    outer.body = [definition]
    code = compile(tree, inspect.getsourcefile(function) or "<changed>", "exec", dont_inherit=True)
    for name in ("outer", function.__name__):
        (code,) = [each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name]
    return code
