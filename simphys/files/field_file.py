"""Fields from files: .npy, text, and pictures as greys; measured fields from .h5 and .npz files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError

from .columns import HDF5_SIGNATURE

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

MOST_PIXELS = 2**26
"""Largest picture: its numbers take 2 GB on their way. A small file may hold a picture of any size."""
ZIP_SIGNATURE = b"PK\x03\x04"


def read_field(file: str | Path, shapes: Sequence[Shape], *, greys: Sequence[float] = (0.0, 1.0)) -> Array:
    """Read the field in a file, in the first of the shapes that fits.

    .npy, a picture (.png), or text: numbers in rows, of a field of three dimensions or more in any number of rows.
    A picture shows x to the right and y upwards: entry [i, j] of the field is its column i, row j from below; black is
    greys[0], white greys[1]. Errors: InputError for what cannot be read, another shape, or what is not finite.
    """
    path = Path(file)
    try:
        values = _read(path, greys)
    except OSError as error:
        found = error.strerror or str(error)
        raise InputError(str(path), "must be a file that can be read", found, "Correct the path.") from error
    except Exception as error:  # what a library raises on a damaged file is not documented
        remedy = "Give a .npy file, a .png picture, or text with as many numbers in each row."
        raise InputError(str(path), "must hold the numbers of a field", str(error), remedy) from error
    is_text = path.suffix.lower() not in (".npy", ".png")
    for shape in shapes:
        if values.shape == shape or (is_text and values.size == np.prod(shape, dtype=int)):
            values = values.reshape(shape)
            break
    else:
        wanted = " or ".join(str(list(shape)) for shape in dict.fromkeys(shapes))
        remedy = "Give as many numbers along each axis."
        raise InputError(str(path), f"must have the shape {wanted}", list(values.shape), remedy)
    for index in np.argwhere(~np.isfinite(values))[:1].tolist():
        found = f"{values[tuple(index)]} at {index}"
        raise InputError(str(path), "must hold finite numbers", found, "Correct the file.")
    return values


def _read(path: Path, greys: Sequence[float]) -> Array:
    kind = path.suffix.lower()
    if kind == ".npy":
        # Mapped: a header that promises more numbers than the file holds is an error before anything is allocated.
        values = np.load(path, mmap_mode="r", allow_pickle=False)
        if values.dtype.kind not in "biuf":
            raise ValueError(f"an array of {values.dtype}")
        return np.asarray(values, float)
    if kind != ".png":
        return np.asarray(np.loadtxt(path, comments=("%", "#"), ndmin=1), float)
    from matplotlib import image
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as opened:
            width, height = opened.size
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from error
    if width * height > MOST_PIXELS:
        raise ValueError(f"a picture of {width} x {height} pixels, more than {MOST_PIXELS} in all")
    picture = np.asarray(image.imread(path), float)
    if picture.ndim == 3:  # the luma of colours (ITU-R BT.601); transparency is ignored
        picture = picture[..., :3] @ (0.299, 0.587, 0.114) if picture.shape[2] >= 3 else picture[..., 0]
    return greys[0] + (greys[1] - greys[0]) * picture[::-1].T


def read_named(path: Path, names: Sequence[str], *, source: str) -> dict[str, Array]:
    """Read arrays of an HDF5 or .npz file by name. Errors: InputError for a missing file or array."""
    try:
        with path.open("rb") as file:
            start = file.read(len(HDF5_SIGNATURE))
    except OSError as error:
        remedy = "Correct the path; in a scene it is relative to the scene file."
        raise InputError(source, "must be a file that can be read", error.strerror or str(error), remedy) from None
    found = "an empty file" if not start else f"one that begins with {start[:4]!r}"
    try:
        if start == HDF5_SIGNATURE:
            import h5py

            with h5py.File(path, "r", locking=False) as opened:
                arrays = {name: item for name, item in opened.items() if isinstance(item, h5py.Dataset)}
                return _pick(arrays, names, source)
        if start.startswith(ZIP_SIGNATURE):
            with np.load(path, allow_pickle=False) as archive:
                return _pick(archive, names, source)
    except Exception as error:  # of damage that a library meets
        if isinstance(error, InputError):
            raise
        raise InputError(source, "must be readable", str(error), "Restore it from a copy.") from error
    raise InputError(source, "must be an HDF5 or an .npz file", found, "Convert it.")


def _pick(arrays: Mapping[str, Any], names: Sequence[str], source: str) -> dict[str, Array]:
    for name in names:
        if name not in arrays:
            known = ", ".join(arrays) or "none"
            constraint = f"must have a dataset {name!r}"
            raise InputError(source, constraint, f"datasets: {known}", f"Name one of them {name!r}.")
    made = {name: np.asarray(arrays[name][()]) for name in names}
    for name, values in made.items():
        if values.dtype.kind not in "iuf":
            raise InputError(f"{source}, {name}", "must hold numbers", str(values.dtype), "Store numbers.")
    return made
