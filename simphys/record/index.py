"""The index of a run: the segment of every row and static dataset, and the attributes of groups."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from simphys.record.contents import KINDS, require_whole
from simphys.record.storage import build_file, create_dataset, open_file, to_storable, write_attrs

INDEX_NAME = "run.h5"
SEGMENT_FOLDER = "segments"
INDEX_DATASET = "segments"
HERE = "."
"""The name of the segment that is the file of the index itself: a complete run is one file."""
INCOMPLETE = "Incomplete run: its arrays lie in the folder segments/. Copy or move the folder of the run as a whole."
"""The attribute `note` of run.h5 until the run completes, for readers with other programs."""


@dataclass(frozen=True)
class Source:
    """`rows` consecutive rows of a table in `segment`, a file name in the folder of segments, or HERE."""

    segment: str
    rows: int


@dataclass(frozen=True)
class Column:
    """A growing dataset: one entry of `shape` and `dtype` a row; its rows are those of `sources`, one after another."""

    dtype: np.dtype
    shape: tuple[int, ...]
    attrs: dict[str, object]
    sources: tuple[Source, ...] = ()

    @property
    def rows(self) -> int:
        return sum(source.rows for source in self.sources)

    def without(self, segments: set[str]) -> Column:
        return replace(self, sources=tuple(s for s in self.sources if s.segment not in segments))

    def followed_by(self, source: Source) -> Column:
        return replace(self, sources=(*self.sources, source))


@dataclass(frozen=True)
class Index:
    """The content of run.h5. Paths have no leading slash; the root group is ''."""

    columns: dict[str, Column] = field(default_factory=dict)
    statics: dict[str, str] = field(default_factory=dict)  # path of a dataset -> its segment
    attrs: dict[str, dict[str, object]] = field(default_factory=dict)  # path of a group -> its attributes

    def segments(self) -> set[str]:
        """Return the names of all files that hold data besides run.h5; none for a complete run."""
        names = set(self.statics.values()) | {s.segment for c in self.columns.values() for s in c.sources}
        return names - {HERE}

    def table(self, group: str) -> dict[str, Column]:
        """Return the columns of a table by name."""
        prefix = f"{group}/"
        return {p.removeprefix(prefix): c for p, c in self.columns.items() if p.rpartition("/")[0] == group}

    def paths(self) -> set[str]:
        """Return the paths of all datasets and groups."""
        return add_groups({*self.columns, *self.statics, *self.attrs})

    def within(self, segment: str) -> Index:
        """Return the index of the same run with all of its data in one segment."""
        columns = {p: replace(c, sources=(Source(segment, c.rows),)) for p, c in self.columns.items()}
        return replace(self, columns=columns, statics=dict.fromkeys(self.statics, segment))

    def to_bytes(self) -> bytes:
        """Build the HDF5 file: columns as virtual datasets, statics as external links, attributes on their groups.

        Recordings are read by the text of the index, which lies beside them under a checksum. HDF5 keeps the parts of
        a virtual dataset without one, and a flipped bit among them can send the library into an endless loop.
        """
        return build_file(self._fill)

    def _fill(self, file: h5py.File) -> None:
        self.write_text(file)
        file.attrs["note"] = to_storable(INCOMPLETE)
        for path, column in self.columns.items():
            write_attrs(_create_virtual(file, path, column), column.attrs)
        for path, segment in self.statics.items():
            file[path] = h5py.ExternalLink(f"{SEGMENT_FOLDER}/{segment}", f"/{path}")
        self.write_group_attrs(file)

    def write_text(self, file: h5py.File) -> None:
        """Store the index as text."""
        create_dataset(file, INDEX_DATASET, to_storable([json.dumps(asdict(self), default=_to_json)]), {})

    def write_group_attrs(self, file: h5py.File) -> None:
        """Store the attributes of all groups, which are made where there are none."""
        for group, attrs in self.attrs.items():
            write_attrs(file.require_group(f"/{group}"), attrs)


def add_groups(paths: set[str]) -> set[str]:
    """Add the paths of all groups around some datasets and groups."""
    return {"/".join(path.split("/")[:depth]) for path in paths - {""} for depth in range(1, path.count("/") + 2)}


def _to_json(value: object) -> object:
    """Convert types, and NumPy's numbers and arrays among the attributes, to JSON."""
    if isinstance(value, np.dtype):
        return value.str
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"an attribute is a number, a text or a list of these, not {value!r}")


def _create_virtual(file: h5py.File, path: str, column: Column) -> h5py.Dataset:
    layout = h5py.VirtualLayout((column.rows, *column.shape), column.dtype)
    start = 0
    for source in column.sources:
        shape = (source.rows, *column.shape)
        name = f"{SEGMENT_FOLDER}/{source.segment}"
        layout[start : start + source.rows] = h5py.VirtualSource(name, path, shape=shape, dtype=column.dtype)
        start += source.rows
    # Other programs see this value where a segment is missing; Recording raises an error.
    fill_value = np.nan if column.dtype.kind == "f" else None
    return file.create_virtual_dataset(path, layout, fillvalue=fill_value)


def load_index(file: Path, *, cut_off: bool = False) -> Index:
    """Read the index of a run. FileNotFoundError: no such file; StorageError: its content is damaged.

    With `cut_off`, the end of the file may be missing: see `open_file`.
    """
    with open_file(file, cut_off=cut_off) as opened:
        require_whole(opened[INDEX_DATASET])
        text = json.loads(opened[INDEX_DATASET][0])
        columns = {_path(path): _read_column(column) for path, column in _table(text["columns"]).items()}
        statics = {_path(path): _segment(name) for path, name in _table(text["statics"]).items()}
        attrs = {_path(path): _attrs(values) for path, values in _table(text["attrs"]).items()}
    return Index(columns, statics, attrs)


def _read_column(text: Any) -> Column:
    column, dtype = _table(text), np.dtype(str(text["dtype"]))
    if dtype.kind not in KINDS:
        raise ValueError(f"a column of type {dtype}")
    sources = [(_segment(source["segment"]), _size(source["rows"])) for source in column["sources"]]
    shape = tuple([_size(number) for number in column["shape"]])
    return Column(dtype, shape, _attrs(column["attrs"]), tuple([Source(*source) for source in sources]))


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{str(value)[:80]!r} in the index, where a table should be")
    return value


def _attrs(value: Any) -> dict[str, Any]:
    """Attributes that can be written to another file."""
    for name, content in _table(value).items():
        if not name or "\0" in name or np.asarray(content).dtype.kind not in "biufU":
            raise ValueError(f"{name[:40]!r} = {str(content)[:80]!r} in the index, where an attribute should be")
    return value


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ValueError(f"{str(value)[:80]!r} in the index, where a size should be")
    return value


def _path(value: str) -> str:
    if "\0" in value or value != "/".join(part for part in value.split("/") if part not in ("", ".", "..")):
        raise ValueError(f"{value[:80]!r} in the index, where a path should be")
    return value


def _segment(value: Any) -> str:
    """The name of a segment, which lies in the folder of the run, wherever a damaged index points to."""
    if value != HERE and (not isinstance(value, str) or re.fullmatch(r"\d{6,18}\.h5", value) is None):
        raise ValueError(f"{str(value)[:80]!r} in the index, where a segment should be")
    return value
