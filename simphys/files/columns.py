"""Files as columns of numbers: text divided by commas, semicolons, tabs or spaces, and HDF5."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

import numpy as np

from simphys.autograd.errors import InputError

COMMENT = ("%", "#")
MISSING = {"", "na", "nan"}
DECIMAL = re.compile(r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$")
"""A number with a decimal comma."""
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class Table(Protocol):
    """A file as columns of numbers; a key is the number of a column, from 0, or its name."""

    @property
    def path(self) -> Path: ...

    def column(self, key: int | str) -> np.ndarray:
        """A new array [N] of finite numbers, and NaN for what is missing."""

    def label(self, key: int | str) -> str | None:
        """The name of the column in the file; None if it has none."""

    def name(self, key: int | str) -> str:
        """The column in an error message."""

    def place(self, row: int) -> str:
        """The file and the row in an error message."""


def open_table(path: Path, key: str = "observations.file") -> Table:
    """Open the table in a file, in the format that its content shows; `key` names it in a scene. Errors: InputError."""
    source = f"{key} {path}"
    try:
        with path.open("rb") as file:
            start = file.read(len(HDF5_SIGNATURE))
    except (OSError, ValueError) as error:  # ValueError: a null byte
        remedy = f"Correct {key}; in a scene it is relative to the scene file."
        raise InputError(source, "must be a file that can be read", _reason(error), remedy) from None
    if not start:
        raise InputError(source, "must hold samples", "an empty file", f"Name another {key}.")
    return HDF5Table(path, key) if start == HDF5_SIGNATURE else TextTable(path, key)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class TextTable:
    """Lines of cells, divided by semicolons, tabs or commas if the first line contains one, otherwise by spaces.

    Numbers may have decimal commas where semicolons or tabs divide them.
    Lines that start with % or # are comments. A first line without any number names the columns.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        source = f"{key} {path}"
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            found = f"byte {error.object[error.start]:#x} at {error.start}"
            remedy = f"Name another {key} or convert this one."
            raise InputError(source, "must be text in UTF-8, or HDF5", found, remedy) from None
        rows = list(_cells(lines))
        self.header = rows.pop(0)[1] if rows and _is_header(rows[0][1]) else None
        self.rows = rows
        if not rows:
            raise InputError(source, "must hold samples", "none", f"Name another {key}.")
        self.width = len(self.header or rows[0][1])
        for row, (_, cells) in enumerate(rows):
            if len(cells) != self.width:
                constraint = f"every line must have as many cells as the first, {self.width}"
                remedy = "Correct or remove this line; if commas are decimal ones, divide the cells by semicolons."
                raise InputError(self.place(row), constraint, str(len(cells)), remedy)

    def column(self, key: int | str) -> np.ndarray:
        index = self._index(key)
        values = np.empty(len(self.rows))
        for row, (_, cells) in enumerate(self.rows):
            number = _number(cells[index])
            if number is None:
                source = f"{self.place(row)}, {self.name(key)}"
                remedy = "Correct the cell; a missing sample is an empty cell, NaN or NA."
                raise InputError(source, "must be a finite number", repr(cells[index]), remedy)
            values[row] = number
        return values

    def label(self, key: int | str) -> str | None:
        return self.header[self._index(key)] if self.header else None

    def name(self, key: int | str) -> str:
        return f"column {key!r}"

    def place(self, row: int) -> str:
        return f"{self.path}, line {self.rows[row][0]}"

    def _index(self, key: int | str) -> int:
        source = f"{self.key} {self.path}"
        last = self.width - 1
        if isinstance(key, int):
            if 0 <= key <= last:
                return key
            raise InputError(source, f"has columns 0 to {last}", self.name(key), "Count the columns from 0.")
        if self.header is None:
            remedy = f"Give the number of the column, 0 to {last}."
            raise InputError(source, "has no line of names, so its columns go by number", self.name(key), remedy)
        if key not in self.header:
            raise _unknown_name(source, self.name(key), key, self.header)
        return self.header.index(key)


