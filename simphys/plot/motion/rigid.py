"""Rigid bodies in their shape and orientation at several times, with their paths, the planes and the targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator

from simphys.numerics.orientation import matrices
from simphys.plot import style
from simphys.plot.components import draw_components, name_components
from simphys.plot.motion.recorded import Motion
from simphys.plot.motion.surroundings import AZIMUTH, ELEVATION, hull, project, surface
from simphys.record import Recording

ORIENTATION = f"{style.FIELDS}/orientation"
SNAPSHOTS = 6
GROUND, HELD = "#DDDAD2", "#B8B8B8"
PANEL_WIDTH, PANEL_HEIGHT, CURVES_HEIGHT = 7.6, 4.4, 2.2  # inch: of a row of snapshots, one of them at most, beneath
TICK_WIDTH = 0.6  # inch, of a number below an axis, with a gap to the next
AWAY = np.array([-np.cos(ELEVATION) * np.sin(AZIMUTH), np.cos(ELEVATION) * np.cos(AZIMUTH), -np.sin(ELEVATION)])
"""Direction away from the viewer, in space."""


@dataclass(frozen=True)
class RigidView:
    """Motion with orientations `turns` [T, n, 1 or 4], sections of the bodies, planes, and limits [2, 2]."""

    motion: Motion
    turns: np.ndarray
    bodies: list[dict[str, Any]]
    planes: list[tuple[np.ndarray, float]]
    targets: list[tuple[int, np.ndarray, np.ndarray]]
    limits: np.ndarray

    def colour(self, body: int) -> str:
        return HELD if self.bodies[body].get("fixed") else style.COLORS[body % len(style.COLORS)]


def are_rigid(recording: Recording) -> bool:
    """True if a run has rigid bodies with recorded orientations."""
    scene: dict[str, Any] = recording.scene
    return scene.get("simulator", {}).get("name") == "rigid" and f"{ORIENTATION}/value" in recording


def draw_rigid(figure: Figure, motion: Motion, recording: Recording) -> None:
    """Draw snapshots at six times with the paths so far, and positions along time; set the figure's height.

    In space, bodies are seen from 20° above. A line in a disc shows its orientation. Targets of the loss are dashed.
    """
    view = read_bodies(motion, recording)
    frames = np.unique(np.linspace(0, len(motion.time) - 1, SNAPSHOTS).round().astype(int))
    across, up = np.ptp(view.limits, axis=1)
    columns = min(len(frames), 6 if up > 1.6 * across else 3 if up > 0.4 * across else 2)
    rows = -(-len(frames) // columns)
    panel = float(np.clip(PANEL_WIDTH / columns * up / across, 0.7, PANEL_HEIGHT))
    height = rows * (panel + 0.3) + 0.6
    figure.set_figheight(height + CURVES_HEIGHT)
    above, beneath = figure.subfigures(2, 1, squeeze=False, height_ratios=(height, CURVES_HEIGHT))[:, 0]
    panels = above.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, frame in zip(panels.flat, frames, strict=False):
        draw_bodies(axes, view, int(frame))
        axes.set_title(f"t = {style.moment(axes, motion.time[frame])}")
        axes.set(aspect="equal", xlim=view.limits[0], ylim=view.limits[1])
        axes.grid(False)
    wide = min(PANEL_WIDTH / columns, panel * across / up)
    most = max(1, min(int(wide / TICK_WIDTH), 9))
    panels[0, 0].xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], min_n_ticks=min(most, 2)))
    for axes in panels.flat[len(frames) :]:
        axes.remove()
    names = ("x", "y") if motion.dim == 2 else ("across", "up")
    for axes in panels[-1]:
        axes.set_xlabel(style.with_unit(names[0], motion.position_unit))
    for axes in panels[:, 0]:
        axes.set_ylabel(style.with_unit(names[1], motion.position_unit))
    curves = beneath.subplots()
    draw_components(curves, motion.time, motion.position, motion.free, style.body_names(recording))
    name_components(curves, motion.free, motion.dim, style.body_names(recording))
    style.label_time(curves)
    curves.set_ylabel(style.with_unit("position", motion.position_unit))
    curves.set_title("centres of mass of the bodies")


def read_bodies(motion: Motion, recording: Recording) -> RigidView:
    """Read all that pictures of rigid bodies need."""
    scene: dict[str, Any] = recording.scene
    time, turns = style.frames(recording, f"{ORIENTATION}/time", f"{ORIENTATION}/value")
    turns = turns[np.searchsorted(time, motion.time)]
    bodies = list_bodies(recording)
    size = np.array([_size(body) for body in bodies])
    points = project(motion.position)[0]
    targets = list(_targets(scene, turns[-1]))
    wanted = [(project(place)[0], size[body]) for body, place, _ in targets]
    low = np.min([(points - size[:, None]).min(axis=(0, 1)), *[place - own for place, own in wanted]], axis=0)
    high = np.max([(points + size[:, None]).max(axis=(0, 1)), *[place + own for place, own in wanted]], axis=0)
    margin = 0.04 * float((high - low).max())
    return RigidView(
        motion=motion,
        turns=turns,
        bodies=bodies,
        planes=[_plane(each) for each in scene.get("planes", [])],
        targets=targets,
        limits=np.stack([low - margin, high + margin], axis=1),
    )


def list_bodies(recording: Recording) -> list[dict[str, Any]]:
    """List the bodies of a recorded scene, with offsets of shapes that count from their centres of mass."""
    bodies: Any = recording.scene["bodies"]
    centres = recording.params.get("centre_of_mass", np.zeros(0))
    if centres.ndim != 2:
        return list(bodies)
    return [
        {**body, "shapes": [_about(shape, centre) for shape in body.get("shapes", [])]}
        for body, centre in zip(bodies, centres, strict=True)
    ]


def _about(shape: dict[str, Any], centre: np.ndarray) -> dict[str, Any]:
    offset = np.array(shape.get("offset") or np.zeros(len(centre)))
    return {**shape, "offset": (offset - centre).tolist()}


def _plane(section: dict[str, Any]) -> tuple[np.ndarray, float]:
    length = float(np.linalg.norm(section["normal"]))
    return np.array(section["normal"]) / length, section.get("offset", 0.0) / length


def _size(body: dict[str, Any]) -> float:
    """Largest extent of a body's shapes from its centre of mass."""
    found = [0.0]
    for shape in body.get("shapes", []):
        offset = np.linalg.norm(shape.get("offset") or [0.0])
        own = np.linalg.norm(shape["half"]) if "half" in shape else shape["radius"] + shape.get("half_length", 0.0)
        found.append(float(offset + own))
    return max(found)


