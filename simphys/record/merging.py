"""A complete run as one file: the rows of all segments, copied block by block into run.h5.

All names stand before the first number, small tables before large ones: a file that is cut off still has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from simphys.record.index import HERE, INDEX_NAME, SEGMENT_FOLDER, Column, Index
from simphys.record.storage import (
    create_dataset,
    create_rows,
    open_file,
    read_attrs,
    replace_file_in_blocks,
    write_attrs,
)

BLOCK_BYTES = 4 << 20
"""Rows are copied in blocks of about this size; merging takes little more memory."""


def merge(folder: Path, index: Index) -> Index:
    """Put one file with all data in the place of run.h5, atomically; returns its index. The segments are left alone.

    Errors: OSError, StorageError; run.h5 is then as it was.
    """
    merged, segments = index.within(HERE), folder / SEGMENT_FOLDER

    def fill(file: h5py.File) -> Iterator[None]:
        merged.write_text(file)
        merged.write_group_attrs(file)
        large = [path for path, segment in index.statics.items() if not _copy_small(file, path, segments / segment)]
        for path, column in index.columns.items():
            write_attrs(create_rows(file, path, (column.rows, *column.shape), column.dtype), column.attrs)
        file.flush()
        for path in large:
            with open_file(segments / index.statics[path]) as opened:
                yield from _copy_rows(opened[path], file[path], 0)
        for path in sorted(index.columns, key=lambda path: file[path].nbytes):  # short ones first: times, iterations
            yield from _copy_column(file[path], path, index.columns[path], segments)

    replace_file_in_blocks(folder / INDEX_NAME, fill)
    return merged


def _copy_small(file: h5py.File, path: str, segment: Path) -> bool:
    """Create a static dataset; copy it and return True if it has no rows."""
    with open_file(segment) as opened:
        source = opened[path]
        attrs, small = read_attrs(source), source.size == 0 or source.ndim == 0
        if small:
            create_dataset(file, path, np.asarray(source[()], source.dtype), attrs)
        else:
            write_attrs(create_rows(file, path, source.shape, source.dtype), attrs)
    return small


def _copy_column(target: h5py.Dataset, path: str, column: Column, segments: Path) -> Iterator[None]:
    start = 0
    for part in column.sources:
        with open_file(segments / part.segment) as opened:
            yield from _copy_rows(opened[path], target, start)
        start += part.rows


def _copy_rows(source: h5py.Dataset, target: h5py.Dataset, start: int) -> Iterator[None]:
    """Copy all rows of a dataset to the rows of another one from `start` on, block by block."""
    count = max(1, BLOCK_BYTES * len(source) // source.nbytes)
    for first in range(0, len(source), count):
        rows = source[first : first + count]
        target[start + first : start + first + len(rows)] = rows
        yield
