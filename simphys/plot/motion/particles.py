"""Thousands of particles: snapshots with the walls and colliders around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch, Polygon
from matplotlib.ticker import MaxNLocator

from simphys.plot import style
from simphys.plot.motion.recorded import Motion, read_motion
from simphys.plot.motion.surroundings import Surroundings, draw_box, project, read_surroundings
from simphys.record import Recording
from simphys.scenefile.body_names import NODES

MANY = 200
"""Smallest number of bodies without links for this picture."""
SNAPSHOTS = 6
COLOR_MAP = "viridis"
GROUP = f"{style.BODIES}/group"
PIXELS = 240
"""Pixels per inch of a snapshot."""
OVERLAP = 1.5
"""Diameter of a particle's mark in distances of neighbours: more than the square root of 2 leaves no gaps."""
MEAN_PANEL = 2.0  # inch
REMEDY = "The picture 'trajectory' shows few bodies, and bodies joined by springs."


@dataclass(frozen=True)
class ParticleView:
    """Motion projected to the picture.

    points [T, n, 2] of the particles, their distance from the viewer `away` [T, n], limits [2, 2] of the picture,
    spacing of neighbours at the start, and group [n], the piece of material of each particle; None for one piece; names
    of the pieces.
    """

    motion: Motion
    around: Surroundings
    points: np.ndarray
    away: np.ndarray
    speed: np.ndarray
    limits: np.ndarray
    spacing: float
    group: np.ndarray | None
    names: Sequence[str]
    norm: Normalize


