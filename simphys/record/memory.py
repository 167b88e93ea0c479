"""A run that is recorded in memory, for scripts that want no folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType

import numpy as np

from simphys.record.index import add_groups
from simphys.record.recording import Recording, row_error
from simphys.record.storage import decode, to_storable
from simphys.record.table import Table, collect_rows

Attrs = dict[str, object]


class MemoryStore:
    """The tables, static datasets and attributes of a run; read by Recording."""

    name = "a run in memory"

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.statics: dict[str, np.ndarray] = {}
        self.group_attrs: dict[str, Attrs] = {}
        self.dataset_attrs: dict[str, Attrs] = {}

    def read(self, path: str, every: int = 1) -> np.ndarray:
        values = self._values(path)
        return values.copy() if every == 1 else values[::every].copy()

    def row(self, path: str, number: int) -> np.ndarray:
        values = self._values(path)
        if not 0 <= number < len(values):
            raise row_error(path, self.name, len(values), number)
        return np.array(values[number])

    def shape(self, path: str) -> tuple[int, ...]:
        return self._values(path).shape

    def paths(self) -> set[str]:
        return add_groups({*self._columns(), *self.statics, *self.group_attrs})

    def attrs(self, path: str) -> Attrs:
        columns = self._columns()
        if path in columns:
            return dict(columns[path].columns[path.rpartition("/")[2]].attrs)
        if path in self.statics:
            return dict(self.dataset_attrs.get(path, {}))
        if path == "" or path in self.paths():
            return dict(self.group_attrs.get(path, {}))
        raise KeyError(f"{self.name} holds no {path!r}")

    def _columns(self) -> dict[str, Table]:
        """The table of each column, by the column's path."""
        return {f"{group}/{name}": table for group, table in self.tables.items() for name in table.columns}

    def _values(self, path: str) -> np.ndarray:
        if path in self.statics:
            return self.statics[path]
        columns = self._columns()
        if path in columns:
            return columns[path].column(path.rpartition("/")[2])
        known = ", ".join(sorted({*columns, *self.statics})) or "none"
        raise KeyError(f"{self.name} holds no dataset {path!r}; it holds {known}")


class MemoryRecorder:
    """The interface of Recorder for a run that is held in memory: nothing is written to a disk."""

    folder = None

    def __init__(self, *, kind: str, provenance: Mapping[str, object], scene: Mapping[str, object]) -> None:
        self._store = MemoryStore()
        text = {n: json.dumps(v) if isinstance(v, Mapping) else v for n, v in provenance.items()}
        self.write("", attrs={"kind": kind, **text}, scene=[json.dumps(scene)])

    @property
    def recording(self) -> Recording:
        return Recording(self._store)

    def append(self, group: str, /, *, units: Mapping[str, str] | None = None, **row: object) -> None:
        rows = {name: np.asarray(value)[None] for name, value in row.items()}
        self.extend({group: rows}, units={group: units or {}})

    def extend(
        self, tables: Mapping[str, Mapping[str, object]], *, units: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        for table, rows in collect_rows(tables, units or {}, self._store.tables.get):
            table.parts.append(rows)
            self._store.tables[table.group] = table

    def discard(self, group: str, /) -> None:
        below = group.strip("/") + "/"
        store = self._store
        store.tables = {name: table for name, table in store.tables.items() if not f"{name}/".startswith(below)}
        store.statics = {path: values for path, values in store.statics.items() if not path.startswith(below)}
        store.group_attrs = {n: a for n, a in store.group_attrs.items() if not f"{n}/".startswith(below)}

    def write(
        self,
        group: str,
        /,
        *,
        attrs: Mapping[str, object] | None = None,
        units: Mapping[str, str] | None = None,
        **arrays: object,
    ) -> None:
        group, store = group.strip("/"), self._store
        prefix = f"{group}/".lstrip("/")
        datasets = {f"{prefix}{name}": decode(np.array(to_storable(value))) for name, value in arrays.items()}
        kept = {path: values for path, values in store.statics.items() if path.rpartition("/")[0] != group}
        store.statics = {**kept, **datasets}
        store.dataset_attrs |= {f"{prefix}{name}": {} for name in arrays}
        store.dataset_attrs |= {f"{prefix}{name}": {"unit": unit} for name, unit in (units or {}).items()}
        store.group_attrs[group] = {name: decode(to_storable(value)).tolist() for name, value in (attrs or {}).items()}

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> MemoryRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
