"""Checks of what a run holds: damage that HDF5's checksums do not see, or that another program wrote under new ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import h5py
import numpy as np

from simphys.autograd.errors import InputError

KINDS = "biufcS"
"""Kinds of NumPy's types that runs hold: numbers, booleans, text of fixed length."""


def require_whole(dataset: h5py.Dataset) -> None:
    """Raise ValueError unless the file holds as many bytes as a dataset declares: HDF5 makes up zeros for others."""
    if not isinstance(dataset, h5py.Dataset):
        raise ValueError(f"{dataset.name} is a group, not a dataset")
    if dataset.dtype.kind not in KINDS:
        raise ValueError(f"{dataset.name} is of type {dataset.dtype}, not numbers or text")
    held = wanted = 0
    if dataset.external:
        raise ValueError(f"{dataset.name} lies in another file")
    if 0 not in dataset.shape and dataset.chunks is None:
        held, wanted = dataset.id.get_storage_size(), math.prod(dataset.shape) * dataset.dtype.itemsize
    elif 0 not in dataset.shape:
        held = dataset.id.get_num_chunks()
        wanted = math.prod([-(-n // m) for n, m in zip(dataset.shape, dataset.chunks, strict=True)])
    if held < wanted:
        raise ValueError(f"{dataset.name} declares the shape {list(dataset.shape)}, of which the file holds a part")


class RowsLike(Protocol):
    """Rows of a table: the shape and the type of each."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...


def require_rows(dataset: h5py.Dataset, column: RowsLike, rows: int | slice | tuple[()]) -> None:
    """Raise ValueError unless a dataset has the rows that the index says: as many, of this shape and type."""
    stop = rows.stop if isinstance(rows, slice) else rows + 1 if isinstance(rows, int) else len(dataset)
    found = (tuple(dataset.shape[1:]), dataset.dtype)
    if len(dataset) < stop or found != (column.shape, column.dtype):
        wanted = f"{stop} rows of {list(column.shape)}, {column.dtype}"
        raise ValueError(f"{dataset.name} has the shape {list(dataset.shape)}, {dataset.dtype}, not {wanted}")


@contextmanager
def damage_as_errors(name: str, use: str) -> Iterator[None]:
    """Turn any error but ours, of code that uses the data of a run, into an InputError that names run and use."""
    try:
        yield
    except (InputError, OSError):  # of the disk that is written to
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(
            f"{use} of {name}",
            "needs the data that simphys records",
            f"{type(error).__name__}: {text}",
            "Restore the run from a copy, or run its scene again; `simphys --debug` shows where it fails.",
        ) from error
