"""Expressions in the sources of kernels: names, fields, tuples and calls, as writes.py reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from .records import RecordType

Place = tuple[str | int, ...]
"""A name, then fields of records by name or number; it stands for all that lies in it."""


EACH = "*"
"""Stands for all parts of a tuple or record, where a place has a field."""


def makes_record(callee: Any) -> bool:
    """True for the type of a record, or a class of tuples with names."""
    return isinstance(callee, RecordType) or (isinstance(callee, type) and hasattr(callee, "_fields"))


def top_package(callee: Any) -> str:
    """The top package of a function, "builtins" where it has none."""
    return (getattr(callee, "__module__", None) or "builtins").partition(".")[0]


def is_atomic(callee: Any) -> bool:
    """True for ti.atomic_*, by whatever name it is called."""
    return getattr(callee, "__name__", "").startswith("atomic")


def is_static(expression: ast.expr) -> bool:
    """True for ti.static(...)."""
    return (
        isinstance(expression, ast.Call)
        and getattr(expression.func, "attr", "") == "static"
        and len(expression.args) > 0
    )


def is_chain(expression: ast.expr) -> bool:
    """True for a name and its fields: a, a.b, a.b.c."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return isinstance(expression, ast.Name)


def is_reference(expression: ast.expr) -> bool:
    """True if an assigned name stands for the expression itself, and not for a copy of an element."""
    if isinstance(expression, ast.Tuple | ast.List):
        return any(is_reference(element) for element in expression.elts)
    if is_chain(expression):
        return True
    while isinstance(expression, ast.Subscript | ast.Attribute):
        expression = expression.value
    return is_static(expression)


def assigned_pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with the expressions for which they stand."""
    tuples = isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List)
    if tuples and not has_star([*children(target), *children(value)]):
        for a, b in zip(children(target), children(value), strict=False):
            yield from assigned_pairs(a, b)
    elif is_reference(value):
        yield target, value


def target_names(target: ast.expr) -> Iterator[tuple[str, Place]]:
    """The names in a target, with the part of the value that each gets."""
    if isinstance(target, ast.Name):
        yield target.id, ()
    elif isinstance(target, ast.Starred):
        yield from target_names(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        starred = has_star(target.elts)
        for number, element in enumerate(target.elts):
            for name, inner in target_names(element):
                yield name, (EACH,) if starred else (number, *inner)


def has_star(expressions: Iterable[ast.expr]) -> bool:
    return any(isinstance(expression, ast.Starred) for expression in expressions)


def call_arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def children(expression: ast.expr) -> list[ast.expr]:
    return [child for child in ast.iter_child_nodes(expression) if isinstance(child, ast.expr)]


def members(expression: ast.expr) -> list[ast.expr]:
    """The members of a tuple or list, to any depth; else the expression."""
    if isinstance(expression, ast.Tuple | ast.List):
        return [part for element in expression.elts for part in members(element)]
    return [expression]


def base_name(expression: ast.expr) -> str | None:
    """`a` of a, a[i], a[i][j] or a[i].x."""
    while isinstance(expression, ast.Subscript | ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None
