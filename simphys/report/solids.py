"""Shapes of a replay: rigid bodies, walls, tables, planes and colliders."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from simphys.numerics.orientation import matrices
from simphys.plot import style
from simphys.plot.motion.discs import RADIUS, read_targets
from simphys.plot.motion.recorded import Motion
from simphys.plot.motion.rigid import ORIENTATION, list_bodies
from simphys.plot.motion.surroundings import find_box, find_ground, hull, read_surroundings, surface
from simphys.record import Recording
from simphys.report.packing import pack

AROUND = 14
"""Number of sides around a ball."""

ROOMY = 10.0
"""Size of the space between walls, in sizes of the motion, above which the walls are not all in view."""
GOALS = 40
"""Largest number of targets that are drawn."""

Layer = dict[str, Any]


def shape_layers(
    recording: Recording, motion: Motion, frames: np.ndarray
) -> tuple[list[Layer], list[float], list[float]]:
    """Make the layers of rigid bodies and planes, and the corners of the space that they need."""
    scene: dict[str, Any] = recording.scene
    time, turns = style.frames(recording, f"{ORIENTATION}/time", f"{ORIENTATION}/value")
    turns = turns[np.searchsorted(time, motion.time)][frames]
    position = motion.position[frames]
    bodies, shapes = list_bodies(recording), []
    reach = 0.0
    for number, body in enumerate(bodies):
        parts = [_part(shape, motion.dim) for shape in body.get("shapes", [])]
        reach = max([reach, *(float(np.linalg.norm(part["points"], axis=1).max()) for part in parts)])
        shapes.append(
            {
                "name": body.get("name") or f"body {number}",
                "colour": -1 if body.get("fixed") else number,
                "parts": [{**part, "points": np.round(part["points"], 6).tolist()} for part in parts],
            }
        )
    low = position.min(axis=(0, 1)) - reach
    high = position.max(axis=(0, 1)) + reach
    poses = {
        "kind": "shapes",
        "name": "bodies",
        "place": pack(position, low, high),
        "turn": pack(turns, float(turns.min()), float(turns.max())),
        "shapes": shapes,
    }
    grounds = [_ground(each, low, high) for each in scene.get("planes", [])]
    trail = {"kind": "trail", "name": "paths of the centres", "place": poses["place"]}
    return [*grounds, trail, poses], low.tolist(), high.tolist()


def _part(shape: dict[str, Any], dim: int) -> dict[str, Any]:
    """Corners [points, dim] of a shape in its body's frame, and its faces as lists of their numbers."""
    size = shape["half"] if "half" in shape else [shape.get("half_length", 0.0), shape["radius"]]
    offset = np.array(shape.get("offset") or np.zeros(dim))
    points, faces = mesh(shape["kind"], size, dim)
    part = {"points": points + offset, "faces": faces}
    if dim == 2 and shape["kind"] == "sphere":
        part["mark"] = [0, len(points)]  # a radius shows how it turns
        part["points"] = np.concatenate([part["points"], offset[None]])
    return part


