"""Replay of fields on a grid: a picture for each field and plane, or a curve along a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simphys.plot import style
from simphys.plot.fields.grids import Frames, choose_quantity, field_frames, list_shown_fields, read_grid
from simphys.record import Recording
from simphys.report.packing import pack

FIELDS = 3
"""Largest number of fields in a replay."""
SIDE = 160
"""Largest number of pixels along an axis: finer pictures are thinned."""


def replay_grid(
    recording: Recording, count: int, numbers: int, curve_replay: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """Replay the fields of a run on its grid. Errors: NotRecorded."""
    grid = read_grid(recording, "replay")  # NotRecorded for a run without a grid
    names = list_shown_fields(recording)
    names = sorted(names, key=lambda name: choose_quantity(recording, grid, name, "replay").kind != "number")[:FIELDS]
    if not names:
        raise style.NotRecorded("replay of fields", "needs a field on a grid", "none", "See the other pictures.")
    first = field_frames(recording, names[0], 2, "replay")
    if len(first.planes[0].axes) == 1:
        frames = field_frames(recording, names[0], count, "replay")
        values = np.array([pictures[0] for pictures in frames.pictures])
        plane = frames.planes[0]
        places = plane.places(plane.axes[0])
        return curve_replay(frames.time, places, values, plane.labels[0], frames.quantity.label, frames.ended)
    each = sum(_thin(picture).size for picture in first.pictures[0]) * len(names)
    most = max(8, min(count, numbers // each))
    layers: list[dict[str, Any]] = []
    for name in names:
        frames = field_frames(recording, name, most, "replay")
        layers += _layers(frames)
        rows = frames
    layers += _outlines(rows)
    low, high = layers[0]["low_corner"], layers[0]["high_corner"]
    return {
        "dim": 2,
        "unit": grid.units.length,
        "axes": layers[0]["axes"],
        "time": np.round(rows.time, 9).tolist(),
        "low": low,
        "high": high,
        "layers": layers,
        "ended": rows.ended,
        "remark": "",
    }


def _layers(frames: Frames) -> list[dict[str, Any]]:
    made = []
    for number, plane in enumerate(frames.planes):
        values = np.array([_thin(pictures[number]) for pictures in frames.pictures])
        low, high = (float(np.nanpercentile(values, share)) for share in (0.2, 99.8))  # a short peak hides nothing
        signed = low < 0 < high
        if signed:
            high = max(-low, high)
            low = -high
        if high <= low:
            high = low + 1.0
        corners = np.array([plane.limits(axis) for axis in plane.axes]).T
        made.append(
            {
                "kind": "picture",
                "name": ", ".join([part for part in (frames.quantity.name, plane.name) if part]),
                "unit": frames.quantity.unit,
                "low": low,
                "high": high,
                "ramp": "RdBu_r" if signed else "viridis",
                "cells": list(values.shape[1:]),
                "values": pack(np.nan_to_num(values, nan=low), low, high, bits=8),
                "low_corner": corners[0].tolist(),
                "high_corner": corners[1].tolist(),
                "axes": plane.labels,
            }
        )
    return made


def _outlines(frames: Frames) -> list[dict[str, Any]]:
    """Outline an obstacle in a plane, where its signed distance is 0, by closed polygons."""
    if len(frames.planes) != 1 or not frames.obstacle:
        return []
    from contourpy import contour_generator

    plane, distance = frames.planes[0], np.pad(frames.obstacle[0], 1, constant_values=1.0)
    across, up = (np.pad(plane.places(axis), 1, mode="reflect", reflect_type="odd") for axis in plane.axes)
    contours: Any = contour_generator(across, up, distance.T)
    polygons = [np.round(each, 6).tolist() for each in contours.lines(0.0)]
    return [{"kind": "outline", "name": "obstacle", "polygons": polygons}] if polygons else []


def _thin(picture: np.ndarray) -> np.ndarray:
    every = -(-max(picture.shape) // SIDE)
    return picture[::every, ::every]
