"""Results of a function that are zero because some of its parameters are: read from its source."""

from __future__ import annotations

import ast
from collections.abc import Collection

from .places import base_name
from .writes import Written

_BILINEAR = ("dot", "cross", "outer_product")


def find_vanishing(
    definition: ast.FunctionDef, zeros: Collection[str], written: Collection[Written] = ()
) -> tuple[bool, ...]:
    """Tell for each result whether it is zero if these parameters are. False where the source does not show it.

    `written` are the variables that calls may write. What is neither a parameter nor assigned here, such as a captured
    number, counts as nonzero.
    """
    assignments = [*_assignments(definition), *[(each.name, None) for each in written]]
    parameters = {argument.arg for argument in definition.args.args}
    zero = set(zeros) | ({name for name, _ in assignments} - parameters)
    while True:
        lost = {name for name, value in assignments if name in zero and not _is_zero(value, zero)}
        if not lost:
            break
        zero -= lost
    returns = [node.value for node in ast.walk(definition) if isinstance(node, ast.Return)]
    rows = [value.elts if isinstance(value, ast.Tuple) else [value] for value in returns]
    return tuple([all([_is_zero(value, zero) for value in column]) for column in zip(*rows, strict=True)])


def _assignments(definition: ast.FunctionDef) -> list[tuple[str, ast.expr | None]]:
    """List (name, assigned expression) of all assignments, None for one whose value is not known."""
    found: list[tuple[str, ast.expr | None]] = []
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found += _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            found += _pairs(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            sums = isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
            found.append((base_name(node.target), node.value if sums else None))
        elif isinstance(node, ast.For):
            found += [(name.id, None) for name in ast.walk(node.target) if isinstance(name, ast.Name)]
    return found


def _pairs(target: ast.expr, value: ast.expr | None) -> list[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Tuple):
        values = value.elts if isinstance(value, ast.Tuple) else [None] * len(target.elts)
        return [(base_name(part), each) for part, each in zip(target.elts, values, strict=True)]
    return [(base_name(target), value)]


def _is_zero(value: ast.expr | None, names: Collection[str]) -> bool:
    """True if an expression is zero when these names are."""

    def zero(part: ast.expr | None) -> bool:
        return _is_zero(part, names)

    match value:
        case ast.Constant(value=number):
            return number == 0
        case ast.NamedExpr(value=inner):
            return zero(inner)
        case ast.Name(id=name):
            return name in names
        case ast.UnaryOp(operand=operand):
            return zero(operand)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return zero(left) or zero(right)
        case ast.BinOp(left=left, op=ast.Div() | ast.MatMult()):
            return zero(left)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return zero(left) and zero(right)
        case ast.Call(func=ast.Attribute(value=vector, attr=name), args=[other]) if name in _BILINEAR:
            return zero(vector) or zero(other)
        case ast.Call(func=ast.Attribute(attr="select"), args=[_, first, second]):
            return zero(first) and zero(second)
        case ast.Subscript(value=base):
            return zero(base)
    return False
