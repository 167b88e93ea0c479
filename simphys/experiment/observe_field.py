"""Measurements of whole fields of the state, such as what all receivers read, of one experiment or of several.

The measured times are between steps, or at steps: in between the state is interpolated linearly, as channels are
(`sampling`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from simphys.autograd.errors import InputError
from simphys.files.field_file import read_named
from simphys.files.selection import ALL, Part, require_near_start

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class FieldObservations:
    """A checked measurement of one field: N samples of all its numbers.

    times [N] s, from 0 on and strictly increasing; values [N, *shape], or [members, N, *shape] of a scene of several,
    in `unit`, 0 where missing; weights likewise in 1/unit², 1/sigma², 0 where missing.
    """

    times: Array
    values: Array
    weights: Array
    field: str
    unit: str
    axis: int
    """Axis of time in the values."""
    file: Path
    validation: Array | None = None
    """Weights of the numbers that are held out of the fit, where `weights` are 0; None: all are fitted."""

    def until(self, end: float) -> FieldObservations:
        """The samples up to a time [s]."""
        keep = self.times <= end
        place = (slice(None),) * self.axis + (keep,)
        unseen = None if self.validation is None else self.validation[place]
        return replace(
            self, times=self.times[keep], values=self.values[place], weights=self.weights[place], validation=unseen
        )

    def rows_first(self) -> FieldObservations:
        """The same with time as the first axis, members as the second."""
        values, weights, unseen = (
            None if each is None else np.ascontiguousarray(np.moveaxis(each, self.axis, 0))
            for each in (self.values, self.weights, self.validation)
        )
        assert values is not None and weights is not None
        return replace(self, values=values, weights=weights, validation=unseen, axis=0)

    def sampling_interval(self) -> float:
        """The time [s] between samples. Errors: InputError where they are not uniform."""
        steps = np.diff(self.times)
        if not len(steps) or np.ptp(steps) > 1e-6 * steps.mean():
            found = f"from {steps.min():g} to {steps.max():g} apart" if len(steps) else "one sample"
            remedy = "Interpolate them to uniform times, or leave loss.lowpass out."
            raise InputError(f"{self.file}, time", "a low-pass filter needs samples at uniform times", found, remedy)
        return float(steps.mean())


def read_field_observations(
    file: str | Path,
    *,
    field: str,
    shapes: Mapping[str, tuple[int, ...]],
    members: int | None,
    sigma: float,
    unit: str = "",
    missing: Literal["error", "skip"] = "error",
    part: Part = ALL,
    dt: float | None = None,
) -> FieldObservations:
    """Read a measurement of the state's `field`, whose shape without members is in `shapes`.

    `part` says which samples count and from when on time does. With the time step `dt` [s], times of a clock, which are
    far from the start, are refused.

    The file is HDF5 or .npz, with the datasets `time` and `values`. NaN is a missing number: an error, or with
    missing="skip" one of weight 0. Errors: InputError that says file, dataset, what is wrong there and the remedy.
    """
    path = Path(file)
    who = f"observations.file {path}"
    found = read_named(path, ("time", "values"), source=who)
    times = _times(found["time"], part, f"{who}, time")
    lead = (len(times),) if members is None else (members, len(times))
    wanted = (*lead, *shapes[field])
    values = found["values"]
    if values.shape != wanted:
        names = "[N, *shape]" if members is None else "[members, N, *shape]"
        constraint = f"must have the shape {list(wanted)}, {names} of {field} at {len(times)} times"
        remedy = "Store it in that order, or name another field."
        raise InputError(f"{who}, values", constraint, list(values.shape), remedy)
    values = np.array(values, np.float64)
    for index in np.argwhere(np.isinf(values))[:1].tolist():
        text = f"{values[tuple(index)]} at {index}"
        raise InputError(f"{who}, values", "must be finite numbers", text, "Mend the file; what is missing is NaN.")
    gaps = np.isnan(values)
    if missing == "error":
        for index in np.argwhere(gaps)[:1].tolist():
            remedy = 'Set observations.missing="skip" to give missing numbers no weight.'
            raise InputError(f"{who}, values", "numbers must not be missing", f"NaN at {index}", remedy)
    if gaps.all():
        raise InputError(f"{who}, values", "must hold a number", "only NaN, or none", "Name another file.")
    values[gaps] = 0.0
    weights = np.where(gaps, 0.0, 1.0 / sigma**2)
    if part != ALL:
        rows = part.find(times, f"{who}, time")
        times = times[rows]
        values, weights = (np.take(each, rows, len(lead) - 1) for each in (values, weights))
    if times[0] < 0:
        remedy = "Times count from the state at the start, at 0: set observations.window = [FIRST, LAST]."
        raise InputError(f"{who}, time", "times must not be negative", f"{times[0]:g}", remedy)
    if dt is not None:
        require_near_start(times, dt, f"{who}, time")
    return FieldObservations(times, values, weights, field, unit, len(lead) - 1, path)


def _times(found: Array, part: Part, who: str) -> Array:
    times = part.times(np.asarray(found, np.float64))
    if times.ndim != 1 or not times.size:
        constraint = "must be a list of times [N]"
        raise InputError(who, constraint, f"the shape {list(times.shape)}", "Store one time for each sample.")
    for row in np.flatnonzero(~np.isfinite(times))[:1]:
        raise InputError(who, "every sample must have a time", f"{times[row]} at {row}", "Mend the file.")
    for row in np.flatnonzero(np.diff(times) <= 0)[:1]:
        text = f"{times[row + 1]!s} after {times[row]!s}, at {row + 1}"
        raise InputError(who, "times must increase", text, "Sort the samples by time and keep one of each time.")
    return times