def particles(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the particles at six times, coloured by their piece of material if there are several, else by speed.

    Beneath is their mean position along time. In 3-D they are seen from 20° above, without perspective. Saved at `path`
    if given. Errors: NotRecorded if there is no motion, or one of few or joined bodies.
    """
    view = read_view(recording)
    motion = view.motion
    frames = np.unique(np.linspace(0, len(motion.time) - 1, SNAPSHOTS).round().astype(int))
    with style.style():
        figure = style.new_figure(recording, 6.0, motion.ended)
        size = np.ptp(view.limits, axis=1)
        columns = min(len(frames), SNAPSHOTS if size[1] > 1.6 * size[0] else SNAPSHOTS // 2)
        rows = -(-len(frames) // columns)
        width = 7.2 / columns
        panel = float(np.clip(width * size[1] / size[0], 0.9, 4.0))
        height = rows * (panel + 0.3) + 0.7
        figure.set_figheight(height + MEAN_PANEL)
        above, beneath = figure.subfigures(2, 1, squeeze=False, height_ratios=(height, MEAN_PANEL))[:, 0]
        _draw_snapshots(above, view, frames, rows, columns, min(width, panel * size[0] / size[1]))
        _draw_mean(beneath.subplots(), motion, frames, _name_several(recording))
        style.save(figure, path)
    return figure


def read_view(recording: Recording) -> ParticleView:
    """Read the motion of many particles. Errors: NotRecorded if there is none."""
    motion = read_motion(recording)
    count = motion.position.shape[1]
    if count < MANY or len(motion.springs) or motion.dim == 1:
        what = "joined ones" if len(motion.springs) else f"{count} in {motion.dim}-D"
        constraint = f"needs {MANY} bodies or more without springs between them, in a plane or in space"
        raise style.NotRecorded("picture 'particles'", constraint, what, REMEDY)
    around = read_surroundings(recording, motion.time)
    points, away = project(motion.within)
    speed = np.linalg.norm(motion.velocity, axis=2)
    group = recording[GROUP].astype(int) if GROUP in recording and np.ptp(recording[GROUP]) else None
    names = _names(recording, group)
    if group is not None:  # pieces that share a name are one, such as two muscles of a leg
        group = np.array([names.index(name) for name in names])[group]
    return ParticleView(
        motion=motion,
        around=around,
        points=points,
        away=away,
        speed=speed,
        limits=_limits(points, around),
        spacing=_spacing(motion.position[0]),
        group=group,
        names=names,
        norm=Normalize(0, float(speed.max()) or 1.0),
    )


def _names(recording: Recording, group: np.ndarray | None) -> Sequence[str]:
    """Name the pieces of material by the scene, or by their numbers."""
    given = style.piece_names(recording)
    count = 0 if group is None else int(group.max()) + 1
    return [*given, *(f"piece {place}" for place in range(len(given), count))]


def _name_several(recording: Recording) -> str:
    names = style.body_names(recording)
    return "particles" if names.word == NODES.word else names.several


def draw_walls(axes: Axes, view: ParticleView) -> None:
    """Draw the walls, and set limits and labels of the axes."""
    if view.around.walls is not None:
        draw_box(axes, view.around.wall_lines(), is_periodic=view.around.is_periodic)
    axes.set(aspect="equal", xlim=view.limits[0], ylim=view.limits[1])
    across, up = ("x", "y") if view.motion.dim == 2 else ("across", "up")
    axes.set_xlabel(style.with_unit(across, view.motion.position_unit))
    axes.set_ylabel(style.with_unit(up, view.motion.position_unit))


def draw_particles(axes: Axes, view: ParticleView, frame: int, scale: float) -> list[Artist]:
    """Draw colliders and particles of a frame; `scale` is the number of pixels per unit of length."""
    away = view.away[frame]
    made: list[Artist] = []
    for outline, distance in view.around.outlines(frame, float(np.ptp(view.limits))):
        before = distance < away.min()
        look: dict[str, Any] = {"zorder": 4, "alpha": 0.5} if before else {"zorder": 2}
        face = "#EFEFEF" if np.isinf(distance) else "#D8D8D8"
        made.append(axes.add_patch(Polygon(outline, facecolor=face, edgecolor="#666666", linewidth=1, **look)))
    extent = (*view.limits[0], *view.limits[1])
    made.append(axes.imshow(_image(view, frame, scale), extent=extent, origin="lower", zorder=3))
    return sorted(made, key=lambda artist: artist.get_zorder())


def draw_colorbar(figure: Figure | SubFigure, axes: list[Axes], view: ParticleView) -> None:
    """Draw the colour bar of the particles, or the names of the pieces that colours stand for."""
    if view.group is None:
        label = style.with_unit("speed", view.motion.velocity_unit)
        figure.colorbar(ScalarMappable(view.norm, COLOR_MAP), ax=axes, label=label, fraction=0.05)
        return
    pieces = np.unique(view.group)
    if len(pieces) <= len(style.COLORS):
        marks = [Patch(color=style.COLORS[piece % len(style.COLORS)], label=view.names[piece]) for piece in pieces]
        axes[-1].figure.legend(handles=marks, loc="outside right upper", handlelength=1.0)


def _draw_snapshots(
    figure: SubFigure, view: ParticleView, frames: np.ndarray, rows: int, columns: int, width: float
) -> None:
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    scale = PIXELS * width / float(np.ptp(view.limits[0]))
    for axes, frame in zip(panels.flat, frames, strict=False):
        draw_walls(axes, view)
        draw_particles(axes, view, int(frame), scale)
        axes.set_title(f"t = {style.moment(axes, view.motion.time[frame])}")
        axes.label_outer()
    for axes in panels.flat[len(frames) :]:
        axes.remove()
    panels[0, 0].xaxis.set_major_locator(MaxNLocator(int(np.clip(1.5 * width, 1, 5))))  # shared by all panels
    draw_colorbar(figure, list(panels.flat[: len(frames)]), view)


def _draw_mean(axes: Axes, motion: Motion, frames: np.ndarray, several: str) -> None:
    for moment in motion.time[frames]:
        axes.axvline(moment, color="#999999", linewidth=0.8, linestyle=":")
    for axis in range(motion.dim):
        axes.plot(motion.time, motion.position[..., axis].mean(axis=1), label=style.AXIS_NAMES[axis])
    axes.set_title(f"mean position of {motion.position.shape[1]} {several}")
    style.label_time(axes)
    axes.set_ylabel(style.with_unit("position", motion.position_unit))
    style.legend_above(axes)


def _limits(points: np.ndarray, around: Surroundings) -> np.ndarray:
    """Compute the limits [axis, low and high] of particles and colliders (but planes) in all frames, with a margin."""
    reached = [points.reshape(-1, 2)]
    if around.is_periodic:
        reached.append(around.wall_lines().reshape(-1, 2))
    for frame in {0, len(points) // 2, len(points) - 1}:
        outlines = around.outlines(frame, None)
        reached += [outline for outline, _ in outlines]
    low = np.min([each.min(axis=0) for each in reached], axis=0)
    high = np.max([each.max(axis=0) for each in reached], axis=0)
    size = 1.1 * np.maximum(high - low, 0.02 * (high - low).max() or 1.0)
    return np.stack([(low + high - size) / 2, (low + high + size) / 2], axis=1)


def _spacing(position: np.ndarray) -> float:
    """Estimate the median distance of nearest neighbours at positions [n, dim]."""
    from scipy.spatial import KDTree

    distance, _ = KDTree(position).query(position[:: max(1, len(position) // 1000)], k=2)
    return float(np.median(distance[:, 1]))


def _image(view: ParticleView, frame: int, scale: float) -> np.ndarray:
    """Draw each particle as a disc, the nearest on top: [height, width, 4]. Faster than a collection of circles."""
    width, height = np.ceil(np.ptp(view.limits, axis=1) * scale).astype(int)
    radius = float(np.clip(OVERLAP * view.spacing * scale / 2, 0.7, 40))
    near = np.arange(-int(radius), int(radius) + 1)
    disc = np.array([(x, y) for x in near for y in near if x * x + y * y <= radius**2])
    order = np.argsort(-view.away[frame], kind="stable")
    centre = ((view.points[frame, order] - view.limits[:, 0]) * scale).astype(int)
    centre = np.clip(centre, int(radius), np.array([width, height]) - 1 - int(radius))
    at = (centre @ [1, width])[:, None] + disc @ [1, width]
    colors = np.full((len(at), 4), 255, np.uint8)
    colors[:, :3] = 255 * _colors(view, frame)[order]
    image = np.zeros(width * height, np.uint32)
    image[at] = colors.view(np.uint32)  # the last of several values at a pixel counts
    return image.view(np.uint8).reshape(height, width, 4)


def _colors(view: ParticleView, frame: int) -> np.ndarray:
    """Colour of each particle, [n, 3], by piece of material or by speed; in space darker if it is farther away."""
    if view.group is None:
        colors = matplotlib.colormaps[COLOR_MAP](view.norm(view.speed[frame]))[:, :3]
    else:
        palette = np.array([to_rgb(color) for color in style.COLORS])
        colors = palette[view.group % len(palette)]
    away = view.away[frame]
    return colors * (1 - 0.4 * (away - away.min()) / (np.ptp(away) or 1.0))[:, None]
