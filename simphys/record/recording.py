"""The read side of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from simphys.autograd.errors import InputError, StorageError
from simphys.record.index import INDEX_NAME, SEGMENT_FOLDER, Column, Index, load_index
from simphys.record.storage import decoded, open_file, read_attrs

T = TypeVar("T")


class Recording:
    """A recorded run: `recording["evaluations/loss"]` is the array [rows, ...] of what was appended or written.

    May be read while the run goes on: every access sees the newest whole state. A run that was killed is read like
    one that ended. A missing or damaged file raises StorageError; a folder without a run raises InputError.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / INDEX_NAME).is_file():
            found = f"no {INDEX_NAME} there" if self.folder.is_dir() else "no such folder"
            raise InputError(
                f"recording {self.folder}", "must be the folder of a run", found, "Give the output.folder of a run."
            )
        load_index(self.folder)

    def __getitem__(self, path: str) -> np.ndarray:
        return self._newest(lambda index: self._read(index, path.strip("/")))

    def thinned(self, path: str, every: int) -> np.ndarray:
        """Every `every`-th row, from the first on: memory is that of these rows and of one segment."""
        return self._newest(lambda index: self._read(index, path.strip("/"), every))

    def row(self, path: str, number: int) -> np.ndarray:
        """One row, counted from 0: memory is that of this row."""
        return self._newest(lambda index: self._read_row(index, path.strip("/"), number))

    def shape(self, path: str) -> tuple[int, ...]:
        """The shape of a dataset; nothing is read."""
        return self._newest(lambda index: self._shape(index, path.strip("/")))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and path.strip("/") in self._paths(self._newest(lambda index: index))

    def keys(self, group: str = "") -> list[str]:
        """Names of the groups and datasets in a group, sorted; [] where there is no such group."""
        prefix = f"{group.strip('/')}/".lstrip("/")
        paths = self._paths(self._newest(lambda index: index))
        return sorted({p.removeprefix(prefix).split("/")[0] for p in paths if p.startswith(prefix) and p != prefix})

    def attrs(self, path: str = "") -> dict[str, object]:
        """Attributes of a group or a dataset, such as {"unit": "px"}."""
        return self._newest(lambda index: self._read_attrs(index, path.strip("/")))

    @property
    def kind(self) -> str:
        return str(self.attrs()["kind"])

    @property
    def scene(self) -> dict[str, object]:
        """The resolved scene."""
        return json.loads(self["scene"][0])

    @property
    def provenance(self) -> dict[str, object]:
        """What the run was made by: seed, arch, versions and so on, as given to the Recorder."""
        attrs = {name: value for name, value in self.attrs().items() if name != "kind"}
        return {n: json.loads(v) if isinstance(v, str) and v.startswith("{") else v for n, v in attrs.items()}

    def _newest(self, read: Callable[[Index], T]) -> T:
        """Read by the newest index; a running Recorder may merge the segments of an older one away at any time."""
        index = load_index(self.folder)
        while True:
            try:
                return read(index)
            except FileNotFoundError as error:
                newer = load_index(self.folder)
                if newer.segments() == index.segments():
                    raise StorageError(
                        f"{error} is missing, though {self.folder / INDEX_NAME} refers to it. "
                        "Restore it from a copy; a run is moved by moving its whole folder."
                    ) from error
                index = newer

    def _read(self, index: Index, path: str, every: int = 1) -> np.ndarray:
        if path in index.statics:
            return self._read_segment(index.statics[path], path, slice(None, None, every) if every > 1 else ())
        if path in index.columns:
            return self._read_column(index.columns[path], path, every)
        raise self._no_dataset(index, path)

    def _shape(self, index: Index, path: str) -> tuple[int, ...]:
        if path in index.columns:
            return index.columns[path].rows, *index.columns[path].shape
        if path in index.statics:
            with open_file(self.folder / SEGMENT_FOLDER / index.statics[path]) as file:
                return tuple(file[path].shape)
        raise self._no_dataset(index, path)

    def _no_dataset(self, index: Index, path: str) -> KeyError:
        known = sorted({*index.columns, *index.statics})
        return KeyError(f"{self.folder} holds no dataset {path!r}; it holds {', '.join(known) or 'none'}")

    def _read_column(self, column: Column, path: str, every: int) -> np.ndarray:
        """Segment by segment instead of through the virtual dataset, which fills in for missing files silently."""
        rows = np.empty((-(-column.rows // every), *column.shape), column.dtype)
        start = 0
        for source in column.sources:
            first = -start % every  # of this segment's rows, the first that counts
            place, end = -(-start // every), -(-(start + source.rows) // every)
            if end > place:
                rows[place:end] = self._read_segment(source.segment, path, slice(first, None, every))
            start += source.rows
        return rows

    def _read_row(self, index: Index, path: str, number: int) -> np.ndarray:
        rows = self._shape(index, path)[0]
        if not 0 <= number < rows:
            raise IndexError(f"{path} of {self.folder} has {rows} rows, no row {number}")
        if path in index.statics:
            return self._read_segment(index.statics[path], path, number)
        for source in index.columns[path].sources:
            if number < source.rows:
                break
            number -= source.rows
        return self._read_segment(source.segment, path, number)

    def _read_attrs(self, index: Index, path: str) -> dict[str, object]:
        if path in index.statics:
            with open_file(self.folder / SEGMENT_FOLDER / index.statics[path]) as file:
                return read_attrs(file[path])
        if path in index.columns:
            return dict(index.columns[path].attrs)
        if path == "" or path in self._paths(index):
            return dict(index.attrs.get(path, {}))
        raise KeyError(f"{self.folder} holds no {path!r}")

    def _read_segment(self, segment: str, path: str, rows: int | slice | tuple[()] = ()) -> np.ndarray:
        with open_file(self.folder / SEGMENT_FOLDER / segment) as file:
            return decoded(np.asarray(file[path][rows]))

    @staticmethod
    def _paths(index: Index) -> set[str]:
        """Of all datasets and groups."""
        paths = {*index.columns, *index.statics, *index.attrs}
        return {"/".join(path.split("/")[:depth]) for path in paths - {""} for depth in range(1, path.count("/") + 2)}
