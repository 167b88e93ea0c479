"""Checks of what a model is made of, with the same messages in all simulators: counts, lengths, grids, indices.

Numbers of NumPy become those of Python, and lists become tuples or arrays: kernels, hashes and shapes need these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from simphys.autograd.errors import InputError

from .arrays import Array

MOST_CELLS = 2**31 - 1
"""Largest number of cells of a grid."""


def _quote(value: Any) -> Any:
    """Return a value for a message, in which the text "3" does not look like the number."""
    return repr(value) if isinstance(value, str) else value


def is_count(value: object) -> bool:
    """Tell if a value is a whole number of Python or NumPy; True and 3.0 are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def read_count(source: str, value: Any, least: int) -> int:
    """Return a count as an int. Errors: InputError unless it is a whole number, at least `least`."""
    if not is_count(value) or value < least:
        whole = isinstance(value, float | np.floating) and float(value).is_integer()
        instead = f"{least} or more" if is_count(value) else f"{int(value)}, an int" if whole else "an int"
        raise InputError(source, f"a whole number, at least {least}", _quote(value), f"Give {instead}.")
    return int(value)


def read_counts(source: str, values: Any, *, least: int = 0) -> tuple[int, ...]:
    """Return several counts as a tuple of ints. Errors: InputError for anything else."""
    return tuple([read_count(f"{source}[{index}]", value, least) for index, value in enumerate(_list(source, values))])


def _list(source: str, values: Any) -> Iterable[Any]:
    """Return what a list, a tuple or an array holds. Errors: InputError for anything else, such as a single number."""
    if isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.ndim == 1):
        return values
    raise InputError(
        source, "a tuple of whole numbers", _quote(values), "Give a tuple, such as (3, 4), or (3,) for one."
    )


