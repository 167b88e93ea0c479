"""Export of a run to files that other programs read: VTKHDF (ParaView), CSV, NPZ (NumPy), or NetCDF (xarray)."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recording, damage_as_errors, list_parts, name_group
from simphys.runs.column_heads import head_columns
from simphys.runs.to_xarray import write_xarray

FORMATS = ("vtkhdf", "csv", "npz", "xarray")
BODIES, FIELDS = "particles/nodes", "fields"
KINDS = ("Vertices", "Lines", "Polygons", "Strips")
"""Kinds of cells of VTK's PolyData, in its order."""


def export_run(recording: Recording, folder: Path, kind: str) -> list[Path]:
    """Write a run to files in a folder; return their paths.

    npz: every dataset in one file, by its path. csv: a file for each quantity along time, with a column for each number
    and units in the heads. vtkhdf: bodies with their springs in bodies.vtkhdf, fields on a grid in fields.vtkhdf.
    xarray: a Dataset with named axes and units as run.nc, see `to_xarray`. With several experiments, each has files of
    its own, named after it.
    Of a damaged run, npz and csv hold the datasets that can be read; then the error for the others is raised.
    Errors: InputError for another format, or a run without such data; StorageError for a file that cannot be written,
    or datasets that cannot be read.
    """
    if kind not in FORMATS:
        raise InputError("export, --to", f"must be one of {', '.join(FORMATS)}", repr(kind), "Name one of these.")
    damage: list[StorageError] = []
    write: dict[str, Callable[[Recording, Path], list[Path]]] = {
        "npz": partial(_write_npz, damage=damage),
        "csv": partial(_write_csv, damage=damage),
        "vtkhdf": partial(_write_each, _write_vtkhdf),
        "xarray": partial(_write_each, write_xarray),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with damage_as_errors(recording.name, f"export to {kind}"):
            paths = write[kind](recording, folder)
    except StorageError as error:  # the run cannot be read
        raise StorageError(f"{error} `--to csv` or `--to npz` writes what can be read.") from error
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"export to {folder} failed: {reason}. Name another folder, or free space.") from error
    if damage:
        written = ", ".join([path.name for path in paths])
        raise StorageError(f"{damage[0]} Written all the same: {written or 'nothing'}.") from damage[0]
    if not paths:
        raise _nothing_written(recording)
    return paths


def _write_each(write: Callable[[Recording, Path, str], list[Path]], recording: Recording, folder: Path) -> list[Path]:
    """Write the run, or each of its experiments that has a motion; files of these begin like those of csv."""
    parts = {f"{name_group(name)}_".replace("/", "_"): own for name, own in list_parts(recording).items()}
    chosen = {prefix: own for prefix, own in parts.items() if _moving(own)} if parts else {"": recording}
    return [path for prefix, own in chosen.items() for path in write(own, folder, prefix)]


def _moving(recording: Recording) -> list[str]:
    """Name the recorded states."""
    names = [(group, name) for group in (BODIES, FIELDS) for name in recording.keys(group)]
    return [name for group, name in names if f"{group}/{name}/value" in recording]


def _nothing_written(recording: Recording) -> InputError:
    """Make the error for a run that holds nothing of the kind that was asked for."""
    source = f"export of {recording.name}"
    names = {name for own in [recording, *list_parts(recording).values()] for name in _moving(own)}
    if not names:
        return InputError(source, "needs a recorded motion", "none", "Run the scene again.")
    constraint = "needs positions of bodies, or fields on a grid, without members of a batch"
    remedy = "Write the numbers along time: --to csv, npz or xarray."
    return InputError(source, constraint, f"only {', '.join(sorted(names))}", remedy)


def _datasets(recording: Recording, group: str = "") -> list[str]:
    found = []
    for name in recording.keys(group):
        path = f"{group}/{name}".lstrip("/")
        below = _datasets(recording, path)
        found += below or ([path] if _is_dataset(recording, path) else [])
    return found


def _is_dataset(recording: Recording, path: str) -> bool:
    try:
        recording.shape(path)
    except KeyError:
        return False
    except StorageError:  # a damaged one
        return True
    return True


def _write_npz(recording: Recording, folder: Path, *, damage: list[StorageError]) -> list[Path]:
    arrays: dict[str, Any] = {}
    for path in _datasets(recording):
        try:
            arrays[path] = recording[path]
        except StorageError as error:
            damage.append(error)
    arrays = {path: values.astype(str) if values.dtype.kind == "O" else values for path, values in arrays.items()}
    np.savez_compressed(folder / "run.npz", **arrays)
    return [folder / "run.npz"]


