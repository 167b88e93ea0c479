"""Seismic surveys in SEG-Y files, read and written by segyio (extra `segy`): shots and receivers from trace headers.

A trace is one component of one receiver in one shot. Its header gives the shot (FieldRecord), the component
(TraceIdentificationCode: 12 vertical, 13 cross-line, which is y, 14 in-line, which is x; all others count as vertical),
the places of source and receiver with their scalars, and the delay of its first sample. z is the depth beneath the
datum. By the SEG's polarity upward motion is negative, as velocities along z are here.

Source: SEG-Y revision 2.0, SEG Technical Standards Committee 2017.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd.errors import InputError

Array = np.ndarray[Any, Any]
CODES = {14: 0, 13: 1}
"""Components along x and y by their code."""
CENTIMETRES = -100
"""Scalar of the coordinates that are written."""


class Survey(NamedTuple):
    """Shots that share their receivers, positions x, y, z with the depth z [m], and what was recorded."""

    time: Array
    """Times of the samples [s], [N]."""
    source_position: Array
    """Position of each shot's source [m], [shots, 3]."""
    receiver_position: Array
    """Position of each receiver of any shot [m], [R, 3]."""
    traces: Array
    """Components x, y, z of each receiver, NaN where a shot did not record one, [shots, N, 3, R]."""

    def arrange(self, axes: str = "xz") -> Array:
        """Arrange the components of a section or of space as simulators record them, [shots, N, dim R].

        One component after the other, each of all receivers. The axis of shots is left out if there is one shot.
        """
        found = self.traces[:, :, ["xyz".index(axis) for axis in axes]]
        found = found.reshape(*found.shape[:2], -1)
        return found[0] if len(found) == 1 else found


def read_survey(path: str | Path) -> Survey:
    """Read a survey. Errors: InputError without segyio, or for a file that is no survey of evenly sampled traces."""
    segyio, source = _segyio(), str(path)
    try:
        with segyio.open(source, ignore_geometry=True) as file:
            samples = np.array(file.trace.raw[:], np.float64)
            header = {name: np.array(file.attributes(key)[:], np.int64) for name, key in _keys(segyio).items()}
            interval = segyio.dt(file, fallback_dt=0.0) * 1e-6
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(source, "must be a SEG-Y file", str(error), "Correct the path, or convert it.") from error
    delays = np.unique(header["delay"])
    if len(delays) > 1 or not interval > 0:
        found = f"delays of {delays.min()} to {delays.max()} ms" if len(delays) > 1 else "no sampling interval"
        remedy = "Resample the traces to common times."
        raise InputError(source, "all traces have the same times", found, remedy)
    sources, receivers = _places(header, "source"), _places(header, "receiver")
    shots, first, shot = np.unique(header["shot"], return_index=True, return_inverse=True)
    receiver_position, receiver = np.unique(np.round(receivers, 4), axis=0, return_inverse=True)
    moved = np.abs(sources - sources[first][shot]).max(axis=1) > 1e-3
    if moved.any():
        row = int(np.flatnonzero(moved)[0])
        constraint, remedy = "all traces of a shot have one source", "Number the shots apart (FieldRecord)."
        raise InputError(source, constraint, f"{sources[row].tolist()} in trace {row}", remedy)
    component = np.array([CODES.get(int(code), 2) for code in header["component"]])
    traces = np.full((len(shots), 3, len(receiver_position), samples.shape[1]), np.nan)
    traces[shot.reshape(-1), component, receiver.reshape(-1)] = samples
    time = delays[0] * 1e-3 + interval * np.arange(samples.shape[1])
    return Survey(time, sources[first], receiver_position, np.moveaxis(traces, 3, 1))


def write_survey(path: str | Path, survey: Survey) -> None:
    """Write what shots recorded, in IEEE floats; positions are rounded to centimetres, the times to microseconds.

    Errors: InputError without segyio, or for times that are not evenly spaced or do not begin at whole milliseconds.
    """
    segyio = _segyio()
    first, steps = survey.time[0] * 1e3, np.diff(survey.time) * 1e6
    even = len(steps) > 0 and np.ptp(steps) < 1e-3 and abs(steps[0] - round(steps[0])) < 1e-3
    if not even or abs(first - round(first)) > 1e-6:
        constraint = "times are whole microseconds apart, from a whole millisecond on"
        raise InputError("survey.time", constraint, survey.time[:3].tolist(), "Resample the traces.")
    keys, interval = _keys(segyio), round(steps[0])
    recorded = np.argwhere(np.isfinite(survey.traces).all(axis=1))
    spec = segyio.spec()
    spec.format, spec.tracecount = 5, len(recorded)
    spec.samples = survey.time * 1e3
    with segyio.create(str(path), spec) as file:
        file.bin.update({segyio.BinField.Interval: interval})
        for row, (shot, component, receiver) in enumerate(recorded.tolist()):
            x, y, depth = _round(survey.source_position[shot])
            gx, gy, beneath = _round(survey.receiver_position[receiver])
            values = {"shot": shot + 1, "component": (14, 13, 12)[component], "delay": round(first)}
            values |= {"source_x": x, "source_y": y, "source_depth": depth, "source_elevation": 0}
            values |= {"receiver_x": gx, "receiver_y": gy, "receiver_elevation": -beneath}
            values |= {"scalar": CENTIMETRES, "elevation_scalar": CENTIMETRES}
            more = {segyio.TraceField.TRACE_SAMPLE_INTERVAL: interval, segyio.TraceField.TRACE_SEQUENCE_FILE: row + 1}
            file.header[row] = {**{keys[name]: value for name, value in values.items()}, **more}
            file.trace[row] = survey.traces[shot, :, component, receiver].astype(np.float32)


def _segyio() -> Any:
    try:
        return import_module("segyio")
    except ImportError as error:
        remedy = "Run pip install 'simphys[segy]'."
        raise InputError("SEG-Y", "needs the package segyio", "not installed", remedy) from error


def _keys(segyio: Any) -> dict[str, Any]:
    """Return the fields of a trace header that are read and written."""
    field = segyio.TraceField
    return {
        "shot": field.FieldRecord,
        "component": field.TraceIdentificationCode,
        "delay": field.DelayRecordingTime,
        "scalar": field.SourceGroupScalar,
        "elevation_scalar": field.ElevationScalar,
        "source_x": field.SourceX,
        "source_y": field.SourceY,
        "source_depth": field.SourceDepth,
        "source_elevation": field.SourceSurfaceElevation,
        "receiver_x": field.GroupX,
        "receiver_y": field.GroupY,
        "receiver_elevation": field.ReceiverGroupElevation,
    }


def _places(header: dict[str, Array], what: str) -> Array:
    """Compute the positions of the sources or receivers of all traces [m], [traces, 3]."""
    flat, upright = (_factor(header[name]) for name in ("scalar", "elevation_scalar"))
    depth = -header[f"{what}_elevation"] + header.get(f"{what}_depth", 0)
    return np.stack([flat * header[f"{what}_x"], flat * header[f"{what}_y"], upright * depth], axis=1)


def _factor(scalar: Array) -> Array:
    """Return the factor of a scalar: it multiplies, and divides if negative; 0 stands for 1."""
    scalar = np.where(scalar == 0, 1, scalar).astype(float)
    return np.where(scalar > 0, scalar, 1 / np.abs(scalar))


def _round(position: Array) -> list[int]:
    """Round a position to centimetres."""
    found: list[int] = np.rint(-CENTIMETRES * position).astype(int).tolist()
    return found
