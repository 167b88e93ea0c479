"""Files of numbers of every kind that scenes read (never a pickle), damaged."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .mutations import damage

SHAPE = (12, 5)


def _text(values: np.ndarray[Any, Any], divider: str) -> bytes:
    return "\n".join(divider.join(f"{x:.6g}" for x in row) for row in values).encode()


def _hdf5(values: np.ndarray[Any, Any]) -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        for name, column in zip(("time", "value"), values.T, strict=False):
            opened.create_dataset(name, data=column, chunks=(4,), compression="gzip")
    return file.getvalue()


def _numpy(save: Callable[..., None], **arrays: Any) -> bytes:
    file = io.BytesIO()
    save(file, *([arrays.pop("array")] if "array" in arrays else []), **arrays)
    return file.getvalue()


def _picture(values: np.ndarray[Any, Any]) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray((255 * values).astype(np.uint8)).save(file, format="png")
    return file.getvalue()


def _make(kind: str) -> bytes:
    values = np.random.default_rng(0).random(SHAPE)
    match kind:
        case "txt":
            return b"% time a b c d\n" + _text(values, " ")
        case "csv":
            return b"time,a,b,c,d\n" + _text(values, ",")
        case "h5":
            return _hdf5(values)
        case "npy":
            return _numpy(np.save, array=values)
        case "npz":
            return _numpy(np.savez_compressed, time=values[:, 0], value=values[:, 1])
        case _:
            return _picture(values)


KINDS = ("txt", "csv", "h5", "npy", "npz", "png")


class FileTarget:
    """A small file of a kind, read in every way in which scenes read such files."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind, self._content, self._path = kind, _make(kind), folder / f"data.{kind}"
        self._path.write_bytes(self._content)
        for read in self._ways():
            read()

    def _ways(self) -> list[Callable[[], Any]]:
        from simphys.files.columns import open_table
        from simphys.files.field_file import read_field, read_named

        tables: list[Callable[[], Any]] = [
            lambda: open_table(self._path).column(0),
            lambda: open_table(self._path).column("time"),
        ]
        named: list[Callable[[], Any]] = [lambda: read_named(self._path, ("time", "value"), source=str(self._path))]
        field: list[Callable[[], Any]] = [lambda: read_field(self._path, [SHAPE, SHAPE[::-1]])]
        by_kind = {"txt": [tables[0], *field], "csv": tables, "h5": [tables[1], *named], "npz": named}
        return by_kind.get(self._kind, field)

    def make_case(self, chance: random.Random) -> tuple[str, Callable[[], Any]]:
        self._path.write_bytes(damage(self._content, chance))
        return f"damage {self._path.name}", chance.choice(self._ways())