def _write_csv(recording: Recording, folder: Path, *, damage: list[StorageError]) -> list[Path]:
    paths = []
    for path in _datasets(recording):
        group, _, name = path.rpartition("/")
        if name in ("time", "step") or f"{group}/time" not in recording:
            continue
        try:
            time, values = recording[f"{group}/time"], recording[path]
        except StorageError as error:
            damage.append(error)
            continue
        if len(values) != len(time) or values.dtype.kind not in "iuf":
            continue
        paths.append(folder / f"{(group if name == 'value' else path).replace('/', '_')}.csv")
        with paths[-1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([f"time [{recording.units.time}]", *head_columns(recording, path)])
            writer.writerows(np.column_stack([time, values.reshape(len(time), -1)]).tolist())
    return paths


def _write_vtkhdf(recording: Recording, folder: Path, prefix: str) -> list[Path]:
    paths = []
    if f"{BODIES}/position/value" in recording:
        paths.append(folder / f"{prefix}bodies.vtkhdf")
        _write_bodies(recording, paths[-1])
    about: dict[str, Any] = recording.attrs("grid") if "grid" in recording else {}
    fields = [name for name in about.get("fields", []) if f"{FIELDS}/{name}/value" in recording]
    if fields and "members" not in about:
        paths.append(folder / f"{prefix}fields.vtkhdf")
        _write_fields(recording, paths[-1], about, fields)
    return paths


def _in_space(vectors: np.ndarray) -> np.ndarray:
    """Fill vectors [..., dim] with zeros to three components."""
    missing = [(0, 0)] * (vectors.ndim - 1) + [(0, 3 - vectors.shape[-1])]
    return np.pad(vectors, missing)


def _write_bodies(recording: Recording, path: Path) -> None:
    """Write PolyData along time: a vertex for each body, a line for each spring, and velocities."""
    position = recording[f"{BODIES}/position/value"]
    time, count = recording[f"{BODIES}/position/time"][: len(position)], position.shape[1]
    springs = recording[f"{BODIES}/springs"] if f"{BODIES}/springs" in recording else np.zeros((0, 2), int)
    steps = len(position)
    cells = {"Vertices": np.arange(count)[:, None], "Lines": springs}
    with h5py.File(path, "w") as file:
        root = _root(file, "PolyData")
        root["NumberOfPoints"] = np.full(steps, count)
        root["Points"] = _in_space(position).reshape(-1, 3)
        for kind in KINDS:
            members = cells.get(kind, np.zeros((0, 2), int))
            group = root.create_group(kind)
            group["NumberOfCells"] = np.array([len(members)])
            group["NumberOfConnectivityIds"] = np.array([members.size])
            group["Connectivity"] = members.reshape(-1).astype(np.int64)
            group["Offsets"] = np.arange(len(members) + 1) * members.shape[1]
        data = root.create_group("PointData")
        velocity = f"{BODIES}/velocity/value"
        if _has_rows(recording, velocity, steps):
            data["velocity"] = _in_space(recording[velocity][:steps]).reshape(-1, 3)
        for name in recording.keys("stresses") if not len(springs) else ():
            if _has_rows(recording, f"stresses/{name}/value", steps):
                data[name] = recording[f"stresses/{name}/value"][:steps].reshape(-1)
        series = _steps(root, time)
        series["PointOffsets"] = np.arange(steps) * count
        series["PartOffsets"], series["NumberOfParts"] = np.zeros(steps, np.int64), np.ones(steps, np.int64)
        for name in ("CellOffsets", "ConnectivityIdOffsets"):
            series[name] = np.zeros((steps, len(KINDS)), np.int64)
        offsets = series.create_group("PointDataOffsets")
        for name in data:
            offsets[name] = np.arange(steps) * count


def _has_rows(recording: Recording, path: str, count: int) -> bool:
    """True for a dataset with so many rows: one that has lost its end has fewer, for which VTK has no place."""
    return path in recording and recording.shape(path)[0] >= count


def _write_fields(recording: Recording, path: Path, about: dict[str, Any], fields: list[str]) -> None:
    """Write ImageData along time: a number for each cell; fields of another shape are left out."""
    cells, spacing = tuple(int(n) for n in about["cells"]), float(about["spacing"])
    extent = [0, 1, 0, 1, 0, 1]  # VTK's cells have three axes; a plane is one cell thick
    for axis, number in enumerate(cells):
        extent[2 * axis + 1] = number
    with h5py.File(path, "w") as file:
        root = _root(file, "ImageData")
        start = spacing * (float(about["offset"]) - 0.5)
        root.attrs["WholeExtent"] = np.array(extent)
        root.attrs["Origin"] = np.array([start if axis < len(cells) else 0.0 for axis in range(3)])
        root.attrs["Spacing"] = np.full(3, spacing)
        root.attrs["Direction"] = np.eye(3).reshape(-1)
        data, time = root.create_group("CellData"), np.zeros(0)
        for name in fields:
            values = recording[f"{FIELDS}/{name}/value"]
            if values.shape[1:] != cells or len(values) < len(time):
                continue
            time = recording[f"{FIELDS}/{name}/time"][: len(values)]
            reversed_axes = values.transpose(0, *range(values.ndim - 1, 0, -1))  # VTK's last axis is x
            data[name] = reversed_axes.reshape(len(values), *[1] * (3 - len(cells)), *cells[::-1])
        offsets = _steps(root, time).create_group("CellDataOffsets")
        for name in data:
            offsets[name] = np.arange(len(time))


def _root(file: h5py.File, kind: str) -> h5py.Group:
    root = file.create_group("VTKHDF")
    root.attrs["Version"] = np.array([2, 0])
    root.attrs.create("Type", kind.encode("ascii"), dtype=h5py.string_dtype("ascii", len(kind)))
    return root


def _steps(root: h5py.Group, time: np.ndarray) -> h5py.Group:
    series = root.create_group("Steps")
    series.attrs["NSteps"] = len(time)
    series["Values"] = time
    return series
