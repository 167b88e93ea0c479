"""Recordings of fields on a grid, as written by a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simphys.record import Recorder, Recording


def ripple(cells: tuple[int, ...], frames: int) -> np.ndarray:
    """Field of both signs [frames, *cells] that spreads from the middle of a box whose first edge is 1 m long."""
    where = np.stack(np.meshgrid(*[(np.arange(n) + 0.5) / cells[0] for n in cells], indexing="ij"))
    middle = np.array(cells).reshape(-1, *[1] * len(cells)) / (2 * cells[0])
    radius = np.sqrt(np.sum((where - middle) ** 2, axis=0))
    time = np.linspace(0, 0.5, frames).reshape(-1, *[1] * len(cells))
    ring = (radius - time) / 0.06
    return (1 - 2 * ring**2) * np.exp(-(ring**2)) / np.sqrt(1 + 20 * time)


def grid_run(
    folder: Path,
    fields: Mapping[str, np.ndarray],
    *,
    cells: tuple[int, ...],
    units: Mapping[str, str],
    offset: float = 0.5,
    scene: Mapping[str, Any] | None = None,
    status: str = "completed",
    members: int | None = None,
    groups: Mapping[str, Mapping[str, Any]] | None = None,
    tables: Mapping[str, Mapping[str, np.ndarray]] | None = None,
) -> Recording:
    """Record a run of fields [T, ...] over one second on a grid whose first edge is 1 m long."""
    about: dict[str, Any] = {"cells": list(cells), "spacing": 1 / cells[0], "offset": offset}
    if members is not None:
        about["members"] = members
    with Recorder(folder, kind="run", provenance={"seed": 0}, scene={"title": "ripple"} | dict(scene or {})) as run:
        run.write("grid", attrs={**about, "fields": list(units), "units": list(units.values())})
        for name, values in fields.items():
            rows = {"step": np.arange(len(values)), "time": np.linspace(0, 1, len(values)), "value": values}
            run.extend({f"fields/{name}": rows}, units={f"fields/{name}": {"value": units.get(name, ""), "time": "s"}})
        run.write("motion", attrs={"status": status})
        for name, columns in (tables or {}).items():
            run.extend({name: columns})
        for name, group in (groups or {}).items():
            run.write(name, **group)
    return Recording(folder)
