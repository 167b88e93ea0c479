"""A run as a Dataset of xarray: quantities with named axes, coordinates and units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.record import Recording, list_parts

BODIES, FIELDS = "particles/nodes", "fields"
AXES = ("x", "y", "z")


def to_xarray(recording: Recording) -> Any:
    """Collect the motion, its gradient, the control and the measurement of a run in an xarray.Dataset.

    Quantities of bodies have the axes time, body, axis; fields on a grid time, x, y, z with the middles of cells.
    Errors: InputError without xarray, or for a run without a motion, or with several: take one of `list_parts`.
    """
    try:
        import xarray
    except ImportError as error:
        remedy = "pip install 'simphys[xarray]'"
        raise InputError("export to xarray", "needs the package xarray", "none installed", remedy) from error
    if parts := list_parts(recording):
        remedy = "Take one of simphys.record.list_parts(recording)."
        raise InputError(f"export of {recording.name}", "needs one motion", f"those of {', '.join(parts)}", remedy)
    made = _Collection(recording)
    for group in (BODIES, FIELDS):
        for name in recording.keys(group):
            if f"{group}/{name}/value" in recording:
                made.add(name, f"{group}/{name}/value", f"{group}/{name}/time", name, bodies=group == BODIES)
    for name in recording.keys("stresses"):
        made.add(name, f"stresses/{name}/value", f"stresses/{name}/time", name, bodies=True)
    if not made.variables:
        raise InputError(f"export of {recording.name}", "needs a recorded motion", "none", "Run the scene again.")
    for name in recording.keys("adjoint"):
        if name not in ("time", "step"):
            bodies = f"{BODIES}/{name}/value" in recording
            made.add(f"adjoint_{name}", f"adjoint/{name}", "adjoint/time", name, bodies=bodies)
    if "control/value" in recording:
        made.add("control", "control/value", "control/time", "control", bodies=False)
    for name, path in (("measured", "observations/value"), ("predicted", "fit/predicted")):
        if path in recording:
            made.add(name, path, "observations/time", "channel", bodies=False)
            made.coordinates["channel"] = ("channel", list(map(str, np.atleast_1d(_labels(recording)))), {})
    attrs = {"title": str(recording.scene.get("title") or ""), "source": recording.name}
    return xarray.Dataset(made.variables, made.coordinates, attrs)


def write_xarray(recording: Recording, folder: Path, prefix: str) -> list[Path]:
    """Write the Dataset of a run as NetCDF 3, which xarray reads by SciPy, to PREFIXrun.nc; return the path."""
    path = folder / f"{prefix}run.nc"
    to_xarray(recording).to_netcdf(path, engine="scipy")
    return [path]


def _labels(recording: Recording) -> Any:
    return recording.attrs("observations")["labels"]


class _Collection:
    """Variables and coordinates of a Dataset."""

    def __init__(self, recording: Recording) -> None:
        self.variables: dict[str, Any] = {}
        self.coordinates: dict[str, Any] = {}
        self._recording = recording
        about: dict[str, Any] = recording.attrs("grid") if "grid" in recording else {}
        self._cells = tuple(int(count) for count in about.get("cells", ()))
        self._middles = [about["spacing"] * (np.arange(count) + about["offset"]) for count in self._cells]

    def add(self, name: str, path: str, time_path: str, field: str, *, bodies: bool) -> None:
        """Add a quantity along time; numbers of a kind that NetCDF 3 lacks become wider."""
        values, time = self._recording[path], self._recording[time_path]
        rows = min(len(values), len(time))
        along = self._axis_of_time(time[:rows], name)
        dims = (along, *self._dims(field, values.shape[1:], bodies=bodies))
        unit = str(self._recording.attrs(path).get("unit", ""))
        self.variables[name] = (dims, np.asarray(values[:rows], float), {"units": unit} if unit else {})

    def _axis_of_time(self, time: np.ndarray, name: str) -> str:
        """Name the axis of time: 'time', or one of its own for a quantity with other times."""
        for known, (_, values, _) in list(self.coordinates.items()):
            if known.startswith("time") and np.array_equal(values, time):
                return known
        axis = "time" if "time" not in self.coordinates else f"time_{name}"
        self.coordinates[axis] = (axis, np.asarray(time, float), {"units": self._recording.units.time})
        return axis

    def _dims(self, field: str, shape: tuple[int, ...], *, bodies: bool) -> tuple[str, ...]:
        if bodies and len(shape) == 2:
            self.coordinates["axis"] = ("axis", list(AXES[: shape[1]]), {})
            return "body", "axis"
        if shape == self._cells:
            for axis, middles in zip(AXES, self._middles, strict=False):
                self.coordinates[axis] = (axis, middles, {"units": self._recording.units.length})
            return AXES[: len(shape)]
        if field == "channel":
            return ("channel",)
        return tuple(f"{field}_{place}" for place in range(len(shape)))