class HDF5Table:
    """The one-dimensional datasets of an HDF5 file, named by their paths."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self._first: tuple[str, int] | None = None  # name and length of the first dataset that is read

    def column(self, key: int | str) -> np.ndarray:
        import h5py

        source = f"{self.key} {self.path}"
        if isinstance(key, int):
            constraint = "is HDF5, whose columns go by the paths of datasets"
            raise InputError(source, constraint, f"column {key}", "Give the path of a dataset.")
        try:
            # By its path, from which virtual datasets find their parts; without a lock, as others may be writing.
            with h5py.File(self.path, "r", locking=False) as file:
                if not isinstance(file.get(key), h5py.Dataset):
                    known: list[str] = []
                    file.visititems(lambda path, item: known.append(path) if isinstance(item, h5py.Dataset) else None)
                    raise _unknown_name(source, self.name(key), key, known)
                array = np.asarray(file[key][()])
        except Exception as error:  # of damage that HDF5 meets
            if isinstance(error, InputError):
                raise
            raise InputError(source, "must be a readable HDF5 file", str(error), "Restore it from a copy.") from error
        self._check(key, array)
        return array.astype(np.float64)

    def _check(self, key: str, array: np.ndarray) -> None:
        source = f"{self.path}, {self.name(key)}"
        if array.ndim != 1 or array.dtype.kind not in "iuf":
            found = f"shape {array.shape} of {array.dtype}"
            raise InputError(source, "must be a one-dimensional array of numbers", found, "Name another dataset.")
        if array.size == 0:
            raise InputError(source, "must hold samples", "none", "Name another dataset.")
        self._first = self._first or (self.name(key), len(array))
        if len(array) != self._first[1]:
            constraint = f"must be as long as {self._first[0]}, {self._first[1]}"
            raise InputError(source, constraint, str(len(array)), "Name datasets of the same samples.")
        for row in np.flatnonzero(np.isinf(array))[:1]:
            source, found = f"{self.place(row)}, {self.name(key)}", str(array[row])
            raise InputError(source, "must be a finite number", found, "Correct the file; a missing sample is NaN.")

    def label(self, key: int | str) -> str | None:
        return str(key)

    def name(self, key: int | str) -> str:
        return f"dataset {key!r}"

    def place(self, row: int) -> str:
        return f"{self.path}, row {row}"


def _cells(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the lines that are neither blank nor comments: line number from 1, and cells."""
    stripped = ((number, line.strip()) for number, line in enumerate(lines, 1))
    content = [(number, line) for number, line in stripped if line and not line.startswith(COMMENT)]
    first = content[0][1] if content else ""
    # Beside semicolons or tabs, commas are those of decimals.
    divider = ";" if ";" in first else "," if "," in first else ""
    if "\t" in first and any("," in line for _, line in content):
        cells = [cell.strip() for _, line in content[:2] for cell in line.split("\t")]
        divider = "\t" if all("," not in cell or DECIMAL.match(cell) for cell in cells) else divider
    for number, line in content:
        cells = next(csv.reader([line], delimiter=divider)) if divider else line.split()
        cells = [cell.strip() for cell in cells]
        yield number, cells if divider in ("", ",") else [DECIMAL.sub(r"\1.\2", cell) for cell in cells]


def _is_header(cells: Sequence[str]) -> bool:
    """True for some text without any number, not even an infinite one; a name may be empty."""
    names = [cell for cell in cells if cell]
    return bool(names) and not any(map(_is_numeric, names))


def _is_numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.lower() in MISSING
    return True


def _number(cell: str) -> float | None:
    """Read a cell: a finite number, NaN for a missing one, None for anything else."""
    if cell.lower() in MISSING:
        return math.nan
    try:
        number = float(cell)
    except ValueError:
        return None
    if "_" in cell:  # a digit separator of Python, of no other program
        return None
    return number if math.isfinite(number) else None


def _unknown_name(source: str, found: str, name: str, known: Sequence[str]) -> InputError:
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return InputError(source, "must have this column", found, f"{hint}It has {', '.join(known) or 'none'}.")
