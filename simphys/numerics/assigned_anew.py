"""Vectors that are assigned anew after a branch: some kernels may lose the new value, see runtime.may_lose_vectors."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any, TypeGuard

from simphys.autograd import runtime
from simphys.autograd.errors import InputError

from .names import list_called
from .outside import is_of_user


def require_kept_vectors(function: Any) -> None:
    """Raise InputError if a kernel may lose a vector that a user's function, or one that it calls, assigns anew."""
    settings = runtime.settings()
    if not runtime.may_lose_vectors(settings.arch):
        return
    for plain, name in _find_all(inspect.unwrap(function)):
        source = f"{plain.__code__.co_filename}:{plain.__code__.co_firstlineno}, {plain.__name__}"
        constraint = f"{name} is not assigned as a whole after a branch, as its entries were read before"
        found = f"an assignment that a kernel by {runtime.compiler} on {settings.arch} may lose"
        raise InputError(source, constraint, found, "Give the new value another name.")


@functools.lru_cache(maxsize=1024)
def _find_all(function: FunctionType) -> list[tuple[FunctionType, str]]:
    """List the functions of users behind a function that assign a vector anew after a branch, and the vector."""
    found = [(plain, find_assigned_anew(definition)) for plain, definition in _walk(function)]
    return [(plain, name) for plain, name in found if name is not None]


def _walk(function: FunctionType) -> Iterator[tuple[FunctionType, ast.FunctionDef]]:
    """Go through a function and those that it calls by name, but for those of packages and without a source."""
    waiting, known = [function], set[FunctionType]()
    while waiting:
        plain = waiting.pop()
        if plain in known or not is_of_user(plain):
            continue
        known.add(plain)
        try:
            definition = ast.parse(textwrap.dedent(inspect.getsource(plain))).body[0]
        except (OSError, SyntaxError):
            continue
        if isinstance(definition, ast.FunctionDef):
            yield plain, definition
            called = [inspect.unwrap(each) for each in list_called(plain, definition) if hasattr(each, "__wrapped__")]
            waiting += [each for each in called if isinstance(each, FunctionType)]


def find_assigned_anew(definition: ast.FunctionDef) -> str | None:
    """Name a variable that is assigned as a whole after a branch, and whose entries are read before the branch ends.

    Kernels by Taichi, and those for Vulkan and Metal, may keep the old value of such a vector, without a word. None if
    there is no such variable.
    """
    nodes = [node for statement in definition.body for node in ast.walk(statement)]
    ends = [node.end_lineno or 0 for node in nodes if isinstance(node, ast.If | ast.IfExp)]
    for node in [each for each in nodes if isinstance(each, ast.Assign | ast.AugAssign)]:
        for name in _assigned(node):
            read = min([part.lineno for part in nodes if _reads_entry(part, name)], default=0)
            if read and any([read <= end < node.lineno for end in ends]):
                return name
    return None


def _assigned(node: ast.Assign | ast.AugAssign) -> list[str]:
    """Names that a statement assigns as a whole."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _reads_entry(node: ast.AST, name: str) -> TypeGuard[ast.Subscript]:
    match node:
        case ast.Subscript(value=ast.Name(id=read), ctx=ast.Load()):
            return read == name
    return False
