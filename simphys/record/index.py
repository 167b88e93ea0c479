"""What run.h5 says: which rows of which table lie in which segment, and the static datasets and attributes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import h5py
import numpy as np

from simphys.record.storage import build_file, create_dataset, open_file, storable, write_attrs

INDEX_NAME = "run.h5"
SEGMENT_FOLDER = "segments"
INDEX_DATASET = "segments"


@dataclass(frozen=True)
class Source:
    """`rows` consecutive rows of a table in `segment`, a file name in the folder of segments."""

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
        """Names of every file that is referred to."""
        return set(self.statics.values()) | {s.segment for c in self.columns.values() for s in c.sources}

    def table(self, group: str) -> dict[str, Column]:
        """The columns of a table by name."""
        prefix = f"{group}/"
        return {p.removeprefix(prefix): c for p, c in self.columns.items() if p.rpartition("/")[0] == group}

    def to_bytes(self) -> bytes:
        """The HDF5 file: columns as virtual datasets, statics as external links, attributes on their groups.

        The index itself lies beside them as text, as it is read from there: HDF5 keeps the parts of a virtual
        dataset without a checksum, and a flipped bit among them can send the library into an endless loop.
        """
        return build_file(self._fill)

    def _fill(self, file: h5py.File) -> None:
        create_dataset(file, INDEX_DATASET, storable([json.dumps(asdict(self), default=_plain)]), {})
        for path, column in self.columns.items():
            write_attrs(_create_column(file, path, column), column.attrs)
        for path, segment in self.statics.items():
            file[path] = h5py.ExternalLink(f"{SEGMENT_FOLDER}/{segment}", f"/{path}")
        for group, attrs in self.attrs.items():
            write_attrs(file.require_group(f"/{group}"), attrs)


def _plain(value: object) -> object:
    """What JSON does not know: types, and NumPy's numbers and arrays among the attributes."""
    if isinstance(value, np.dtype):
        return value.str
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"an attribute is a number, a text or a list of these, not {value!r}")


def _create_column(file: h5py.File, path: str, column: Column) -> h5py.Dataset:
    layout = h5py.VirtualLayout((column.rows, *column.shape), column.dtype)
    start = 0
    for source in column.sources:
        shape = (source.rows, *column.shape)
        name = f"{SEGMENT_FOLDER}/{source.segment}"
        layout[start : start + source.rows] = h5py.VirtualSource(name, path, shape=shape, dtype=column.dtype)
        start += source.rows
    # Other programs see this value where a segment is gone; Recording refuses instead.
    lost = np.nan if column.dtype.kind == "f" else None
    return file.create_virtual_dataset(path, layout, fillvalue=lost)


def load_index(folder: Path) -> Index:
    """Read run.h5. FileNotFoundError: there is none; StorageError: it is not what was written."""
    with open_file(folder / INDEX_NAME) as file:
        text = json.loads(file[INDEX_DATASET][0])
    columns = {
        path: Column(
            dtype=np.dtype(column["dtype"]),
            shape=tuple(column["shape"]),
            attrs=column["attrs"],
            sources=tuple(Source(**source) for source in column["sources"]),
        )
        for path, column in text["columns"].items()
    }
    return Index(columns, text["statics"], text["attrs"])
