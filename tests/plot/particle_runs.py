"""Recordings of synthetic motions of particles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simphys.record import Recorder, Recording

FRAMES = 9
GRID = {"cells": [20, 20], "spacing": 0.1, "margin": 3}


def particle_run(
    folder: Path,
    *,
    position: np.ndarray | None = None,
    drift: tuple[float, ...] = (0.5, 0.0),
    frames: int = FRAMES,
    group: np.ndarray | None = None,
    springs: int = 0,
    scene: dict[str, Any] | None = None,
    colliders: tuple[np.ndarray, np.ndarray] | None = None,
) -> Recording:
    """Record particles [n, dim] that drift for a second, in frames at equal times; by default 400 in a square.

    colliders: positions and rotations along time.
    """
    if position is None:
        position = 0.5 + 0.02 * np.stack(np.meshgrid(np.arange(20), np.arange(20)), -1).reshape(-1, 2)
    time = np.linspace(0, 1, frames)
    moved = position + time[:, None, None] * np.array(drift)
    velocity = np.broadcast_to(np.array(drift), moved.shape)
    tables = {"particles/nodes/position": (moved, "m"), "particles/nodes/velocity": (velocity, "m/s")}
    tables["fields/affine"] = (np.zeros((frames, len(position), 1)), "")
    for name, values in zip(("position", "rotation"), colliders or (), strict=False):
        tables[f"fields/collider_{name}"] = (values, "")
    title = {"title": "drift", "grid": GRID} if scene is None else scene
    with Recorder(folder, kind="run", provenance={"seed": 0}, scene=title) as run:
        for path, (values, unit) in tables.items():
            rows = {"step": np.arange(frames), "time": time, "value": values}
            run.extend({path: rows}, units={path: {"value": unit, "time": "s"}})
        links = np.stack([np.arange(springs), np.arange(springs) + 1], axis=1)
        of_groups: dict[str, Any] = {} if group is None else {"group": group}
        run.write("particles/nodes", springs=links, pinned=np.zeros(len(position), bool), **of_groups)
    return Recording(folder)
