"""Statements of a function that its results, and the arrays that it writes, do not depend on."""

from __future__ import annotations

import ast

from .places import base_name, collect_names, list_parts


def prune(definition: ast.FunctionDef, arrays: set[str]) -> None:
    """Leave out assignments of variables, not arrays, that nothing reads, and branches and loops that this empties."""
    needed, effects = set[str](), [n for n in ast.walk(definition) if isinstance(n, ast.Return | ast.Expr)]
    read: list[ast.AST] = [*effects, *[part.test for part in ast.walk(definition) if isinstance(part, ast.If)]]
    read += [part.iter for part in ast.walk(definition) if isinstance(part, ast.For)]
    assignments = [part for part in ast.walk(definition) if isinstance(part, ast.Assign)]
    new = {name for part in read for name in collect_names(part)} | arrays
    while new:
        needed |= new
        fed = [part for part in assignments if needed & {base_name(target) for target in list_parts(part.targets[0])}]
        new = {name for part in fed for name in collect_names(part)} - needed
    _Pruned(needed).visit(definition)


class _Pruned(ast.NodeTransformer):
    def __init__(self, needed: set[str]) -> None:
        self._needed = needed

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        return node if self._needed & {base_name(target) for target in list_parts(node.targets[0])} else None

    def visit_For(self, node: ast.For) -> ast.For | None:
        self.generic_visit(node)
        return node if node.body else None

    def visit_If(self, node: ast.If) -> ast.If | None:
        self.generic_visit(node)
        if not node.body and not node.orelse:
            return None
        node.body = node.body or [ast.Pass()]
        return node
