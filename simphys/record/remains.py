"""The remains of a run of which files are cut off, by a full disk or a copy that broke: what of it can be read."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import h5py

from simphys.autograd.errors import StorageError
from simphys.record.cut_off import count_whole_rows, measure
from simphys.record.index import HERE, SEGMENT_FOLDER, Column, Index, Source, load_index
from simphys.record.storage import open_file

MOST_NAMES = 6
"""Largest number of names of lost data in a message."""


@dataclass(frozen=True)
class Remains:
    """The data of a run that can be read, and sentences on what is lost: none for a run whose files are whole."""

    index: Index
    damage: str = ""


def find_remains(file: Path) -> Remains:
    """Find what can be read of the run whose index is `file`. Errors: FileNotFoundError; StorageError if nothing is."""
    try:
        index = load_index(file, cut_off=True)
    except StorageError as error:
        if not _opens_cut_off(file):
            raise
        found = f"{_describe_cut(file)}, too few to show anything."
        raise StorageError(f"{found} Restore it from a copy or run again.") from error
    places = {name: file if name == HERE else file.parent / SEGMENT_FOLDER / name for name in {HERE, *index.segments()}}
    cut = {name: path for name, path in sorted(places.items()) if path.is_file() and measure(path).is_cut_off}
    if not cut:
        return Remains(index)
    remaining, lost = _take_whole(index, cut)
    files = "; ".join([_describe_cut(path) for path in cut.values()])
    return Remains(remaining, f"{files}. Lost: {_list(lost)}. What is left can be read.")


def _opens_cut_off(file: Path) -> bool:
    """True for a file whose end is missing, and whose first block, which says so, is whole."""
    try:
        with open_file(file, cut_off=True):
            return measure(file).is_cut_off
    except StorageError:
        return False


def _describe_cut(path: Path) -> str:
    sizes = measure(path)
    return f"{path} is cut off: it holds {sizes.held:,} of {sizes.whole:,} bytes"


def _take_whole(index: Index, cut: dict[str, Path]) -> tuple[Index, list[str]]:
    """Take what is whole of an index, given the files that are cut off by their names in it; list what is lost."""
    columns, statics, lost = dict(index.columns), dict(index.statics), []
    for name, file in cut.items():
        with open_file(file, cut_off=True) as opened:
            held = measure(file).held
            gone = [path for path, segment in statics.items() if segment == name and not _is_whole(opened, path, held)]
            columns = {path: _cut_column(opened, path, column, name, held) for path, column in columns.items()}
        statics = {path: segment for path, segment in statics.items() if path not in gone}
        lost += gone
    for group in sorted({path.rpartition("/")[0] for path in columns}):
        whole, found = index.table(group), {path: c for path, c in columns.items() if path.rpartition("/")[0] == group}
        before, rows = (min([column.rows for column in table.values()]) for table in (whole, found))
        columns |= {path: _take_rows(column, rows) for path, column in found.items()}
        if rows < before:
            lost.append(f"{group} from row {rows:,} of {before:,} on" if rows else group)
    remaining = {path: column for path, column in columns.items() if column.rows or not index.columns[path].rows}
    return replace(index, columns=remaining, statics=statics), lost


def _is_whole(file: h5py.File, path: str, held: int) -> bool:
    """True if all of a dataset can be read."""
    try:
        return count_whole_rows(file[path], held) == count_whole_rows(file[path], sys.maxsize)
    except Exception:  # its description is lost; what HDF5 raises then is not documented
        return False


def _count_rows(file: h5py.File, path: str, held: int) -> int:
    """Count the rows of a dataset that can be read: none of one whose description is lost."""
    try:
        return count_whole_rows(file[path], held)
    except Exception:  # what HDF5 raises is not documented
        return 0


def _cut_column(file: h5py.File, path: str, column: Column, segment: str, held: int) -> Column:
    """Drop the rows from the first that a segment has lost."""
    start = 0
    for source in column.sources:
        if source.segment == segment and (rows := _count_rows(file, path, held)) < source.rows:
            return _take_rows(column, start + rows)
        start += source.rows
    return column


def _take_rows(column: Column, count: int) -> Column:
    """Take the first rows of a column."""
    kept: list[Source] = []
    for source in column.sources:
        rows = min(source.rows, count - sum([each.rows for each in kept]))
        if rows > 0:
            kept.append(Source(source.segment, rows))
    return replace(column, sources=tuple(kept))


def _list(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(names[:MOST_NAMES])}{more}" if names else "nothing that is recorded"