def is_length(value: Any, *, zero: bool = False) -> bool:
    """Tell if a value is a number, positive (or 0, with `zero`) and finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    number = float(value)
    return math.isfinite(number) and (number >= 0 if zero else number > 0)


def read_positive(source: str, value: Any, *, zero: bool = False) -> float:
    """Return a number as a float. Errors: InputError unless it is positive (or 0, with `zero`) and finite."""
    if not is_length(value, zero=zero):
        constraint = "a number, 0 or more and finite" if zero else "a number, positive and finite"
        raise InputError(source, constraint, _quote(value), "Give one.")
    return float(value)


def _set(model: Any, name: str, value: Any) -> None:
    object.__setattr__(model, name, value)  # models are frozen


def _name(model: Any, field: str) -> str:
    return f"{type(model).__name__}.{field}"


def require_counts(model: Any, **least: int) -> None:
    """Make the fields named ints, each with its least value. Errors: InputError."""
    for name, value in least.items():
        _set(model, name, read_count(_name(model, name), getattr(model, name), value))


def require_positive_fields(model: Any, *names: str) -> None:
    """Make the fields named floats. Errors: InputError unless they are positive and finite."""
    for name in names:
        _set(model, name, read_positive(_name(model, name), getattr(model, name)))


def require_not_negative_fields(model: Any, *names: str) -> None:
    """Make the fields named floats. Errors: InputError unless they are 0 or more, and finite."""
    for name in names:
        _set(model, name, read_positive(_name(model, name), getattr(model, name), zero=True))


def require_choices(model: Any, **known: Sequence[Any]) -> None:
    """Raise InputError unless each of the fields named has one of its known values."""
    for name, values in known.items():
        if getattr(model, name) not in values:
            constraint = f"must be one of {tuple(values)}"
            raise InputError(_name(model, name), constraint, getattr(model, name), "Choose one of these.")


def require_dimensions(model: Any, field: str, count: int, *allowed: int) -> None:
    """Raise InputError, naming a field, unless space has one of these numbers of dimensions."""
    if allowed and count not in allowed:
        constraint = f"space has {', '.join(map(str, allowed[:-1]))} or {allowed[-1]} dimensions"
        raise InputError(_name(model, field), constraint, count, "Choose one of these.")


def require_grid(model: Any, *dimensions: int) -> None:
    """Make `cells` a tuple of ints, at least 1 each, and `spacing` a float, positive and finite. Errors: InputError.

    Space has one of these numbers of dimensions, or any. Kernels count cells in 32 bits.
    """
    _set(model, "cells", read_counts(_name(model, "cells"), model.cells, least=1))
    require_positive_fields(model, "spacing")
    require_dimensions(model, "cells", len(model.cells), *dimensions)
    if math.prod(model.cells) > MOST_CELLS:
        constraint = f"a grid has at most {MOST_CELLS} cells"
        raise InputError(_name(model, "cells"), constraint, list(model.cells), "Use fewer and larger cells.")


def require_sides(model: Any, field: str, kinds: Sequence[str], default: str) -> None:
    """Make a field the kind of each side of the grid, by default the same for all. Errors: InputError.

    Sides of the kind "periodic" are so in pairs.
    """
    count, name = 2 * len(model.cells), _name(model, field)
    _set(model, field, getattr(model, field) or (default,) * count)
    given = getattr(model, field)
    if len(given) != count or not set(given) <= set(kinds):
        constraint = f"must hold {count} of {tuple(kinds)}, one for each side x-, x+, ..."
        raise InputError(name, constraint, list(given), "Name one for each side.")
    for axis, pair in enumerate(zip(given[::2], given[1::2], strict=True)):
        if pair.count("periodic") == 1:
            found = {f"{'xyz'[axis]}{sign}": kind for sign, kind in zip("-+", pair, strict=True)}
            remedy = "Make both sides periodic, or neither."
            raise InputError(name, "opposite sides are periodic together", found, remedy)


def require_layers(model: Any, kinds: Sequence[str]) -> None:
    """Raise InputError for absorbing layers without a width, a speed or a frequency."""
    wanted = {
        "layer": "a number of cells",
        "layer_speed": "the largest speed of the medium",
        "layer_frequency": "the dominant frequency of the sources",
    }
    for name, usual in wanted.items():
        if "absorbing" in kinds and not getattr(model, name) > 0:
            constraint = "absorbing layers have a width, a speed and a frequency"
            raise InputError(_name(model, name), constraint, getattr(model, name), f"Give it, usually {usual}.")


def require_box(model: Any) -> None:
    """Make `box` a tuple of 2 or 3 floats, positive each, or inf for an open axis. Errors: InputError."""
    source, given = _name(model, "box"), model.box
    known = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim == 1)
    if not known or not all([length == math.inf or is_length(length) for length in given]):
        raise InputError(source, "a positive length for each axis, or inf", given, "Give one for each axis.")
    _set(model, "box", tuple([float(length) for length in given]))
    require_dimensions(model, "box", len(given), 2, 3)


def read_whole_numbers(source: str, values: Any) -> Array:
    """Return a list or an array of whole numbers as an array. Errors: InputError for other numbers."""
    try:
        found = np.asarray(values)
    except ValueError:  # rows of different lengths
        found = np.asarray(None)
    limits = np.iinfo(np.int32)  # beyond which a cast would count from the other end
    if found.size and (found.dtype.kind not in "iu" or found.min() < limits.min or found.max() > limits.max):
        raise InputError(source, "whole numbers, of 32 bits", values, "Give a list or an array of ints.")
    return found.astype(np.int32)


def read_indices(source: str, values: Any, *, width: int, count: int, noun: str) -> npt.NDArray[np.int32]:
    """Return rows [m, width] of the numbers of things, of which there are `count`; those of a row differ.

    noun: of one of these things, such as node. Errors: InputError, with the first row that is wrong.
    """
    found = read_whole_numbers(source, values)
    if not found.size:
        return np.zeros((0, width), np.int32)
    if found.ndim != 2 or found.shape[1] != width:
        constraint = f"rows of {width} numbers of {noun}s"
        raise InputError(source, constraint, f"shape {list(found.shape)}", f"Give an array [m, {width}].")
    outside = np.asarray(((found < 0) | (found >= count)).any(axis=1))
    if outside.any():
        constraint, remedy = f"{noun} indices lie in 0..{count - 1}", f"Correct the {noun} indices."
        raise InputError(source, constraint, _show(found, outside), remedy)
    ordered = np.sort(found, axis=1)
    twice = np.asarray((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if twice.any():
        constraint = f"each row names {width} different {noun}s"
        raise InputError(source, constraint, _show(found, twice), "Name another, or remove the row.")
    return found


def _show(rows: Array, wrong: Array) -> str:
    index = int(np.argmax(wrong))
    return f"row {index}: {rows[index].tolist()}"