def _targets(scene: dict[str, Any], last: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield bodies with a target position at the end, the position, and the target (or else final) orientation."""
    terms = [term for term in scene.get("loss", {}).get("terms", []) if term["kind"] == "final_state"]
    wanted: dict[str, dict[int, np.ndarray]] = {"position": {}, "orientation": {}}
    for term in terms:
        nodes, target = term.get("nodes"), term.get("target")
        if isinstance(nodes, list) and np.ndim(target) == 1 and term["field"] in wanted:
            wanted[term["field"]] |= dict.fromkeys(nodes, np.array(target, float))
    for body, place in wanted["position"].items():
        yield body, place, wanted["orientation"].get(body, last[body])


def draw_bodies(axes: Axes, view: RigidView, frame: int) -> None:
    """Draw planes, paths so far, bodies and targets at a frame."""
    motion, dim = view.motion, view.motion.dim
    for plane in view.planes:
        axes.add_patch(Polygon(_ground(*plane, view), facecolor=GROUND, edgecolor="none", zorder=0))
    paths = project(motion.position[: frame + 1])[0]
    place, turn = motion.position[frame], view.turns[frame]
    for order, body in enumerate(np.argsort(-project(place)[1], kind="stable").tolist()):
        colour = view.colour(body)
        axes.plot(*paths[:, body].T, color=colour, linewidth=0.9, zorder=1)
        for outline, shade in _outlines(view.bodies[body], place[body], turn[body]):
            light = (1 - shade) * np.array(to_rgb(colour)) + shade
            axes.add_patch(Polygon(outline, facecolor=light, edgecolor=style.INK, linewidth=0.7, zorder=3 + order))
        if dim == 2:
            _draw_marks(axes, view.bodies[body], place[body], matrices(turn[body]), 3 + order)
    for body, where, turned in view.targets:
        for outline, _ in _outlines(view.bodies[body], where, turned):
            axes.add_patch(Polygon(outline, fill=False, edgecolor=style.INK, linewidth=0.9, linestyle="--", zorder=50))


def _draw_marks(axes: Axes, body: dict[str, Any], place: np.ndarray, turn: np.ndarray, zorder: int) -> None:
    """Draw a radius of each disc, along the first axis of its frame."""
    for shape in body.get("shapes", []):
        if shape["kind"] == "sphere":
            x, y = shape.get("offset") or (0.0, 0.0)
            ends = np.array([[x, y], [x + shape["radius"], y]]) @ turn.T + place
            axes.plot(*ends.T, color=style.INK, linewidth=0.9, zorder=zorder)


def _outlines(body: dict[str, Any], place: np.ndarray, turn: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Yield polygons [corners, 2] in the picture with their lightness, 0 to 1; visible sides of boxes in space."""
    rotation = matrices(turn)
    for shape in body.get("shapes", []):
        size = shape["half"] if "half" in shape else [shape.get("half_length", 0.0), shape["radius"]]
        shift = np.array(shape.get("offset") or np.zeros(len(place)))
        if shape["kind"] == "box" and len(place) == 3:
            for axis, side in product(range(3), (-1, 1)):
                normal = side * rotation[:, axis]
                if normal @ AWAY < 0:
                    corners = _side(np.array(size, float), axis, side) + shift
                    yield project(corners @ rotation.T + place)[0], 0.35 + 0.3 * normal[2]
        else:
            points = (surface(shape["kind"], size, len(place), 0.0) + shift) @ rotation.T + place
            yield hull(project(points)[0]), 0.35


def _side(half: np.ndarray, axis: int, side: int) -> np.ndarray:
    """Compute the corners of a side of a box, in order."""
    around = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    return half * np.insert(around, axis, side, axis=1)


def _ground(normal: np.ndarray, offset: float, view: RigidView) -> np.ndarray:
    """Compute the outline of a plane: in the plane, the region behind it; in space, a square around all bodies."""
    position = view.motion.position.reshape(-1, view.motion.dim)
    reach = 2 * float(np.ptp(view.limits, axis=1).max())
    if view.motion.dim == 2:
        middle = view.limits.mean(axis=1)
        foot, along = middle - (normal @ middle - offset) * normal, reach * np.array([-normal[1], normal[0]])
        return np.array([foot - along, foot + along, foot + along - reach * normal, foot - along - reach * normal])
    middle = (position.min(axis=0) + position.max(axis=0)) / 2
    foot = middle - (normal @ middle - offset) * normal
    first = np.cross(normal, np.eye(3)[np.argmin(abs(normal))])
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)
    size = 0.45 * float(np.ptp(position, axis=0).max()) + max(_size(body) for body in view.bodies)
    return project(foot + size * np.array([first + second, first - second, -first - second, -first + second]))[0]
