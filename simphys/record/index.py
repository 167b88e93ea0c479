"""What run.h5 says: which rows of which table lie in which segment, and the static datasets and attributes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import h5py
import numpy as np

from simphys.record.storage import build_file, open_file, read_attrs, write_attrs

INDEX_NAME = "run.h5"
SEGMENT_FOLDER = "segments"


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
        """The HDF5 file: columns as virtual datasets, statics as external links, attributes on their groups."""
        return build_file(self._fill)

    def _fill(self, file: h5py.File) -> None:
        for path, column in self.columns.items():
            write_attrs(_create_column(file, path, column), column.attrs)
        for path, segment in self.statics.items():
            file[path] = h5py.ExternalLink(f"{SEGMENT_FOLDER}/{segment}", f"/{path}")
        for group, attrs in self.attrs.items():
            write_attrs(file.require_group(f"/{group}"), attrs)


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
    index = Index()
    with open_file(folder / INDEX_NAME) as file:
        _visit(file, "", index)
    return index


def _visit(group: h5py.Group, path: str, index: Index) -> None:
    index.attrs[path] = read_attrs(group)
    for name in group:
        inner = f"{path}/{name}".lstrip("/")
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            index.statics[inner] = Path(link.filename).name
        elif isinstance(group[name], h5py.Group):
            _visit(group[name], inner, index)
        else:
            index.columns[inner] = _load_column(group[name])


def _load_column(dataset: h5py.Dataset) -> Column:
    sources = []
    for part in dataset.virtual_sources():
        first, last = part.vspace.get_select_bounds()
        sources.append((first[0], Source(Path(part.file_name).name, last[0] - first[0] + 1)))
    ordered = tuple(source for _, source in sorted(sources, key=lambda pair: pair[0]))
    return Column(dataset.dtype, dataset.shape[1:], read_attrs(dataset), ordered)
