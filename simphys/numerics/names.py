"""Names in the source of a function: what they stand for, and those that stand for nothing."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

LOCAL = object()
"""Object that the name of a local variable stands for."""


class Undefined(NamedTuple):
    """A name, or an attribute of a module, that does not exist."""

    text: str
    line: int
    """Line of the source text, beginning with 0 at its first one."""


def captured(function: Any) -> dict[str, Any]:
    """Return what the names of a function stand for, but for its parameters and variables, as far as it is known."""
    found = {**vars(builtins), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        found.pop(name, None)
        with contextlib.suppress(ValueError):  # assigned later
            found[name] = cell.cell_contents
    return found


def local_names(definition: ast.FunctionDef) -> set[str]:
    """Collect the parameters and the variables of a function."""
    assigned = [n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return {*assigned, *[node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)]}


def resolve(value: ast.expr, names: Mapping[str, Any]) -> Any:
    """Find the object that a name, or an attribute of one, stands for; None if it is not known."""
    if isinstance(value, ast.Name):
        found = names.get(value.id)
        return None if found is LOCAL else found
    if isinstance(value, ast.Attribute):
        return getattr(resolve(value.value, names), value.attr, None)
    return None


def find_undefined(function: Any, definition: ast.FunctionDef) -> Undefined | None:
    """Find a name in the body of a function that stands for nothing; None if there is no such name."""
    names = captured(function)
    known = {*names, *function.__code__.co_freevars, *local_names(definition)}
    for node in _nodes(definition):
        if isinstance(node, ast.Name) and node.id not in known:
            return Undefined(node.id, node.lineno - 1)
        if isinstance(node, ast.Attribute):
            owner = resolve(node.value, {**names, **dict.fromkeys(local_names(definition), LOCAL)})
            if inspect.ismodule(owner) and not hasattr(owner, node.attr):
                return Undefined(ast.unparse(node), node.lineno - 1)
    return None


def list_called(function: Any, definition: ast.FunctionDef) -> list[Any]:
    """List the objects that a function calls by name, as far as they are known."""
    names = {**captured(function), **dict.fromkeys(local_names(definition), LOCAL)}
    calls = [node for node in _nodes(definition) if isinstance(node, ast.Call)]
    return [found for call in calls if (found := resolve(call.func, names)) is not None]


def _nodes(definition: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in definition.body:
        yield from ast.walk(statement)
