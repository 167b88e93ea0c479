"""The rows of one growing table that are held in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from simphys.autograd.errors import InputError
from simphys.record.index import Column
from simphys.record.storage import to_storable


class Table:
    """Buffered rows of the table `group`; every row has the names, shapes and types of `columns`."""

    def __init__(self, group: str, columns: dict[str, Column]) -> None:
        self.group = group
        self.columns = columns
        self.parts: list[dict[str, np.ndarray]] = []

    @classmethod
    def from_rows(cls, group: str, rows: Mapping[str, np.ndarray], units: Mapping[str, str]) -> Table:
        """Make an empty table with the columns of its first rows, [count, ...] each. Errors: InputError."""
        columns = {}
        for name, values in rows.items():
            array = to_storable(values[0])
            if array.size == 0 or array.dtype.kind not in "biufc":
                found = f"{name} of shape {array.shape}, {array.dtype}"
                remedy = "Store text and empty arrays by Recorder.write."
                raise InputError(f"table {group}", "a column holds at least one number a row", found, remedy)
            attrs: dict[str, object] = {"unit": units[name]} if name in units else {}
            columns[name] = Column(array.dtype, array.shape, attrs)
        return cls(group, columns)

    def copy_rows(self, rows: Mapping[str, object]) -> dict[str, np.ndarray]:
        """Copy some rows, [count, ...] in each column, to be added to `parts`. Errors: InputError."""
        arrays = {name: np.asarray(value) for name, value in rows.items()}
        fits = (
            arrays.keys() == self.columns.keys()
            and len({array.shape[:1] for array in arrays.values()}) == 1
            and all(
                arrays[name].shape[1:] == column.shape and np.can_cast(arrays[name].dtype, column.dtype, "safe")
                for name, column in self.columns.items()
            )
        )
        if not fits:
            expected = ", ".join(f"{name} {c.dtype}{list(c.shape)}" for name, c in self.columns.items())
            found = ", ".join(f"{name} {a.dtype}{list(a.shape[1:])}" for name, a in arrays.items())
            remedy = "Record it as another table; to resume a run, leave its problem unchanged."
            raise InputError(f"table {self.group}", f"every row is like the first ({expected})", found, remedy)
        return {name: np.array(arrays[name], column.dtype) for name, column in self.columns.items()}

    @property
    def count(self) -> int:
        """Number of buffered rows."""
        return sum(len(next(iter(part.values()))) for part in self.parts)

    def column(self, name: str) -> np.ndarray:
        """Return all rows of a column, [rows, ...]."""
        if len(self.parts) > 1:
            self.parts = [{each: np.concatenate([part[each] for part in self.parts]) for each in self.columns}]
        return self.parts[0][name]


def collect_rows(
    tables: Mapping[str, Mapping[str, object]],
    units: Mapping[str, Mapping[str, str]],
    find: Callable[[str], Table | None],
) -> list[tuple[Table, dict[str, np.ndarray]]]:
    """Pair each table with a copy of its new rows [count, ...]; a table that `find` does not know is made.

    Nothing is added to a table yet. Tables without new rows are left out. Errors: InputError for rows unlike the first.
    """
    found = []
    for name, rows in tables.items():
        group = name.strip("/")
        arrays = {column: np.asarray(values) for column, values in rows.items()}
        if all(array.ndim and len(array) for array in arrays.values()):
            table = find(group) or Table.from_rows(group, arrays, units.get(name, {}))
            found.append((table, table.copy_rows(arrays)))
    return found
