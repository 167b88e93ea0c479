"""Pendulums: their joints as places in a plane or in space, and a picture of the links at several times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.motion.surroundings import project
from simphys.record import Recording

SNAPSHOTS = 8


def is_pendulum(recording: Recording) -> bool:
    """True for a run of a pendulum."""
    scene: dict[str, Any] = recording.scene
    return scene.get("simulator", {}).get("name") == "pendulum"


def draw_pendulum(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the links at several times, later ones darker, and the path of the free end; in space from 20° above."""
    time, joints = read_joints(recording)
    points = project(joints)[0]
    frames = np.unique(np.linspace(0, len(time) - 1, SNAPSHOTS).round().astype(int))
    size = np.ptp(points.reshape(-1, 2), axis=0)
    with style.style():
        figure = style.new_figure(recording, float(np.clip(7.0 * size[1] / max(size[0], 1e-9), 3.0, 6.5)) + 1.0)
        axes = figure.subplots()
        axes.plot(*points[:, -1].T, color=style.COLORS[1], linewidth=0.8, alpha=0.6, label="path of the free end")
        for number, frame in enumerate(frames):
            shade = 0.2 + 0.8 * number / max(len(frames) - 1, 1)
            label = f"t = {style.moment(axes, time[frame])}" if number in (0, len(frames) - 1) else None
            look: dict[str, Any] = {"color": style.COLORS[0], "alpha": shade, "linewidth": 1.6, "label": label}
            axes.plot(*points[frame].T, "-o", markersize=6, zorder=3 + number, **look)
        axes.plot(*points[0, 0], "s", color=style.INK, markersize=7, zorder=20)
        length = recording.units.length
        up = "y" if joints.shape[2] == 2 else "up"
        axes.set(aspect="equal", xlabel=f"x [{length}]", ylabel=f"{up} [{length}]")
        span = f"{style.number(time[0])} to {style.moment(axes, time[-1])}"
        axes.set_title(f"links at {len(frames)} times from {span}")
        style.legend_beside(axes)
        style.save(figure, path)
    return figure


def read_joints(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """Compute the joints from the support to the free end, [T, n + 1, 2 or 3] m, at times [T] s.

    A chain hangs downwards at rest. Fitted lengths take the place of those of the scene.
    Errors: NotRecorded for another simulator, or without a motion.
    """
    scene: dict[str, Any] = recording.scene
    if not is_pendulum(recording):
        raise style.NotRecorded("joints", "needs a run of a pendulum", "another simulator", "See its other pictures.")
    name = "direction" if scene["simulator"].get("kind") == "spherical" else "angle"
    paths = tuple(f"{style.FIELDS}/{name}/{part}" for part in ("time", "value"))
    style.require(recording, "joints", paths, "Leave output.fields out, or name it there.")
    time, values = style.sound_frames(*style.frames(recording, *paths))
    length = _lengths(recording, np.atleast_1d(np.array(scene["geometry"]["length"], float)))
    if name == "direction":
        links = length[0] * values[:, None, :]
    else:
        if values.ndim > 2:  # several experiments: the first one
            values = values[:, 0]
        turned = values - scene.get("environment", {}).get("tilt", 0.0)
        links = length[:, None] * np.stack([np.sin(turned), -np.cos(turned)], axis=-1)
    joints = np.cumsum(links, axis=1)
    return time, np.concatenate([np.zeros_like(joints[:, :1]), joints], axis=1)


def _lengths(recording: Recording, length: np.ndarray) -> np.ndarray:
    """Take fitted lengths where the fit had them as unknowns, perhaps for each experiment."""
    scene: dict[str, Any] = recording.scene
    experiment = recording.name.rpartition(", ")[2]
    for label, about in scene.get("unknowns", {}).items():
        if about.get("parameter", label) != "length" or "unknowns/label" not in recording:
            continue
        values = [
            value
            for name, value in zip(recording["unknowns/label"], recording["unknowns/value"], strict=True)
            if str(name).partition("[")[0] in (label, f"{label}, {experiment}")
        ]
        if len(values) in (1, len(length)) and not about.get("entries"):
            return np.broadcast_to(np.array(values, float), length.shape)
    return length
