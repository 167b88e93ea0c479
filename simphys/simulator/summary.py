"""Fields of numbers in a line each: shape, mean, spread and range."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import numpy as np

from .arrays import Array
from .declare import declarations, meanings

WIDTH = 110
"""Largest length of a line."""


@functools.cache
def documented_units(record: type) -> dict[str, str]:
    """Return the units of the fields of a record: declared ones, and those in texts, 'Spring stiffness [N/m], [S].'"""
    found = {}
    for name, text in meanings(record).items():
        if unit := re.search(r"\[([^\[\]]+)\],\s\[", text):
            found[name] = unit[1]
    found |= {name: about.unit for name, about in declarations(record).items()}
    return {name: unit for name, unit in found.items() if not re.search(r"^1$|\bor\b|\bany\b|dim|,", unit)}


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
