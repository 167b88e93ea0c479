"""Fields of numbers in a line each: shape, mean, spread and range."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Mapping

import numpy as np

from .arrays import Array

WIDTH = 110
"""Largest length of a line."""


@functools.cache
def documented_units(record: type) -> dict[str, str]:
    """Read the units of the fields of a record from the texts behind them: 'Spring stiffness [N/m], [S].'"""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    except (OSError, TypeError, SyntaxError):  # made at a prompt
        return {}
    found, body = {}, getattr(tree, "body", [])
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            unit = re.search(r"\[([^\[\]]+)\],\s\[", str(text.value.value))
            if unit and not re.search(r"^1$|\bor\b|\bany\b|dim", unit[1]):
                found[ast.unparse(field.target)] = unit[1]
    return found


def describe_field(name: str, values: Array, unit: str = "") -> str:
    """Describe a field: 'position [64, 2] m: mean 0.5, spread 0.1, from 0.2 to 0.7'; a single number by its value."""
    head = f"{name}{f' {list(values.shape)}' if values.ndim else ''}{f' {unit}' if unit else ''}"
    if values.size == 0:
        return f"{head}: empty"
    low, high = float(np.min(values)), float(np.max(values))
    if low == high:
        return f"{head} = {low:.6g}"
    mean, spread = float(np.mean(values)), float(np.std(values))
    return f"{head}: mean {mean:.4g}, spread {spread:.3g}, from {low:.4g} to {high:.4g}"


def describe_briefly(name: str, values: Array, unit: str = "") -> str:
    """Describe a field in few characters: 'stiffness [420] 1e+03 N/m', or its range."""
    shape = f" {list(values.shape)}" if values.size > 1 else ""
    if values.size == 0:
        return f"{name} (empty)"
    low, high = float(np.min(values)), float(np.max(values))
    numbers = f"{low:.4g}" if low == high else f"{low:.4g} ... {high:.4g}"
    return f"{name}{shape} {numbers}{f' {unit}' if unit else ''}"


def join_within(parts: list[str], width: int = WIDTH) -> str:
    """Join parts by semicolons as far as a line goes, and count the others."""
    line = ""
    for number, part in enumerate(parts):
        more = f"{line}; {part}" if line else part
        if len(more) > width - 12 and line:
            return f"{line}; and {len(parts) - number} more"
        line = more
    return line


def describe_record(kind: str, arrays: Mapping[str, Array]) -> str:
    """Describe a record of fields, in a line each."""
    return "\n".join([kind, *(f"  {describe_field(name, values)}" for name, values in arrays.items())])
