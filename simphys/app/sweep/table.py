"""The table of a sweep: a row for each member, in the order of the sweep."""

from __future__ import annotations

import csv
import io
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError

from .member import Row, replace_text
from .spec import Values

CSV, PARQUET = "table.csv", "table.parquet"
ERROR, TRUTH = " +-", " truth"
"""Ends of the names of columns: standard error and known value of an unknown."""


@dataclass(frozen=True)
class SweepTable:
    """The members of a sweep: their values and their results."""

    keys: tuple[str, ...]
    """Keys of the scene that differ between members."""
    members: tuple[Values, ...]
    rows: tuple[Row | None, ...]
    """Result of each member; None where there is none yet."""
    folders: tuple[str, ...]

    @classmethod
    def read(cls, folder: str | Path) -> SweepTable:
        """Read the table of a sweep from its folder. Errors: InputError for none, or one that is cut."""
        path = Path(folder, CSV)
        try:
            with path.open(newline="", encoding="utf-8") as file:
                head, *lines = list(csv.reader(file, strict=True))
            place = head.index("status")
            keys, results = head[:place], head[place + 1 : head.index("reason")]
            tables = [dict(zip(head, map(_parsed, line), strict=True)) for line in lines]
        except (OSError, ValueError, csv.Error) as error:
            found = getattr(error, "strerror", None) or str(error)
            remedy = "Run `simphys sweep SWEEP.toml --collect`, which makes it again."
            raise InputError(str(path), "must be the table of a sweep", found, remedy) from error
        rows: list[Row | None] = []
        for table, line in zip(tables, lines, strict=True):
            values = {name: table[name] for name in results if table[name] != ""}
            row = Row(str(table["status"]), line[head.index("reason")], values)
            rows.append(None if row.status == "missing" else row)
        members = [{key: table[key] for key in keys} for table in tables]
        return cls(tuple(keys), tuple(members), tuple(rows), tuple([str(table["folder"]) for table in tables]))

    def __len__(self) -> int:
        return len(self.members)

    @property
    def results(self) -> list[str]:
        """Names of the results, in the order in which members have them."""
        return list(dict.fromkeys([name for row in self.rows if row is not None for name in row.values]))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [*self.keys, "status", *self.results, "reason", "folder"]

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """One column; NaN or "" where a member has no such value. Errors: InputError for an unknown name."""
        if name not in self.names:
            raise InputError("sweep", f"the columns are {', '.join(self.names)}", name, "Name one of these.")
        cells = [self._cell(number, name) for number in range(len(self))]
        numbers = [cell for cell in cells if cell is not None]
        missing: Any = np.nan if all([isinstance(cell, (int, float)) for cell in numbers]) else ""
        filled = [missing if cell is None else cell for cell in cells]
        return np.array(filled if all([np.isscalar(cell) for cell in filled]) else [str(cell) for cell in filled])

    def _cell(self, number: int, name: str) -> Any:
        row = self.rows[number]
        if name in self.keys:
            return self.members[number][name]
        if name == "folder":
            return self.folders[number]
        if name == "status":
            return "missing" if row is None else row.status
        if name == "reason":
            return "" if row is None else row.reason
        return None if row is None else row.values.get(name)

    def count(self, status: str) -> int:
        """Number of members of a status."""
        return sum([(row.status if row is not None else "missing") == status for row in self.rows])

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame, where pandas is installed."""
        import pandas

        return pandas.DataFrame({name: self.column(name) for name in self.names})

    def to_xarray(self) -> Any:
        """The table as an xarray Dataset, where xarray is installed.

        Members that are a whole grid of their keys have a dimension for each key; others one, "member".
        """
        import xarray

        columns = {name: self.column(name) for name in self.names}
        axes = {key: np.unique(columns[key]) for key in self.keys}
        shape = tuple([len(axis) for axis in axes.values()])
        places = tuple([np.searchsorted(axis, columns[key]) for key, axis in axes.items()])
        order = np.ravel_multi_index(places, shape)
        if len(self) != np.prod(shape) or len(np.unique(order)) < len(self):
            return xarray.Dataset({name: ("member", column) for name, column in columns.items()})
        sources = np.argsort(order)
        others = {name: column for name, column in columns.items() if name not in axes}
        arrays = {name: (self.keys, column[sources].reshape(shape)) for name, column in others.items()}
        return xarray.Dataset(arrays, coords=axes)

    def write(self, folder: str | Path) -> list[Path]:
        """Write table.csv and, where pyarrow is installed, table.parquet; return the files."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = self.names
        writer.writerow(names)
        for number in range(len(self)):
            writer.writerow([_text(self._cell(number, name)) for name in names])
        written = [Path(folder, CSV)]
        replace_text(written[0], text.getvalue())
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            return written
        columns = {name: self.column(name) for name in self.names}
        path = Path(folder, PARQUET)
        temporary = path.with_name(f".{PARQUET}.{os.getpid()}.{threading.get_ident()}")
        pyarrow.parquet.write_table(pyarrow.table(columns), temporary)
        temporary.replace(path)  # as a whole, as other sweeps may do
        return [*written, path]


def numbers_of(table: SweepTable) -> tuple[dict[str, np.ndarray[Any, Any]], list[str], list[str]]:
    """The columns that pictures are drawn from, and the names of keys and of results among them.

    They are the columns of numbers that vary; and of fits, whether they vary or not, losses and numbers of iterations,
    and values with their truths.
    """
    known = [name.removesuffix(TRUTH) for name in table.results if name.endswith(TRUTH)]
    ends = ["loss", "iterations"] if "iterations" in table.results else []
    results = [name for name in table.results if not name.endswith((ERROR, TRUTH))]
    names = [*varying([*table.keys, *table.results], table), *ends, *known, *[name + TRUTH for name in known]]
    numbers = {name: table.column(name) for name in names}
    varied = set(varying([*table.keys, *results], table))
    return numbers, [key for key in table.keys if key in varied], [name for name in results if name in varied]


def varying(names: Sequence[str], table: SweepTable) -> list[str]:
    """The columns of numbers among some that are not the same in all members."""
    found = []
    for name in names:
        column = table.column(name)
        if column.dtype.kind in "iuf" and np.isfinite(column).any() and np.ptp(column[np.isfinite(column)]) > 0:
            found.append(name)
    return found


def _parsed(text: str) -> Any:
    """A cell of CSV: a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _text(cell: Any) -> str:
    """A cell as CSV has it: numbers with all their digits."""
    return "" if cell is None else repr(cell) if isinstance(cell, float) else str(cell)
