"""Files of HDF5 whose end is missing: how much is left, and how it is read.

HDF5 refuses them. Filled with zeros up to its size, such a file opens, and all that lies before the cut can be read;
no checksum of a recording passes on zeros, so that what is missing is an error.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import h5py

SIGNATURE = b"\x89HDF\r\n\x1a\n"
VERSIONS = (2, 3)
"""Versions of the first block of a file, whose size HDF5 keeps at END."""
END = 28


class Sizes(NamedTuple):
    """Bytes that a file holds, and those that it was written with."""

    held: int
    whole: int

    @property
    def is_cut_off(self) -> bool:
        return self.held < self.whole


def measure(path: Path) -> Sizes:
    """Compare the size of a file with the one that HDF5 has stored in it. Errors: OSError."""
    held = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(END + 8)
    if len(head) < END + 8 or not head.startswith(SIGNATURE) or head[8] not in VERSIONS:
        return Sizes(held, held)
    return Sizes(held, int.from_bytes(head[END:], "little"))


class PaddedFile(io.RawIOBase):
    """A file that is read as if zeros stood where its end is missing."""

    def __init__(self, file: BinaryIO, sizes: Sizes) -> None:
        self._file, self._size, self._place = file, sizes.whole, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._size - self._place))
        self._file.seek(self._place)
        found = self._file.read(count)
        view[:count] = found + bytes(count - len(found))
        self._place += count
        return count


def count_whole_rows(dataset: h5py.Dataset, held: int) -> int:
    """Count the rows, from the first on, whose chunks lie within the first `held` bytes of a file."""
    if dataset.chunks is None or dataset.size == 0:  # within the header of the dataset, which was read
        return len(dataset) if dataset.ndim else 1
    step, others = dataset.chunks[0], (0,) * (dataset.ndim - 1)
    for first in range(0, len(dataset), step):
        chunk = dataset.id.get_chunk_info_by_coord((first, *others))
        if chunk.byte_offset is None or chunk.byte_offset + chunk.size > held:
            return first
    return len(dataset)
