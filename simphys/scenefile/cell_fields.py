"""Sections of a scene that give a number for each cell of a grid, as one number or in a file, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from simphys.autograd.errors import InputError
from simphys.files.field_file import read_field
from simphys.scenefile.section import Key, Problem, Section, Words
from simphys.simulator import Array


class FieldFileSection(Section):
    """A file (.npy or text) with a number for each cell, [*cells]."""

    file: str


def fill_cells(cells: Sequence[int], given: float | FieldFileSection) -> Array:
    """Compute a field, [*cells]. Errors: InputError for a file that does not hold one."""
    shape = tuple(cells)
    return read_field(given.file, [shape]) if isinstance(given, FieldFileSection) else np.full(shape, float(given))


def check_cells(key: Key, cells: Sequence[int], given: object, *, positive: bool) -> Iterator[Problem]:
    """Find the problems of the file of a field, if it has one, by the key of the field."""
    if not isinstance(given, FieldFileSection):
        return
    try:
        values = fill_cells(cells, given)
    except InputError as error:
        found = Words(f"{error.found} in {error.source}")
        yield Problem(key=(*key, "file"), constraint=error.constraint, found=found, remedy=error.remedy)
        return
    if positive and not values.min() > 0:
        at = list(map(int, np.unravel_index(np.argmin(values), values.shape)))
        found = Words(f"{values.min():g} in cell {at}")
        yield Problem(key=(*key, "file"), constraint="must be above 0", found=found, remedy="Correct the file.")
