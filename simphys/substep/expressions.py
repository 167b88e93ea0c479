"""Names and elements in the text of kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from simphys.simulator import Shape

from .program import Domain


def identifier(name: str) -> str:
    """Make a name for the text of a kernel of any name, such as "time step"."""
    return re.sub(r"^(?=\d)|\W", "_", name)


def size_name(domain: Domain) -> str:
    """Name of the kernel's argument that holds the size of an index set."""
    return f"n_{domain.name}"


def element_name(shape: Shape) -> str:
    """Name of the type of an element: real, vector_2, matrix_2_2."""
    return {0: "real", 1: "vector", 2: "matrix"}[len(shape)] + "".join([f"_{length}" for length in shape])


def build_element(parts: Sequence[str], shape: Shape, *, whole: bool = False) -> str:
    """Expression of an element from those of its components, or from one of the whole."""
    if whole or not shape:
        return parts[0]
    if len(shape) == 1:
        return f"{element_name(shape)}({', '.join(parts)})"
    rows, columns = shape
    lines = [f"[{', '.join(parts[columns * r : columns * (r + 1)])}]" for r in range(rows)]
    return f"{element_name(shape)}([{', '.join(lines)}])"


def split_element(name: str, shape: Shape, *, whole: bool = False) -> list[str]:
    """Expressions of the components of an element in a local variable, or of the whole."""
    if whole or not shape:
        return [name]
    if len(shape) == 1:
        return [f"{name}[{c}]" for c in range(shape[0])]
    return [f"{name}[{r}, {c}]" for r in range(shape[0]) for c in range(shape[1])]


def zero_element(shape: Shape) -> str:
    """Expression of an element of zeros."""
    return f"{element_name(shape)}(0.0)"
