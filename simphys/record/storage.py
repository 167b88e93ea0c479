"""HDF5 files: put on disk atomically, with a checksum on every byte that holds data."""

from __future__ import annotations

import io
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from simphys.autograd.errors import StorageError
from simphys.record.cut_off import PaddedFile, measure

CHUNK_BYTES = 1 << 20
COMPACT_BYTES = 60_000  # HDF5 keeps up to 64 kB inside the (checksummed) object header
# The first HDF5 with virtual datasets is also the first whose every metadata block carries a checksum.
LIBRARY_VERSIONS = ("v110", "v110")
STORED: dict[str, Any] = {"compression": "gzip", "compression_opts": 0}


def build_file(fill: Callable[[h5py.File], None]) -> bytes:
    """Build the HDF5 file that `fill` fills; return its bytes. Nothing is written to a disk."""
    name = f"in memory {id(fill)}"  # HDF5 refuses two open files of one name
    with h5py.File(name, "w", driver="core", backing_store=False, libver=LIBRARY_VERSIONS) as file:
        fill(file)
        file.flush()
        return file.id.get_file_image()


@contextmanager
def open_file(path: Path, *, cut_off: bool = False) -> Iterator[h5py.File]:
    """Open a file for reading. FileNotFoundError: no such file; StorageError: its content is damaged.

    HDF5 reads through a Python file, as its own would take locks and fail beside other open handles of the same file.
    With `cut_off`, a file whose end is missing is opened, too: what it still holds can be read.
    """
    if not path.exists():
        raise FileNotFoundError(path)
    try:
        if not path.is_file():  # a pipe would be waited for
            raise OSError("not a file")
        with path.open("rb") as raw:
            sizes = measure(path)
            source = PaddedFile(raw, sizes) if cut_off and sizes.is_cut_off else raw
            with h5py.File(source, "r") as file:
                yield file
    except (FileNotFoundError, StorageError):  # raised by the caller, about another file
        raise
    except Exception as error:  # what HDF5 raises on a damaged file is not documented
        raise StorageError(
            f"{path} cannot be read: the file is damaged or is no recording ({' '.join(str(error).split())[:300]}). "
            "Restore it from a copy or run again; the other files of the run are not affected."
        ) from error


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` at `path` so that at any moment either the old or the new file is there, complete.

    Raises OSError (disk full, no permission); the old file is then untouched.
    """

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    _replace(path, write)


def replace_file_in_blocks(path: Path, fill: Callable[[h5py.File], Iterator[None]]) -> None:
    """Replace a file like `replace_file`, by an HDF5 file of any size: `fill` writes a block before each of its yields.

    Errors: OSError, and StorageError where `fill` meets a damaged file; the old file is then untouched.
    """

    def write(temporary: Path) -> None:
        with _DeferringFile(temporary, "w+") as raw:
            with h5py.File(raw, "w", libver=LIBRARY_VERSIONS, rdcc_nbytes=4 * CHUNK_BYTES) as file:
                for _ in fill(file):
                    raw.raise_error()
            raw.raise_error()
            os.fsync(raw.fileno())

    _replace(path, write)


class _DeferringFile(io.FileIO):
    """File for HDF5 that remembers the error of a write instead of raising it: HDF5 crashes later if a write fails."""

    _error: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while len(rest) and self._error is None:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self._error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self._error = self._error or error
            return self.tell()

    def raise_error(self) -> None:
        """Raise the first error of a write or a change of size, if there was one."""
        if self._error is not None:
            raise self._error


def link_file(path: Path, to: Path) -> None:
    """Make the content of `path` available at `to`, too: by a hard link, or as a copy where there are none."""
    try:
        os.link(path, to)
    except OSError:
        _replace(to, lambda temporary: _copy(path, temporary))
    else:
        _sync_folder(to.parent)


def _copy(path: Path, to: Path) -> None:
    with open(path, "rb") as source, open(to, "wb") as file:
        shutil.copyfileobj(source, file, CHUNK_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    """Replace `path` by the file that `write` makes, durably and atomically."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        write(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows neither needs nor allows it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_storable(value: object) -> np.ndarray:
    """Convert to an array that HDF5 stores in place: numbers, booleans, or text of fixed length in UTF-8.

    Text of variable length would lie in HDF5's heap, the only place without a checksum.
    """
    array = np.asarray(value)
    if array.dtype.kind == "U":
        encoded = np.char.encode(array, "utf-8")
        return encoded.astype(h5py.string_dtype("utf-8", max(1, encoded.dtype.itemsize)))
    if array.dtype.kind not in "biufcS":
        raise TypeError(f"a recording holds numbers, booleans and text, not {array.dtype} ({value!r})")
    return array


def create_dataset(file: h5py.File, path: str, array: np.ndarray, attrs: Mapping[str, object]) -> None:
    """Store an array from `to_storable` under a checksum."""
    fill_dataset(declare_dataset(file, path, array, attrs), array)


def fill_dataset(dataset: h5py.Dataset, array: np.ndarray) -> None:
    """Store the numbers of an array whose dataset was declared."""
    if dataset.chunks is not None:
        dataset[...] = array


def declare_dataset(file: h5py.File, path: str, array: np.ndarray, attrs: Mapping[str, object]) -> h5py.Dataset:
    """Create the dataset of an array; what lies in its header is stored already."""
    if array.ndim == 0 and array.nbytes <= COMPACT_BYTES:
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        dataset = file.create_dataset(path, data=array, dcpl=compact)
    elif array.ndim == 0:
        raise ValueError(f"{path} is a scalar of {array.nbytes} bytes: store it as an array of one element")
    elif array.size == 0:
        dataset = file.create_dataset(path, data=array)
    else:
        dataset = create_rows(file, path, array.shape, array.dtype)
    write_attrs(dataset, attrs)
    return dataset


def create_rows(file: h5py.File, path: str, shape: tuple[int, ...], dtype: np.dtype) -> h5py.Dataset:
    """Create a dataset with checksums, to be filled: chunks of about 1 MiB along its first axis. Its size is not 0.

    HDF5's checksum of zeros is zero, so that a chunk of zeros, all that a disk may have left, passes it. So chunks are
    streams of zlib (level 0: stored, not compressed), which begin with a header.
    """
    rows = max(1, min(shape[0], CHUNK_BYTES // max(1, math.prod(shape[1:]) * dtype.itemsize)))
    return file.create_dataset(path, shape=shape, dtype=dtype, chunks=(rows, *shape[1:]), fletcher32=True, **STORED)


def write_attrs(target: h5py.HLObject, attrs: Mapping[str, object]) -> None:
    for name, value in attrs.items():
        target.attrs[name] = to_storable(value)


def read_attrs(source: h5py.HLObject) -> dict[str, object]:
    """Read attributes as Python numbers, text and lists."""
    return {name: decode(np.asarray(value)).tolist() for name, value in source.attrs.items()}


def decode(array: np.ndarray) -> np.ndarray:
    """Convert stored text to str; leave everything else unchanged."""
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def build_segment(datasets: Mapping[str, np.ndarray], attrs: Mapping[str, Mapping[str, object]] | None = None) -> bytes:
    """Build a file of datasets (path -> array from `to_storable`), with attributes by the path of the dataset.

    All names stand before the first number, small arrays before large ones: a file that is cut off still has them.
    """

    def fill(file: h5py.File) -> None:
        for path, array in datasets.items():
            declare_dataset(file, path, array, (attrs or {}).get(path, {}))
        file.flush()
        for path in sorted(datasets, key=lambda path: datasets[path].nbytes):
            fill_dataset(file[path], datasets[path])  # written as soon as nothing refers to it

    return build_file(fill)
