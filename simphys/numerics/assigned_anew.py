"""Vectors that are assigned anew after a branch: some kernels may lose the new value, see runtime.may_lose_vectors."""

from __future__ import annotations

import ast
from typing import TypeGuard


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
