"""Functions of the compiler as functions of Python: for what their source alone does not tell, such as shapes."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from simphys.autograd.kernels.runtime import ti

from .outside import names_of


def in_python(function: Any) -> Callable[..., Any]:
    """Copy a function, so that those of the compiler that it calls by name run in Python, too.

    A `while` runs once, as it may not end in Python: it changes no shape, which a variable keeps in a kernel. Functions
    without a source are left to the compiler, which raises an exception outside of a kernel.
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
    space, code = dict(plain.__globals__), _code_that_ends(plain)
    given = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
    cells = {name: CellType() for name in code.co_freevars}
    made = known[plain] = FunctionType(code, space, plain.__name__, plain.__defaults__, tuple(cells.values()))
    for name in names_of(code):
        if name in space:
            space[name] = _replace(space[name], known)
    for name, cell in cells.items():
        cell.cell_contents = _replace(given[name].cell_contents, known)
    return made


def _replace(value: Any, known: dict[FunctionType, FunctionType]) -> Any:
    """Return what stands for a value in Python."""
    if value is ti:
        return _Compiler()
    plain = inspect.unwrap(value) if hasattr(value, "__wrapped__") else value
    is_function = plain is not value and isinstance(plain, FunctionType)
    return _copy(plain, known) if is_function and _read(plain) is not None else value


@functools.cache
def _read(plain: FunctionType) -> ast.Module | None:
    """Parse the source of a function; None for one without."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(plain)))
    except (OSError, SyntaxError):
        return None


def _code_that_ends(plain: FunctionType) -> CodeType:
    """Return the code of a function, with one round for each `while`."""
    tree = _read(plain)
    if tree is None or not any([isinstance(node, ast.While) for node in ast.walk(tree)]):
        return plain.__code__
    definition = _Once().visit(copy.deepcopy(tree.body[0]))
    definition.decorator_list = []
    around = ast.parse(f"def around({', '.join(plain.__code__.co_freevars)}):\n    pass")
    around.body[0].body = [definition]  # type: ignore[attr-defined]
    code = compile(ast.fix_missing_locations(around), plain.__code__.co_filename, "exec")
    return _code_within(_code_within(code))


def _code_within(code: CodeType) -> CodeType:
    """Return the code of the function that a code defines."""
    return next(constant for constant in code.co_consts if isinstance(constant, CodeType))


class _Once(ast.NodeTransformer):
    """Writes each `while` as a loop of one round."""

    def visit_While(self, node: ast.While) -> ast.For:
        self.generic_visit(node)
        once = ast.parse("for _ in (0,):\n    pass").body[0]
        assert isinstance(once, ast.For)
        once.body, once.orelse = node.body, node.orelse
        return once
