"""Reading a run, from disk or from memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import h5py
import numpy as np

from simphys.autograd.errors import InputError, StorageError
from simphys.record.index import HERE, INDEX_NAME, SEGMENT_FOLDER, Column, Index, load_index
from simphys.record.storage import decode, open_file, read_attrs

T = TypeVar("T")


class Store(Protocol):
    """Arrays and attributes of a run by their paths, which have no slash at either end."""

    @property
    def name(self) -> str:
        """The run in an error message."""

    def read(self, path: str, every: int = 1) -> np.ndarray:
        """Every `every`-th row of a dataset. Errors: KeyError."""

    def row(self, path: str, number: int) -> np.ndarray:
        """One row, counted from 0. Errors: KeyError, IndexError."""

    def shape(self, path: str) -> tuple[int, ...]:
        """The shape of a dataset; nothing is read. Errors: KeyError."""

    def paths(self) -> set[str]:
        """Paths of all datasets and groups."""

    def attrs(self, path: str) -> dict[str, object]:
        """Attributes of a group or a dataset. Errors: KeyError."""


class Recording:
    """A recorded run: `recording["evaluations/loss"]` is the array [rows, ...] of all rows appended or written.

    `run` is the folder of a run, or the run.h5 of a complete one under any name. It may be read while the run goes on:
    every access gives the newest whole state. A run that was killed is read like one that ended.
    A missing or damaged file raises StorageError; a folder without a run raises InputError.
    """

    def __init__(self, run: str | Path | Store) -> None:
        self._store = FileStore(Path(run)) if isinstance(run, str | Path) else run

    def __getitem__(self, path: str) -> np.ndarray:
        return self._store.read(path.strip("/"))

    def thinned(self, path: str, every: int) -> np.ndarray:
        """Every `every`-th row, from the first on: memory is that of these rows and of one segment."""
        return self._store.read(path.strip("/"), every)

    def row(self, path: str, number: int) -> np.ndarray:
        """One row, counted from 0: memory is that of this row."""
        return self._store.row(path.strip("/"), number)

    def shape(self, path: str) -> tuple[int, ...]:
        """The shape of a dataset; nothing is read."""
        return self._store.shape(path.strip("/"))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and path.strip("/") in self._store.paths()

    def keys(self, group: str = "") -> list[str]:
        """Names of the groups and datasets in a group, sorted; [] where there is no such group."""
        prefix = f"{group.strip('/')}/".lstrip("/")
        paths = self._store.paths()
        return sorted({p.removeprefix(prefix).split("/")[0] for p in paths if p.startswith(prefix) and p != prefix})

    def attrs(self, path: str = "") -> dict[str, object]:
        """Attributes of a group or a dataset, such as {"unit": "px"}."""
        return self._store.attrs(path.strip("/"))

    @property
    def name(self) -> str:
        """The run in a message: its folder or file, or "a run in memory"."""
        return self._store.name

    @property
    def folder(self) -> Path | None:
        """The folder of the run; None for a run in memory."""
        return self._store.folder if isinstance(self._store, FileStore) else None

    @property
    def kind(self) -> str:
        """The job that was recorded: "run" or "optimize"."""
        return str(self.attrs()["kind"])

    @property
    def scene(self) -> dict[str, object]:
        """The resolved scene."""
        return json.loads(self["scene"][0])

    @property
    def provenance(self) -> dict[str, object]:
        """Seed, arch, versions and so on, as given to the Recorder."""
        attrs = {name: value for name, value in self.attrs().items() if name != "kind"}
        return {n: json.loads(v) if isinstance(v, str) and v.startswith("{") else v for n, v in attrs.items()}


class FileStore:
    """A run on disk: run.h5 and, until the run is complete, the segments beside it."""

    def __init__(self, run: Path) -> None:
        self.name = str(run)
        self._file = run if run.is_file() else run / INDEX_NAME
        self.folder = self._file.parent
        if not self._file.is_file():
            found = f"no {INDEX_NAME} there" if run.is_dir() else "no such folder"
            raise InputError(
                f"recording {run}", "must be the folder of a run", found, "Give the output.folder of a run."
            )
        load_index(self._file)

    def read(self, path: str, every: int = 1) -> np.ndarray:
        return self._newest(lambda index: self._read(index, path, every))

    def row(self, path: str, number: int) -> np.ndarray:
        return self._newest(lambda index: self._read_row(index, path, number))

    def shape(self, path: str) -> tuple[int, ...]:
        return self._newest(lambda index: self._shape(index, path))

    def paths(self) -> set[str]:
        return load_index(self._file).paths()

    def attrs(self, path: str) -> dict[str, object]:
        return self._newest(lambda index: self._read_attrs(index, path))

    def _newest(self, read: Callable[[Index], T]) -> T:
        """Read by the newest index; a running Recorder may merge the segments of an older one away at any time."""
        index = load_index(self._file)
        while True:
            try:
                return read(index)
            except FileNotFoundError as error:
                newer = load_index(self._file)
                if newer == index:
                    raise StorageError(
                        f"{error} is missing, though {self._file} refers to it. Restore it from a copy; "
                        "a run that is not complete is copied or moved as a whole folder."
                    ) from error
                index = newer

    def _read(self, index: Index, path: str, every: int) -> np.ndarray:
        if path in index.statics:
            return self._read_segment(index.statics[path], path, slice(None, None, every) if every > 1 else ())
        if path in index.columns:
            return self._read_column(index.columns[path], path, every)
        raise self._no_dataset(index, path)

    def _shape(self, index: Index, path: str) -> tuple[int, ...]:
        if path in index.columns:
            return index.columns[path].rows, *index.columns[path].shape
        if path in index.statics:
            with open_file(self._segment(index.statics[path])) as file:
                return tuple(self._dataset(file, path).shape)
        raise self._no_dataset(index, path)

    def _no_dataset(self, index: Index, path: str) -> KeyError:
        known = sorted({*index.columns, *index.statics})
        return KeyError(f"{self.name} holds no dataset {path!r}; it holds {', '.join(known) or 'none'}")

    def _read_column(self, column: Column, path: str, every: int) -> np.ndarray:
        """Segment by segment instead of through the virtual dataset, which fills in for missing files silently."""
        rows = np.empty((-(-column.rows // every), *column.shape), column.dtype)
        start = 0
        for source in column.sources:
            first = -start % every  # the first of this segment's rows that is taken
            place, end = -(-start // every), -(-(start + source.rows) // every)
            if end > place:
                rows[place:end] = self._read_segment(source.segment, path, slice(first, source.rows, every))
            start += source.rows
        return rows

    def _read_row(self, index: Index, path: str, number: int) -> np.ndarray:
        rows, place = self._shape(index, path)[0], number
        if not 0 <= number < rows:
            raise row_error(path, self.name, rows, number)
        if path in index.statics:
            return self._read_segment(index.statics[path], path, number)
        for source in index.columns[path].sources:
            if place < source.rows:
                break
            place -= source.rows
        return self._read_segment(source.segment, path, place)

    def _read_attrs(self, index: Index, path: str) -> dict[str, object]:
        if path in index.statics:
            with open_file(self._segment(index.statics[path])) as file:
                return read_attrs(self._dataset(file, path))
        if path in index.columns:
            return dict(index.columns[path].attrs)
        if path == "" or path in index.paths():
            return dict(index.attrs.get(path, {}))
        raise KeyError(f"{self.name} holds no {path!r}")

    def _read_segment(self, segment: str, path: str, rows: int | slice | tuple[()] = ()) -> np.ndarray:
        with open_file(self._segment(segment)) as file:
            return decode(np.asarray(self._dataset(file, path)[rows]))

    def _segment(self, name: str) -> Path:
        return self._file if name == HERE else self.folder / SEGMENT_FOLDER / name

    def _dataset(self, file: h5py.File, path: str) -> h5py.Dataset:
        """FileNotFoundError where the file refers to another one: it was complete, and has been resumed since."""
        if isinstance(file.get(path, getlink=True), h5py.ExternalLink) or file[path].is_virtual:
            raise FileNotFoundError(self._file)
        return file[path]


def row_error(path: str, name: str, rows: int, number: int) -> IndexError:
    return IndexError(f"{path} of {name} has {rows} rows, no row {number}")
