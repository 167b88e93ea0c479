"""Stages of films: what stands still, and what is drawn at each time, for every form of bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Circle, Polygon, Rectangle

from simphys.plot import style
from simphys.plot.motion.discs import (
    CLOTH,
    CUSHION,
    POCKET,
    RADIUS,
    choose_colors,
    draw_circles,
    read_table,
    read_targets,
)
from simphys.plot.motion.network import COLOR_MAP, GROUND, SPRINGS_SEEN, find_outline
from simphys.plot.motion.pendulum import read_joints
from simphys.plot.motion.recorded import ON_TRACK, Motion
from simphys.plot.motion.rigid import draw_bodies, read_bodies
from simphys.plot.motion.surroundings import box_lines, draw_box, find_box, find_ground, find_turn, project
from simphys.record import Recording


@dataclass(frozen=True)
class FilmStage:
    """FilmStage of a film: times [T] s, the size [2] of what is drawn, how to prepare the axes and to draw a frame."""

    time: np.ndarray
    size: tuple[float, float]
    prepare: Callable[[Axes], None]
    draw: Callable[[Axes, int], None]
    ended: str = ""


def pendulum_stage(recording: Recording) -> FilmStage:
    """Set the stage of a pendulum: links, masses and the path of the free end. Errors: NotRecorded."""
    time, joints = read_joints(recording)
    points = project(joints)[0]
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    low, high = _with_margin(low, high, 0.1)

    def prepare(axes: Axes) -> None:
        axes.plot(*points[0, 0], "s", color=style.INK, markersize=7)
        _set(axes, low, high, recording.units.length, joints.shape[2])

    def draw(axes: Axes, frame: int) -> None:
        axes.plot(*points[: frame + 1, -1].T, color=style.COLORS[1], linewidth=0.8, alpha=0.6)
        axes.plot(*points[frame].T, "-o", color=style.COLORS[0], markersize=8, linewidth=2, zorder=3)

    return FilmStage(time, _size(low, high), prepare, draw)


def disc_stage(motion: Motion, recording: Recording) -> FilmStage:
    """Set the stage of discs: the table, targets, paths so far."""
    radius, table = recording[RADIUS], read_table(recording)
    low = (motion.position - radius[:, None]).min(axis=(0, 1)) if table is None else table[0]
    high = (motion.position + radius[:, None]).max(axis=(0, 1)) if table is None else table[1]
    targets = read_targets(recording, len(radius))
    colors = choose_colors(motion, set(targets))
    outer = _with_margin(low, high, 0.03)

    def prepare(axes: Axes) -> None:
        if table is not None:
            size: Any = high - low
            look: Any = {"facecolor": CLOTH, "edgecolor": CUSHION, "linewidth": 3, "zorder": 0}
            axes.add_patch(Rectangle((low[0], low[1]), *size, **look))
        for disc, place in targets.items():
            axes.add_patch(Circle(tuple(place), radius[disc], color=POCKET, zorder=1))
        _set(axes, *outer, motion.position_unit, 2)

    def draw(axes: Axes, frame: int) -> None:
        paths = list(np.moveaxis(motion.position[: frame + 1], 1, 0))
        axes.add_collection(LineCollection(paths, colors=colors, linewidths=1.0, alpha=0.7, zorder=2), autolim=False)
        draw_circles(axes, motion.position[frame], radius, colors, zorder=4)

    return FilmStage(motion.time, _size(*outer), prepare, draw, motion.ended)


def rigid_stage(motion: Motion, recording: Recording) -> FilmStage:
    """Set the stage of rigid bodies: shapes with their orientation, planes, targets, paths so far."""
    view = read_bodies(motion, recording)
    low, high = view.limits[:, 0], view.limits[:, 1]

    def prepare(axes: Axes) -> None:
        _set(axes, low, high, motion.position_unit, motion.dim)

    return FilmStage(
        motion.time, _size(low, high), prepare, lambda axes, row: draw_bodies(axes, view, row), motion.ended
    )


def network_stage(motion: Motion, recording: Recording) -> FilmStage:
    """Set the stage of nodes in a plane or in space: the ground, springs, nodes coloured by speed."""
    scene: dict[str, Any] = recording.scene
    turn = np.array(find_turn(scene, motion.dim) or np.eye(motion.dim))
    ground = find_outline(find_ground(scene, motion.dim), motion.position, turn)
    points, paths = (project(places @ turn.T)[0] for places in (motion.within, motion.paths))
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    if ground is not None and motion.dim == 2:  # the bodies stand on it
        low[1] = min(low[1], float(np.median(ground[:2, 1])) - 0.08 * float((high - low).max()))
    box = find_box(recording)
    edges = None if box is None else box_lines(box)
    if edges is not None:
        low, high = np.minimum(low, edges.min(axis=(0, 1))), np.maximum(high, edges.max(axis=(0, 1)))
    low, high = _with_margin(low, high, 0.05)
    speed = np.linalg.norm(motion.velocity, axis=2)
    norm = Normalize(0, float(speed.max()) or 1.0)
    few = motion.position.shape[1] <= 30
    tail = max(1, len(motion.time) // 6)

    def prepare(axes: Axes) -> None:
        if ground is not None:
            axes.add_patch(Polygon(ground, facecolor=GROUND, edgecolor="none", zorder=0)).set_in_layout(False)
        if edges is not None:
            draw_box(axes, edges, is_periodic=True)
        _set(axes, low, high, motion.position_unit, motion.dim)
        speeds = style.with_unit("speed", motion.velocity_unit)
        axes.figure.colorbar(ScalarMappable(norm, COLOR_MAP), ax=axes, label=speeds, fraction=0.05, shrink=0.9)

    def draw(axes: Axes, frame: int) -> None:
        look: dict[str, Any] = {"cmap": COLOR_MAP, "norm": norm}
        x, y = points[frame].T
        where = points[frame]
        if 0 < len(motion.springs) <= SPRINGS_SEEN:
            lines = LineCollection(list(where[motion.springs]), linewidths=1.0, **look)
            lines.set_array(speed[frame][motion.springs].mean(axis=1))
            axes.add_collection(lines, autolim=False)
        elif few:
            tails = list(np.moveaxis(paths[max(0, frame - tail) : frame + 1], 1, 0))
            axes.add_collection(LineCollection(tails, colors="#999999", linewidths=0.9), autolim=False)
        area = float(np.clip(3000 / len(where), 1, 60))  # points²
        axes.scatter(x, y, s=area, c=speed[frame], linewidths=0, zorder=3, **look)
        held: dict[str, Any] = {"s": 1.5 * area, "marker": "s", "color": style.INK, "linewidths": 0, "zorder": 4}
        axes.scatter(x[motion.pinned], y[motion.pinned], **held)

    return FilmStage(motion.time, _size(low, high), prepare, draw, motion.ended)


def line_stage(motion: Motion, recording: Recording) -> FilmStage:
    """Set the stage of nodes on a line: on their track with springs between them; many by their displacements."""
    place = motion.position[..., 0]
    if place.shape[1] > ON_TRACK:
        return _displacement_stage(motion, place)
    low, high = float(place.min()), float(place.max())
    margin = 0.08 * (high - low) or 1.0

    def prepare(axes: Axes) -> None:
        axes.axhline(-1.0, color="#888888", linewidth=3)
        axes.set(xlim=(low - margin, high + margin), ylim=(-1.6, 1.6), yticks=[])
        axes.set_xlabel(style.with_unit("x", motion.position_unit))
        axes.grid(visible=False)

    def draw(axes: Axes, frame: int) -> None:
        for a, b in motion.springs:
            axes.plot(*_coil(place[frame, a], place[frame, b]), color="#777777", linewidth=1.0)
        axes.plot(place[frame, motion.pinned], np.zeros(len(motion.pinned)), "s", color=style.INK, markersize=12)
        axes.plot(place[frame, motion.free], np.zeros(len(motion.free)), "o", color=style.COLORS[0], markersize=14)

    return FilmStage(motion.time, (4.0, 1.0), prepare, draw, motion.ended)


def _coil(start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw a spring between two places as a zigzag of ten turns, with straight ends."""
    x = np.concatenate([[start], np.linspace(start, end, 24)[2:-2], [end]])
    y = np.where(np.arange(len(x)) % 2, 0.35, -0.35)
    y[[0, 1, -2, -1]] = 0.0
    return x, y


def _displacement_stage(motion: Motion, place: np.ndarray) -> FilmStage:
    moved = place - place[0]
    reach = float(np.abs(moved).max()) or 1.0

    def prepare(axes: Axes) -> None:
        axes.set(xlim=(0, moved.shape[1] - 1), ylim=(-1.05 * reach, 1.05 * reach), xlabel="node")
        axes.set_ylabel(style.with_unit("displacement", motion.position_unit))

    def draw(axes: Axes, frame: int) -> None:
        axes.plot(moved[frame], color=style.COLORS[0])

    return FilmStage(motion.time, (2.0, 1.0), prepare, draw, motion.ended)


def _with_margin(low: np.ndarray, high: np.ndarray, part: float) -> tuple[np.ndarray, np.ndarray]:
    margin = part * (float((high - low).max()) or 1.0)
    return low - margin, high + margin


def _size(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    return float(high[0] - low[0]), float(high[1] - low[1])


def _set(axes: Axes, low: np.ndarray, high: np.ndarray, unit: str, dim: int) -> None:
    across, up = ("x", "y") if dim == 2 else ("across", "up")
    axes.set(aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set(xlabel=style.with_unit(across, unit), ylabel=style.with_unit(up, unit))
    axes.grid(visible=False)
