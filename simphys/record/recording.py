"""Reading a run, from disk or from memory."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import h5py
import numpy as np

from simphys.autograd.errors import InputError, StorageError
from simphys.record.contents import damage_as_errors, require_rows, require_whole
from simphys.record.index import HERE, INDEX_NAME, SEGMENT_FOLDER, Column, Index
from simphys.record.remains import find_remains
from simphys.record.storage import decode, open_file, read_attrs
from simphys.simulator import SI, Units
from simphys.simulator.views import views

T = TypeVar("T")

PARAMETERS, START = "parameters", "start"
"""Groups of the parameters that a motion was simulated with, and of the state that it began with."""


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
    every access gives the newest whole state. A run that was killed is read like one that ended. Of a file that is cut
    off, what is left is read: `damage` and a warning say what is lost.
    A missing or otherwise damaged file raises StorageError; a folder without a run raises InputError.
    """

    def __init__(self, run: str | Path | Store) -> None:
        self._store = FileStore(Path(run)) if isinstance(run, str | Path) else run

    @property
    def store(self) -> Store:
        """The storage that it reads from."""
        return self._store

    def __repr__(self) -> str:
        with damage_as_errors(self.name, "description"):
            return views().describe_recording(self)

    def _repr_html_(self) -> str:
        with damage_as_errors(self.name, "description"):
            return views().recording_html(self)

    def show(self) -> Any:
        """Make the report of the run; a notebook shows it with its replay, and `.save(FILE)` writes it."""
        return views().show_recording(self)

    def plot(self, name: str | None = None) -> Any:
        """Draw a picture of the run by its name, by default its result; return a matplotlib Figure.

        Errors: InputError with the names that there are.
        """
        return views().plot_recording(self, name)

    def animate(self, field: str | None = None) -> Any:
        """Make the film of the run, of its bodies or of a field on its grid; a notebook plays it, `.save` writes it.

        Errors: InputError without such a motion.
        """
        return views().film_recording(self, field)

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
    def damage(self) -> str:
        """Sentences on what is lost of a run of which a file is cut off; empty for a whole run."""
        return str(getattr(self._store, "damage", ""))

    @property
    def part(self) -> str:
        """The name of the experiment, of one of several of a run; else empty."""
        return str(getattr(self._store, "part", ""))

    @property
    def folder(self) -> Path | None:
        """The folder of the run; None for a run in memory."""
        return self._store.folder if isinstance(self._store, FileStore) else None

    @property
    def kind(self) -> str:
        """The job that was recorded: "run" or "optimize"."""
        with damage_as_errors(self.name, "the kind"):
            return str(self.attrs()["kind"])

    @property
    def scene(self) -> dict[str, object]:
        """The resolved scene."""
        with damage_as_errors(self.name, "the scene"):
            found = json.loads(self["scene"][0])
            if not isinstance(found, dict):
                raise ValueError(f"{str(found)[:80]!r}, where a table should be")
            return found

    @property
    def units(self) -> Units:
        """Units of length and time of the run: those that its scene states, or else m and s."""
        stated = self.scene.get("units")
        return Units(**stated) if isinstance(stated, dict) else SI

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The parameters that the motion was simulated with, by name; of a fit, with the values that it found.

        `attrs("parameters/NAME")` holds the unit, if it is known. {} for a run without a motion, and for one of
        several experiments, each of which has its own.
        """
        return self._arrays(PARAMETERS)

    @property
    def start(self) -> dict[str, np.ndarray]:
        """The state that the motion began with, by name; see `params`."""
        return self._arrays(START)

    def _arrays(self, group: str) -> dict[str, np.ndarray]:
        return {name: self[f"{group}/{name}"] for name in self.keys(group)}

    @property
    def provenance(self) -> dict[str, object]:
        """Seed, arch, versions and so on, as given to the Recorder."""
        attrs = {name: value for name, value in self.attrs().items() if name != "kind"}
        with damage_as_errors(self.name, "the provenance"):
            return {n: json.loads(v) if isinstance(v, str) and v.startswith("{") else v for n, v in attrs.items()}


class FileStore:
    """A run on disk: run.h5 and, until the run is complete, the segments beside it."""

    def __init__(self, run: Path) -> None:
        self.name = str(run)
        try:
            self._file = run if run.is_file() else run / INDEX_NAME
            is_there = self._file.is_file()
        except OSError as error:  # a name that no file can have
            remedy = "Give the output.folder of a run."
            raise InputError(f"recording {run}", "must be a path", error.strerror or str(error), remedy) from error
        self.folder = self._file.parent
        if not is_there:
            found = f"no {INDEX_NAME} there" if run.is_dir() else "no such folder"
            raise InputError(
                f"recording {run}", "must be the folder of a run", found, "Give the output.folder of a run."
            )
        if damage := self.damage:
            warnings.warn(damage, stacklevel=3)

    @property
    def damage(self) -> str:
        return find_remains(self._file).damage

    def _load(self) -> Index:
        return find_remains(self._file).index

    def read(self, path: str, every: int = 1) -> np.ndarray:
        return self._newest(lambda index: self._read(index, path, every))

    def row(self, path: str, number: int) -> np.ndarray:
        return self._newest(lambda index: self._read_row(index, path, number))

    def shape(self, path: str) -> tuple[int, ...]:
        return self._newest(lambda index: self._shape(index, path))

    def paths(self) -> set[str]:
        return self._load().paths()

    def attrs(self, path: str) -> dict[str, object]:
        return self._newest(lambda index: self._read_attrs(index, path))

    def _newest(self, read: Callable[[Index], T]) -> T:
        """Read by the newest index; a running Recorder may merge the segments of an older one away at any time."""
        index = self._load()
        while True:
            try:
                return read(index)
            except FileNotFoundError as error:
                newer = self._load()
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
            with open_file(self._segment(index.statics[path]), cut_off=True) as file:
                return tuple(self._dataset(file, path).shape)  # of any size: nothing is read
        raise self._no_dataset(index, path)

    def _no_dataset(self, index: Index, path: str) -> KeyError:
        known = sorted({*index.columns, *index.statics})
        return KeyError(f"{self.name} holds no dataset {path!r}; it holds {', '.join(known) or 'none'}")

    def _read_column(self, column: Column, path: str, every: int) -> np.ndarray:
        """Segment by segment instead of through the virtual dataset, which fills in for missing files silently."""
        if len(column.sources) == 1:
            return self._read_segment(column.sources[0].segment, path, slice(0, column.rows, every), column)
        self._require_room(column, path)
        rows = np.empty((-(-column.rows // every), *column.shape), column.dtype)
        start = 0
        for source in column.sources:
            first = -start % every  # the first of this segment's rows that is taken
            place, end = -(-start // every), -(-(start + source.rows) // every)
            if end > place:
                part = slice(first, source.rows, every)
                rows[place:end] = self._read_segment(source.segment, path, part, column)
            start += source.rows
        return rows

    def _require_room(self, column: Column, path: str) -> None:
        """Raise StorageError before memory is asked for that segments, which are not compressed, cannot fill."""
        files = [self._segment(name) for name in {source.segment for source in column.sources}]
        wanted = column.rows * math.prod(column.shape) * column.dtype.itemsize
        if all([file.is_file() for file in files]) and wanted > sum([file.stat().st_size for file in files]):
            raise StorageError(
                f"{self._file} is damaged: {path} has {column.rows} rows there, more than its segments can hold. "
                "Restore it from a copy or run again."
            )

    def _read_row(self, index: Index, path: str, number: int) -> np.ndarray:
        rows, place = self._shape(index, path)[0], number
        if not 0 <= number < rows:
            raise row_error(path, self.name, rows, number)
        if path in index.statics:
            return self._read_segment(index.statics[path], path, number)
        column = index.columns[path]
        for source in column.sources:
            if place < source.rows:
                break
            place -= source.rows
        return self._read_segment(source.segment, path, place, column)

    def _read_attrs(self, index: Index, path: str) -> dict[str, object]:
        if path in index.statics:
            with open_file(self._segment(index.statics[path]), cut_off=True) as file:
                return read_attrs(self._dataset(file, path))
        if path in index.columns:
            return dict(index.columns[path].attrs)
        if path == "" or path in index.paths():
            return dict(index.attrs.get(path, {}))
        raise KeyError(f"{self.name} holds no {path!r}")

    def _read_segment(
        self, segment: str, path: str, rows: int | slice | tuple[()] = (), column: Column | None = None
    ) -> np.ndarray:
        with open_file(self._segment(segment), cut_off=True) as file:
            dataset = self._dataset(file, path)
            require_whole(dataset)
            if column is not None:
                require_rows(dataset, column, rows)
            return decode(np.asarray(dataset[rows]))

    def _segment(self, name: str) -> Path:
        return self._file if name == HERE else self.folder / SEGMENT_FOLDER / name

    def _dataset(self, file: h5py.File, path: str) -> h5py.Dataset:
        """Find a dataset, whose own file holds it.

        FileNotFoundError where the file refers to another one: it was complete, and has been resumed since.
        """
        parts = path.split("/")
        links = [file.get("/".join(parts[: depth + 1]), getlink=True) for depth in range(len(parts))]
        if all(link is None or isinstance(link, h5py.HardLink) for link in links) and file.get(path) is None:
            raise ValueError(f"its dataset {path} is missing")
        found = None if any([isinstance(link, h5py.ExternalLink) for link in links]) else file[path]
        if found is None or (isinstance(found, h5py.Dataset) and found.is_virtual):
            raise FileNotFoundError(f"the file to which {path} of {self._file} is a link,")
        return found


def row_error(path: str, name: str, rows: int, number: int) -> IndexError:
    return IndexError(f"{path} of {name} has {rows} rows, no row {number}")
