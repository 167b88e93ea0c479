"""Types, arrays and checks that the sections of several simulators share: lengths of lists, sides, fields in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.autograd.errors import InputError
from simphys.files.field_file import read_field
from simphys.scenefile.section import NOTHING, Key, Problem, Section, SideOf, Words
from simphys.simulator import Array

Side = Annotated[Literal["x-", "x+", "y-", "y+", "z-", "z+"], SideOf()]
SIDES: tuple[Side, ...] = ("x-", "x+", "y-", "y+", "z-", "z+")
"""Sides of a grid; one of `dim` dimensions has the first 2 dim."""
_PLURALS = {"axis": "axes", "body": "bodies"}


class FieldFileSection(Section):
    """A file with a number for each entry of the field: .npy, text, or a .png picture.

    greys [unit of the field]: the values of black and white.
    """

    file: str
    greys: Annotated[list[float], Field(min_length=2, max_length=2)] = [0.0, 1.0]


def fill_cells(
    cells: Sequence[int], given: float | Sequence[Section] | FieldFileSection, spacing: float = 1.0, offset: float = 0.5
) -> Array:
    """Compute a field, [*cells], of a number, a file, or bumps height exp(-|x - centre|^2 / width^2), which add up.

    A bump is a section of its centre, width and height, in this order; the middle of cell i is at spacing (i + offset).
    Errors: InputError for a file that does not hold a field.
    """
    shape = tuple(cells)
    if isinstance(given, FieldFileSection):
        return read_field(given.file, [shape], greys=given.greys)
    if isinstance(given, float | int):
        return np.full(shape, float(given))
    made = np.zeros(shape)
    places = np.meshgrid(*[spacing * (np.arange(n) + offset) for n in shape], indexing="ij", sparse=True)
    for bump in given:
        centre, width, height = dict(bump).values()
        squares = sum([(x - c) ** 2 for x, c in zip(places, centre, strict=True)])
        made += height * np.exp(-squares / width**2)
    return made


def place_lattice(origin: Sequence[float] | Array, counts: Sequence[int], spacing: float | Array) -> Array:
    """Place `counts` points along the axes, `spacing` [m] apart, from `origin` on: [n, dim], last axis fastest."""
    return np.asarray(origin, dtype=float) + spacing * np.indices(counts).reshape(len(counts), -1).T


def kinds_of_sides(given: str | Mapping[Any, str], dim: int, default: str) -> tuple[Any, ...]:
    """List the kind of each side, in the order of SIDES: one for all, or those of a table and the default."""
    return tuple([given if isinstance(given, str) else given.get(side, default) for side in SIDES[: 2 * dim]])


def check_length(key: Key, value: object, count: int, what: str) -> Iterator[Problem]:
    """Check that a list has an element for each of `count` things; a number stands for all of them, None for none."""
    if isinstance(value, list) and len(value) != count:
        constraint = f"must have {count} elements, one for each {what}"
        yield Problem(key, constraint, value, f"It has {len(value)}: give {count}.")


def check_index(key: Key, index: int, what: str, count: int) -> Iterator[Problem]:
    """Check that a thing of this index exists, such as a node or an axis."""
    if index >= count:
        constraint = f"must be the index of one of {count} {_PLURALS.get(what, what + 's')}, counted from 0"
        yield Problem(key, constraint, index, f"Give an index from 0 to {count - 1}.")


def check_side(key: Key, side: str, dim: int) -> Iterator[Problem]:
    """Check that a grid of `dim` dimensions has this side."""
    if side not in SIDES[: 2 * dim]:
        yield Problem(key, f"must be a side of a {dim}-D grid", side, f"Its sides are {', '.join(SIDES[: 2 * dim])}.")


def check_given(key: Key, value: object, what: str, *, needed: bool, example: str = "") -> Iterator[Problem]:
    """Check that a key is given if something needs it, and only then."""
    if not needed:
        yield from check_unused(key, value, f"belongs to {what}")
    elif value is None:
        remedy = f"Add {key[-1]} = {example}." if example else f"Add {key[-1]}."
        yield Problem(key, f"is needed by {what}", NOTHING, remedy)


def check_unused(key: Key, value: object, constraint: str, remedy: str = "Drop it.") -> Iterator[Problem]:
    """Report a key that is given, but has no use; an empty list is not given."""
    if value is not None and value != []:
        yield Problem(key, constraint, value, remedy)


def check_turn(key: Key, value: object, dim: int, in_plane: str, in_space: str) -> Iterator[Problem]:
    """Check that what describes a rotation, if it is given, is a number in the plane, and a list in space."""
    if value is not None and isinstance(value, list) != (dim == 3):
        wanted = in_plane if dim == 2 else in_space
        yield Problem(key, f"in {dim}-D it is {wanted}", value, f"Give {wanted}.")


def check_one_of(key: Key, section: Section, *names: str, optional: bool = False) -> Iterator[Problem]:
    """Check that a section gives exactly one of these keys; with `optional`, one at most."""
    given = [name for name in names if getattr(section, name) is not None]
    if len(given) > 1 or not (given or optional):
        constraint = f"needs one of {', '.join(names[:-1])} and {names[-1]}"
        yield Problem(key, constraint, Words(" and ".join(given) or "none"), "Give exactly one.")


def check_accepted(key: Key, make: Callable[[], Any]) -> Iterator[Problem]:
    """Find the problem of a key by making what it describes, which refuses it."""
    try:
        make()
    except InputError as error:
        found = Words(error.found) if isinstance(error.found, str) else error.found
        yield Problem(key, error.constraint, found, error.remedy)


def check_file(
    key: Key, read: Callable[[], Array], *, positive: str = "", remedy: str = "Correct the file."
) -> Iterator[Problem]:
    """Find the problem of a file by reading it; `positive` says that all its numbers must be so, `remedy` how."""
    try:
        values = read()
    except InputError as error:
        yield Problem(key, error.constraint, Words(f"{error.found} in {error.source}"), error.remedy)
        return
    if positive and not values.min() > 0:
        at = list(map(int, np.unravel_index(np.argmin(values), values.shape)))
        yield Problem(key, positive, Words(f"{values.min():g} in cell {at} of the file"), remedy)


def check_cells(key: Key, cells: Sequence[int], given: object, *, positive: bool = False) -> Iterator[Problem]:
    """Find the problem of the file of a field, if it has one, by the key of the field."""
    if isinstance(given, FieldFileSection):
        wanted, picture = "must be above 0" if positive else "", given.file.endswith(".png")
        remedy = "Set `greys` to the values of black and white." if picture else "Correct the file."
        yield from check_file((*key, "file"), lambda: fill_cells(cells, given), positive=wanted, remedy=remedy)
