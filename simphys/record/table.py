"""The rows of one growing table that are not on disk yet."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simphys.autograd.errors import InputError
from simphys.record.index import Column
from simphys.record.storage import storable


class Table:
    """Buffered rows of the table `group`; every row has the names, shapes and types of `columns`."""

    def __init__(self, group: str, columns: dict[str, Column]) -> None:
        self.group = group
        self.columns = columns
        self.parts: list[dict[str, np.ndarray]] = []

    @classmethod
    def like(cls, group: str, row: Mapping[str, object], units: Mapping[str, str]) -> Table:
        """An empty table whose columns are those of its first row."""
        columns = {}
        for name, value in row.items():
            array = storable(value)
            if array.size == 0 or array.dtype.kind not in "biufc":
                found = f"{name} of shape {array.shape}, {array.dtype}"
                remedy = "Store text and empty arrays by Recorder.write."
                raise InputError(f"table {group}", "a column holds at least one number a row", found, remedy)
            attrs: dict[str, object] = {"unit": units[name]} if name in units else {}
            columns[name] = Column(array.dtype, array.shape, attrs)
        return cls(group, columns)

    def copied(self, rows: Mapping[str, object]) -> dict[str, np.ndarray]:
        """A copy of some rows, [count, ...] in each column, to be added to `parts`. Errors: InputError."""
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
            remedy = "Record it as another table; to resume a run, keep its problem as it was."
            raise InputError(f"table {self.group}", f"every row is like the first ({expected})", found, remedy)
        return {name: np.array(arrays[name], column.dtype) for name, column in self.columns.items()}

    @property
    def count(self) -> int:
        """The number of buffered rows."""
        return sum(len(next(iter(part.values()))) for part in self.parts)

    def joined(self) -> dict[str, np.ndarray]:
        """Path of each column -> its rows [rows, ...]."""
        return {f"{self.group}/{name}": np.concatenate([part[name] for part in self.parts]) for name in self.columns}
