"""Declaration of the fields of Params and State: shape, unit, sign and place in a scene file, stated once.

Shapes, checks of signs, units in pictures and tables, keys of scene files and docs/models.md follow from it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import re
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError

from .arrays import Arrays, Shape
from .physical import require_not_negative, require_positive

Sign = Literal["any", "positive", "not_negative"]
_AXIS = re.compile(r"\*\w+|[\w.]+( [\w.]+)*")


@dataclass(frozen=True)
class Declaration:
    """Shape, unit, sign and place of a field, see `declare`."""

    shape: str
    unit: str
    sign: Sign
    place: str
    standard: float | None
    only_if: str
    least: float | None
    most: float | None

    @property
    def symbol(self) -> str:
        """Unit in pictures: the first of "K or deg C"; "" without a dimension, or without one for all components."""
        return "" if re.search(r"^1$|\bany\b|,", self.unit) else self.unit.partition(" or ")[0]

    @property
    def axes(self) -> tuple[str, ...]:
        """Texts of the axes."""
        return tuple(self.shape.split(", ")) if self.shape else ()

    def key(self, name: str) -> tuple[str, str]:
        """Section and key of a scene that hold the field of this name; ("", "") if none does."""
        section, _, key = self.place.partition(".")
        return (section, key or name) if section else ("", "")


def declare(
    shape: str,
    unit: str,
    *,
    sign: Sign = "any",
    section: str = "",
    standard: float | None = None,
    only_if: str = "",
    least: float | None = None,
    most: float | None = None,
    default_factory: Callable[[], Tensor] | None = None,
) -> Any:
    """Declare a field of Params or State; its meaning is the text behind it.

    Args:
        shape: attributes of the model, as "nodes, dim"; "2 dim" is a product, "*cells" are all axes in a tuple, "cells"
            would be the length of that tuple, and "" is a single number.
        unit: "1" without a dimension.
        sign: which values `Model.check_params` accepts, and a scene: "positive", "not_negative", or "any".
        section: that of a scene file with the field's value, "medium"; "table.restitution" where its key has another
            name than the field.
        standard: value in scenes that do not give one; without it they must.
        only_if: attribute of the model without which the array is empty, of shape [0]; a scene may leave it out.
        least: smallest value that a scene accepts, beside the sign. Models take others: finite differences need them.
        most: largest such value.
        default_factory: makes the tensor that it is if Python gives none, such as `make_empty`.
    """
    if shape and not all([_AXIS.fullmatch(axis) for axis in shape.split(", ")]):
        remedy = 'Write axes as "nodes, dim", "2 dim" or "*cells".'
        raise InputError("declare", "a shape names attributes of the model", repr(shape), remedy)
    about = {"declaration": Declaration(shape, unit, sign, section, standard, only_if, least, most)}
    return field(default_factory=MISSING if default_factory is None else default_factory, metadata=about)


def make_empty() -> Tensor:
    """Make the tensor [0] of a field that models may do without."""
    return tensor(np.zeros(0))


@functools.cache
def declarations(record: type) -> dict[str, Declaration]:
    """Return what is declared of the fields of a record, by name; fields that are not declared are left out."""
    return {each.name: each.metadata["declaration"] for each in fields(record) if "declaration" in each.metadata}


def compute_shape(source: str, sizes: Any, declaration: Declaration) -> Shape:
    """Compute the shape of a field from the attributes of a model. Errors: InputError, by `source`, for others."""
    if declaration.only_if and not _read(source, sizes, declaration.only_if):
        return (0,)
    shape: list[int] = []
    for axis in declaration.axes:
        if axis.startswith("*"):
            shape += _read(source, sizes, axis[1:])
        else:
            shape.append(math.prod([_count(source, sizes, factor) for factor in axis.split(" ")]))
    return tuple(shape)


def _count(source: str, sizes: Any, factor: str) -> int:
    found = int(factor) if factor.isdigit() else _read(source, sizes, factor)
    return len(found) if hasattr(found, "__len__") else int(found)


def _read(source: str, sizes: Any, name: str) -> Any:
    try:
        return attrgetter(name)(sizes)
    except AttributeError as error:
        constraint, remedy = f"shapes name attributes of {type(sizes).__name__}", "Correct the declaration."
        raise InputError(source, constraint, f"no {name}", remedy) from error


def declared_shapes(model: Any, record: type) -> dict[str, Shape]:
    """Compute the shape of each field of a model's record. Errors: InputError for fields that are not declared."""
    found, name = declarations(record), f"{type(model).__name__}.{record.__name__}"
    if missing := [each.name for each in fields(record) if each.name not in found]:
        method = "state_shapes" if record is model.State else "param_shapes"
        remedy = f'Declare them, as `x: Tensor = declare("nodes", "m")`, or define {method}.'
        raise InputError(name, "all fields are declared", f"no declaration of {', '.join(missing)}", remedy)
    return {each: compute_shape(f"{name}.{each}", model, about) for each, about in found.items()}


def require_signs(source: str, record: type, params: Arrays) -> None:
    """Raise UnphysicalValue unless parameters have their declared signs."""
    for name, about in declarations(record).items():
        if about.sign == "positive":
            require_positive(source, params, name)
        elif about.sign == "not_negative":
            require_not_negative(source, params, name)


def units_of_cells(model: Any, record: type) -> dict[str, str]:
    """Return the units of those fields that a model has for each cell, "*cells", or each face of one, "*faces"."""
    found = {name: about for name, about in declarations(record).items() if about.shape.endswith(("*cells", "*faces"))}
    return {name: a.symbol for name, a in found.items() if not a.only_if or getattr(model, a.only_if)}


@functools.cache
def meanings(record: type) -> dict[str, str]:
    """Read the texts behind the fields of a record."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    except (OSError, TypeError, SyntaxError):  # made at a prompt
        return {}
    found = {}
    for each, text in itertools.pairwise(getattr(tree, "body", [])):
        if isinstance(each, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(each.target)] = " ".join(str(text.value.value).split())
    return found