def mesh(kind: str, size: Any, dim: int) -> tuple[np.ndarray, list[list[int]]]:
    """Make the corners of a box, a ball or a capsule, and its faces; in a plane, its outline."""
    if dim == 2:
        points = hull(surface(kind, size, 2, 0.0))
        return points, [list(range(len(points)))]
    if kind == "box":
        corners = np.array(list(product(*((-half, half) for half in size))))
        return corners, [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    radius, half = size[-1], size[0] if kind == "capsule" else 0.0
    tilt = np.linspace(0, np.pi, AROUND // 2 + 1)
    turn = np.linspace(0, 2 * np.pi, AROUND, endpoint=False)
    rows = [(radius * np.cos(t) + (half if t <= np.pi / 2 else -half), radius * np.sin(t)) for t in tilt]
    points = np.array([(x, r * np.cos(a), r * np.sin(a)) for x, r in rows for a in turn])
    faces = [
        [row * AROUND + at, (row + 1) * AROUND + at, (row + 1) * AROUND + after, row * AROUND + after]
        for row in range(len(rows) - 1)
        for at in range(AROUND)
        for after in [(at + 1) % AROUND]
    ]
    return points, faces


def _ground(section: dict[str, Any], low: np.ndarray, high: np.ndarray) -> Layer:
    """Make a plane: in a plane the region behind it, in space a square around the motion."""
    normal = np.array(section["normal"], float)
    length = float(np.linalg.norm(normal))
    normal, offset = normal / length, section.get("offset", 0.0) / length
    middle, reach = (low + high) / 2, float((high - low).max())
    foot = middle - (normal @ middle - offset) * normal
    if len(normal) == 2:
        along = 20 * reach * np.array([-normal[1], normal[0]])
        back = 20 * reach * normal
        return _flat("ground", [foot - along, foot + along, foot + along - back, foot - along - back])
    first = np.cross(normal, np.eye(3)[np.argmin(abs(normal))])
    first *= 0.75 * reach / np.linalg.norm(first)
    second = np.cross(normal, first)
    return _flat("ground", [foot + first + second, foot + first - second, foot - first - second, foot - first + second])


def _flat(name: str, corners: list[np.ndarray], look: str = "ground") -> Layer:
    return {"kind": "flat", "name": name, "look": look, "points": np.round(corners, 6).tolist()}


def surroundings(
    recording: Recording, motion: Motion, frames: np.ndarray, position: np.ndarray
) -> tuple[list[Layer], np.ndarray, np.ndarray]:
    """Make the layers around nodes or particles: table, ground, walls and colliders; and the corners of their space."""
    scene: dict[str, Any] = recording.scene
    flat = position.reshape(-1, position.shape[2])
    low, high = flat.min(axis=0), flat.max(axis=0)
    layers: list[Layer] = []
    table = scene.get("table") or {}
    if {"lower", "upper"} <= set(table):
        low, high = np.minimum(low, table["lower"]), np.maximum(high, table["upper"])
        corners = [np.array([x, y]) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
        edge = np.array([table["lower"], table["upper"]])
        layers.append(_flat("table", [np.array([edge[int(c[0]), 0], edge[int(c[1]), 1]]) for c in corners], "table"))
    if RADIUS in recording:
        most = float(recording[RADIUS].max())
        low, high = low - most, high + most
    if (plane := find_ground(scene, motion.dim)) is not None:
        layers.append(_ground(plane, low, high))
    if motion.dim > 1 and (("grid" in scene and "margin" in scene["grid"]) or find_box(recording) is not None):
        around = read_surroundings(recording, motion.time[frames])
        low, high = _add_colliders(layers, around, low, high)
        if around.walls is not None:
            layers.append(
                {
                    "kind": "box",
                    "name": "periodic box" if around.is_periodic else "walls",
                    "points": np.round(around.walls, 6).tolist(),
                }
            )
            if np.prod(np.ptp(around.walls, axis=0)) < ROOMY * np.prod(np.maximum(high - low, 1e-9)):
                low, high = np.minimum(low, around.walls[0]), np.maximum(high, around.walls[1])
    return layers, low, high


def goal_layers(recording: Recording, count: int) -> list[Layer]:
    """Make the layer of places that single bodies in a plane should reach at the end; none without such a loss."""
    radius = recording[RADIUS] if RADIUS in recording else np.zeros(count)
    goals = read_targets(recording, count)
    if not 0 < len(goals) <= GOALS:
        return []
    points = [{"place": place.tolist(), "radius": float(radius[body])} for body, place in goals.items()]
    return [{"kind": "goals", "name": "targets", "points": points}]


def _add_colliders(
    layers: list[Layer], around: Any, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    dim = len(low)
    for number, (kind, size) in enumerate(around.shapes):
        place, turn = around.position[:, number], around.rotation[:, number]
        if kind == "plane":
            normal = matrices(turn[0])[:, -1]
            layers.append(_ground({"normal": normal, "offset": float(normal @ place[0])}, low, high))
            continue
        points, faces = mesh(kind, size, dim)
        reach = float(np.linalg.norm(points, axis=1).max())
        low, high = np.minimum(low, place.min(axis=0) - reach), np.maximum(high, place.max(axis=0) + reach)
        part = {"points": np.round(points, 6).tolist(), "faces": faces}
        layers.append(
            {
                "kind": "shapes",
                "name": f"collider {number}",
                "place": pack(place[:, None], place.min(axis=0), place.max(axis=0)),
                "turn": pack(turn[:, None], float(turn.min()), float(turn.max())),
                "shapes": [{"name": f"collider {number}", "colour": -1, "parts": [part]}],
            }
        )
    return low, high
