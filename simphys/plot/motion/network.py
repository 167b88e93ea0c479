"""Pictures of many nodes: snapshots of their springs in a plane, and a chain's displacement along time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator

from simphys.plot import style
from simphys.plot.motion.recorded import Motion
from simphys.plot.motion.surroundings import box_lines, draw_box, find_box, find_ground, find_turn, project
from simphys.record import Recording

SNAPSHOTS = 6
PATHS = 30
"""Largest number of nodes without springs that are drawn with their paths."""
SPRINGS_SEEN = 20_000  # more springs merge into one surface, which the nodes alone show as well
COLOR_MAP = "viridis"
GROUND = "#DDDAD2"
HEIGHT_PANEL = 2.0  # inch
SNAPSHOT_WIDTH = 7.2  # inch, of all snapshots in a row
SNAPSHOT_HEIGHT = 4.0  # inch, at most


def draw_chain(figure: Figure, motion: Motion) -> None:
    """Draw nodes on a line: the displacement of each from its start, over node and time."""
    displacement = (motion.position - motion.position[0])[..., 0].T
    nodes = np.arange(len(displacement))
    reach = float(np.abs(displacement).max()) or 1.0
    axes = figure.subplots()
    image = axes.pcolormesh(
        motion.time, nodes, displacement, shading="nearest", cmap="RdBu_r", vmin=-reach, vmax=reach, rasterized=True
    )
    figure.colorbar(image, label=style.with_unit("displacement", motion.position_unit))
    if motion.pinned.size:
        starts = np.full(motion.pinned.size, motion.time[0])
        axes.plot(starts, motion.pinned, "s", color=style.INK, markersize=4, label="pinned", clip_on=False)
        style.legend_above(axes)
    axes.set_title(f"{len(nodes)} nodes, displaced by up to {style.number(reach)} {motion.position_unit}".rstrip())
    style.label_time(axes)
    axes.set_ylabel("node")
    axes.grid(False)


def draw_network(figure: Figure, motion: Motion, recording: Recording) -> None:
    """Draw nodes in a plane or in space at six times, with the ground, and height along time; set the figure's height.

    Where gravity is oblique to the ground, the picture is turned, so that gravity points down. Without gravity and
    ground, the mean position takes the place of the height.
    """
    scene: dict[str, Any] = recording.scene
    turn = np.array(find_turn(scene, motion.dim) or np.eye(motion.dim))
    frames = np.unique(np.linspace(0, len(motion.time) - 1, SNAPSHOTS).round().astype(int))
    points = project(motion.within[frames] @ turn.T)[0]
    ground = find_outline(find_ground(scene, motion.dim), motion.position[frames], turn)
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    if ground is not None and motion.dim == 2:  # the bodies stand on it
        low[1] = min(low[1], float(np.median(ground[:2, 1])) - 0.08 * float((high - low).max()))
    box = find_box(recording)
    edges = None if box is None else box_lines(box)
    if edges is not None:
        low, high = np.minimum(low, edges.min(axis=(0, 1))), np.maximum(high, edges.max(axis=(0, 1)))
    size = 1.1 * np.maximum(high - low, 0.02 * (high - low).max() or 1.0)
    tall = size[1] > 1.6 * size[0]
    columns = min(len(frames), SNAPSHOTS if tall else SNAPSHOTS // 2)
    rows = -(-len(frames) // columns)
    height = rows * (float(np.clip(SNAPSHOT_WIDTH / columns * size[1] / size[0], 0.9, SNAPSHOT_HEIGHT)) + 0.3) + 0.7
    figure.set_figheight(height + HEIGHT_PANEL)
    above, beneath = figure.subfigures(2, 1, squeeze=False, height_ratios=(height, HEIGHT_PANEL))[:, 0]

    panels = above.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    speed = np.linalg.norm(motion.velocity[frames], axis=2)
    norm = Normalize(0, float(speed.max()) or 1.0)
    limits = np.stack([(low + high - size) / 2, (low + high + size) / 2], axis=1)
    lone = not len(motion.springs) and motion.position.shape[1] <= PATHS
    paths = project(motion.paths @ turn.T)[0] if lone else None
    for axes, frame, where, values in zip(panels.flat, frames, points, speed, strict=False):
        if paths is not None:
            lines = list(np.moveaxis(paths[: frame + 1], 1, 0))
            axes.add_collection(LineCollection(lines, colors="#BBBBBB", linewidths=0.9, zorder=1), autolim=False)
        if ground is not None:
            patch = axes.add_patch(Polygon(ground, facecolor=GROUND, edgecolor="none", zorder=0))
            patch.set_in_layout(False)  # it goes on outside of the picture
        if edges is not None:
            draw_box(axes, edges, is_periodic=True)
        colors = _draw_snapshot(axes, motion, where, values, norm)
        axes.set_title(f"t = {style.moment(axes, motion.time[frame])}")
        axes.set(aspect="equal", xlim=limits[0], ylim=limits[1])
    for axes in panels.flat[len(frames) :]:
        axes.remove()
    across, up = ("x", "y") if motion.dim == 2 and (turn == np.eye(2)).all() else ("across", "up")
    ticks = int(np.clip(1.5 * min(SNAPSHOT_WIDTH / columns, SNAPSHOT_HEIGHT * size[0] / size[1]), 1, 5))
    panels[0, 0].xaxis.set_major_locator(MaxNLocator(ticks))  # shared by all panels
    for axes in list(panels.flat[: len(frames)])[-columns:]:  # the lowest of each column
        axes.set_xlabel(style.with_unit(across, motion.position_unit))
        axes.xaxis.set_tick_params(labelbottom=True)
    above.supylabel(style.with_unit(up, motion.position_unit), fontsize="medium")
    above.colorbar(
        colors, ax=list(panels.flat[: len(frames)]), label=style.with_unit("speed", motion.velocity_unit), fraction=0.05
    )
    _draw_height(beneath.subplots(), motion, frames, style.body_names(recording).several, falls=_falls(scene))


def _falls(scene: dict[str, Any]) -> bool:
    """True if a scene has a direction down: a gravity or a ground."""
    around = scene.get("environment") or {}
    return bool(np.any(around.get("gravity") or 0.0)) or bool(around.get("ground"))


def find_outline(plane: dict[str, Any] | None, position: np.ndarray, turn: np.ndarray) -> np.ndarray | None:
    """Compute the outline of the ground in the picture: in a plane all beneath it, in space a square."""
    if plane is None:
        return None
    flat = position.reshape(-1, position.shape[-1])
    low, high = flat.min(axis=0), flat.max(axis=0)
    reach, height = float((high - low).max()), plane["offset"]
    if len(low) == 2:
        low, high = low - 9 * reach, high + 9 * reach
        corners = np.array([[low[0], height], [high[0], height], [high[0], low[1]], [low[0], low[1]]])
    else:
        low, high = low - 0.3 * reach, high + 0.3 * reach
        corners = np.array([[x, y, height] for x, y in zip(*_around(low, high), strict=True)])
    return project(corners @ turn.T)[0]


def _around(low: np.ndarray, high: np.ndarray) -> tuple[list[float], list[float]]:
    return [low[0], high[0], high[0], low[0]], [low[1], low[1], high[1], high[1]]


def _draw_snapshot(axes: Axes, motion: Motion, points: np.ndarray, speed: np.ndarray, norm: Normalize) -> Collection:
    """Draw springs and nodes coloured by speed [n]; return the artist for a colour bar."""
    if 0 < len(motion.springs) <= SPRINGS_SEEN:
        lines = LineCollection(list(points[motion.springs]), cmap=COLOR_MAP, norm=norm, linewidths=0.8)
        lines.set_array(speed[motion.springs].mean(axis=1))
        axes.add_collection(lines, autolim=False)
    area = float(np.clip(2000 / len(points), 1, 16))  # points²
    x, y = points.T
    colors = axes.scatter(x, y, s=area, c=speed, cmap=COLOR_MAP, norm=norm, linewidths=0, zorder=3)
    axes.scatter(x[motion.pinned], y[motion.pinned], s=2 * area, marker="s", color=style.INK, linewidths=0, zorder=4)
    return colors


def _draw_height(axes: Axes, motion: Motion, frames: np.ndarray, several: str, *, falls: bool) -> None:
    """Draw mean and range of the free nodes' last coordinate, with dotted lines at the times of the snapshots.

    Where nothing falls, draw the mean of each coordinate.
    """
    height = motion.position[:, motion.free, -1]
    for moment in motion.time[frames]:
        axes.axvline(moment, color="#999999", linewidth=0.8, linestyle=":")
    if not falls:
        for axis in range(motion.dim):
            axes.plot(motion.time, motion.position[:, motion.free, axis].mean(axis=1), label=style.AXIS_NAMES[axis])
        axes.set_title(f"mean position of {motion.free.size} {several}")
        style.label_time(axes)
        axes.set_ylabel(style.with_unit("position", motion.position_unit))
        style.legend_above(axes)
        return
    axes.fill_between(
        motion.time, height.min(axis=1), height.max(axis=1), color=style.COLORS[0], alpha=0.2, linewidth=0
    )
    axes.plot(motion.time, height.mean(axis=1), color=style.COLORS[0])
    axes.set_title("height of the free nodes: mean, lowest to highest")
    style.label_time(axes)
    axes.set(ylabel=style.with_unit(style.AXIS_NAMES[motion.dim - 1], motion.position_unit))
