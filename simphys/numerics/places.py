"""Places that statements read and assign: variables, and entries and fields of these."""

from __future__ import annotations

import ast


def base_name(place: ast.expr) -> str:
    """Name the variable that a place is, or is a part of; '' for other expressions."""
    while isinstance(place, ast.Subscript | ast.Attribute):
        place = place.value
    return place.id if isinstance(place, ast.Name) else ""


def list_parts(value: ast.expr) -> list[ast.expr]:
    """List the parts of a tuple, or the only one of another expression."""
    return list(value.elts) if isinstance(value, ast.Tuple) else [value]


def collect_names(node: ast.AST | None) -> set[str]:
    """Collect the variables in a part of a source."""
    return set() if node is None else {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
