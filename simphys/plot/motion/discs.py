"""Discs on a table, seen from above: their start, their paths, their end, and their targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from simphys.plot import style
from simphys.plot.motion.recorded import Motion
from simphys.record import Recording
from simphys.scenefile.body_names import BodyNames

RADIUS = f"{style.BODIES}/radius"
CLOTH, CUSHION, PLAIN, POCKET = "#EAF2EC", "#3C733F", "#A9B4AC", "#1A1A1A"
WIDTH, HEIGHT = 7.6, 6.2  # inch, at most
NUMBERED, FEW = 40, 4
"""Largest number of discs that are drawn with their numbers; largest number of targets with a distance in the title."""
AT_END = ("final_state", "final_mean")


def draw_discs(figure: Figure, motion: Motion, recording: Recording) -> None:
    """Draw all discs to scale, pale at the start and full at the end, with their paths; set the figure's height.

    Discs with a target and discs that move at the start are coloured.
    """
    radius = recording[RADIUS]
    corners = read_table(recording)
    low = (motion.position - radius[:, None]).min(axis=(0, 1)) if corners is None else corners[0]
    high = (motion.position + radius[:, None]).max(axis=(0, 1)) if corners is None else corners[1]
    margin = 0.03 * float((high - low).max())
    size = high - low + 2 * margin
    figure.set_figheight(float(np.clip(WIDTH * size[1] / size[0], 2.0, HEIGHT)) + 1.0)
    axes = figure.subplots()
    axes.set(aspect="equal", xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin))
    axes.set(xlabel=style.with_unit("x", motion.position_unit), ylabel=style.with_unit("y", motion.position_unit))
    axes.grid(False)
    if corners is not None:
        wide, tall = high - low
        axes.add_patch(
            Rectangle((low[0], low[1]), wide, tall, facecolor=CLOTH, edgecolor=CUSHION, linewidth=3, zorder=0)
        )
    targets = read_targets(recording, len(radius))
    colors = choose_colors(motion, set(targets))
    for disc, place in targets.items():
        axes.add_patch(Circle(tuple(place), radius[disc], color=POCKET, zorder=1))
    lines = LineCollection(list(np.moveaxis(motion.position, 1, 0)), colors=colors, linewidths=1.1, zorder=2)
    axes.add_collection(lines, autolim=False)
    draw_circles(axes, motion.position[0], radius, colors, alpha=0.3, zorder=3)
    draw_circles(axes, motion.position[-1], radius, colors, alpha=1.0, zorder=4)
    if len(radius) <= NUMBERED:
        for disc, (x, y) in enumerate(motion.position[-1]):
            axes.text(x, y, str(disc), ha="center", va="center", fontsize=8, color=style.INK, zorder=5, clip_on=True)
    axes.set_title(_title(axes, motion, targets, style.body_names(recording)))


def draw_circles(axes: Axes, places: np.ndarray, radius: np.ndarray, colors: list[str], **look: Any) -> None:
    """Draw discs at places [n, 2] to scale."""
    wide = 2 * radius
    circles: Any = {"units": "xy", "offsets": places, "offset_transform": axes.transData}
    axes.add_collection(
        EllipseCollection(
            wide, wide, np.zeros(len(wide)), **circles, facecolors=colors, edgecolors=style.INK, linewidths=0.8, **look
        ),
        autolim=False,
    )


def choose_colors(motion: Motion, targets: set[int]) -> list[str]:
    """Choose the colour of each disc: those with a target, and those that move at the start, stand out."""
    moving = np.linalg.norm(motion.velocity[0], axis=1) > 0
    few = moving.sum() < len(moving)
    return [
        style.COLORS[1]
        if disc in targets and len(targets) < len(moving)
        else style.COLORS[5]
        if few and moves
        else PLAIN
        for disc, moves in enumerate(moving)
    ]


def read_table(recording: Recording) -> tuple[np.ndarray, np.ndarray] | None:
    """Corners of the rectangle around the discs, if the scene has one."""
    scene: dict[str, Any] = recording.scene
    table = scene.get("table") or {}
    return (np.array(table["lower"]), np.array(table["upper"])) if {"lower", "upper"} <= set(table) else None


def read_targets(recording: Recording, count: int) -> dict[int, np.ndarray]:
    """Target positions of single discs at the end, from the loss."""
    scene: dict[str, Any] = recording.scene
    found: dict[int, np.ndarray] = {}
    for term in scene.get("loss", {}).get("terms", []):
        target = term.get("target")
        if term["kind"] in AT_END and term.get("field", "position") == "position" and np.shape(target) == (2,):
            found |= {disc: np.array(target, float) for disc in _chosen(term.get("nodes"), count)}
    return found


def _chosen(nodes: Any, count: int) -> Iterable[int]:
    """Nodes of a term of the loss in the recorded scene."""
    if isinstance(nodes, dict):
        return range(nodes["first"], nodes["last"] + 1)
    return range(count) if nodes is None else nodes


def _title(axes: Axes, motion: Motion, targets: dict[int, np.ndarray], names: BodyNames) -> str:
    begin, end = (style.moment(axes, motion.time[row]) for row in (0, -1))
    span = f"from t = {begin} (pale) to {end}"
    if not 0 < len(targets) <= FEW:
        return span
    off = {disc: float(np.linalg.norm(motion.position[-1, disc] - place)) for disc, place in targets.items()}
    distances = ", ".join(
        [f"{names.of(disc)} {style.number(far)} {motion.position_unit}".rstrip() for disc, far in off.items()]
    )
    return f"{span}; distance to the target (black): {distances}"
