"""Results of a function that are linear in some of its parameters: read from its source."""

from __future__ import annotations

import ast
from collections.abc import Collection

_FIXED, _LINEAR, _OTHER = range(3)
_BILINEAR = ("dot", "cross", "outer_product")
_LINEAR_MAPS = ("transpose", "sum", "trace")


def find_linear(definition: ast.FunctionDef, parameters: Collection[str]) -> tuple[bool, ...]:
    """Tell for each result whether it is linear in these parameters. False where the source does not show it."""
    kinds = dict.fromkeys(parameters, _LINEAR)
    *statements, last = definition.body
    if not isinstance(last, ast.Return) or any([isinstance(node, ast.NamedExpr) for node in ast.walk(definition)]):
        return ()
    results = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    for node in statements:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return (False,) * len(results)
        for name, value in _pairs(node.targets[0], node.value):
            kinds[name] = _OTHER if name in kinds else _kind(value, kinds)
    return tuple([_kind(value, kinds) == _LINEAR for value in results])


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr | None]]:
    """List (name, assigned expression), None for one whose value is not known."""
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(value, ast.Tuple) else [None] * len(targets)
    names = [part.id if isinstance(part, ast.Name) else ast.unparse(part) for part in targets]
    return list(zip(names, values, strict=True))


def _kind(value: ast.expr | None, kinds: dict[str, int]) -> int:
    def kind(part: ast.expr | None) -> int:
        return _kind(part, kinds)

    match value:
        case ast.Constant():
            return _FIXED
        case ast.Name(id=name):
            return kinds.get(name, _FIXED)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return kind(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return kind(left) if kind(left) == kind(right) else _OTHER
        case ast.BinOp(left=left, op=ast.Mult() | ast.MatMult(), right=right):
            return _product(kind(left), kind(right))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return kind(left) if kind(right) == _FIXED else _OTHER
        case ast.Call(func=ast.Attribute(value=vector, attr=name), args=[other]) if name in _BILINEAR:
            return _product(kind(vector), kind(other))
        case ast.Call(func=ast.Attribute(value=vector, attr=name), args=[]) if name in _LINEAR_MAPS:
            return kind(vector)
        case ast.Subscript(value=vector):
            return kind(vector)
    names = set() if value is None else {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
    fixed = value is not None and all([kinds.get(name, _FIXED) == _FIXED for name in names])
    return _FIXED if fixed else _OTHER


def _product(first: int, second: int) -> int:
    return min(first + second, _OTHER)
