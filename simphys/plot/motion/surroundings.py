"""Surroundings of particles: walls of their grid, a periodic box, rigid colliders, as outlines in a picture's plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from simphys.numerics.orientation import matrices
from simphys.plot import style
from simphys.record import Recording

LINE = "#9A9A9A"
AZIMUTH, ELEVATION = np.radians(30), np.radians(20)
EDGES = f"{style.BODIES}/box/edges"
POSITION, ROTATION = (f"{style.FIELDS}/collider_{name}" for name in ("position", "rotation"))


@dataclass(frozen=True)
class Surroundings:
    """Walls and colliders.

    walls [2, dim]: the lower and upper corner of the box of their first nodes or, if `is_periodic`, of a periodic box;
    None without either. The colliders have shapes with sizes and, along time, positions [T, K, dim] and rotations
    [T, K, 1 or 4].
    """

    walls: np.ndarray | None
    shapes: Sequence[tuple[str, Sequence[float]]]
    position: np.ndarray
    rotation: np.ndarray
    is_periodic: bool = False

    def wall_lines(self) -> np.ndarray:
        """Compute the edges between the walls as lines in the picture, [edges, 2, 2]."""
        assert self.walls is not None
        return box_lines(self.walls)

    def outlines(self, frame: int, reach: float | None) -> list[tuple[np.ndarray, float]]:
        """Compute the silhouette of each collider in the picture, [corners, 2], and its distance; the farthest first.

        Planes end at `reach` and lie behind everything else; for None they are left out.
        """
        made = []
        for (shape, size), where, rotation in zip(self.shapes, self.position[frame], self.rotation[frame], strict=True):
            if shape == "plane" and reach is None:
                continue
            points = surface(shape, size, len(where), reach or 0.0) @ matrices(rotation).T + where
            away = np.inf if shape == "plane" else float(project(where)[1])
            made.append((hull(project(points)[0]), away))
        return sorted(made, key=lambda each: -each[1])


def read_surroundings(recording: Recording, time: np.ndarray) -> Surroundings:
    """Read the surroundings of a recorded scene at some of its recorded times."""
    scene: Mapping[str, Any] = recording.scene
    walls, grid = find_box(recording), scene.get("grid")
    is_periodic = walls is not None
    if grid is not None:
        cells, margin = np.array(grid["cells"]), grid["margin"]
        walls = np.array([np.full(len(cells), margin - 1), cells - margin + 1]) * grid["spacing"]
    shapes = [(each["shape"], each["size"]) for each in scene.get("colliders", [])]
    if not shapes or f"{POSITION}/value" not in recording:
        return Surroundings(walls, [], np.zeros((len(time), 0, 2)), np.zeros((len(time), 0, 1)), is_periodic)
    rows = np.searchsorted(recording[f"{POSITION}/time"], time)
    position, rotation = recording[f"{POSITION}/value"], recording[f"{ROTATION}/value"]
    return Surroundings(walls, shapes, position[rows], rotation[rows])


def find_box(recording: Recording) -> np.ndarray | None:
    """Find the corners [2, dim] of the periodic box of bodies, which has all of its axes; None if there is none."""
    lengths = read_box(recording)
    if lengths is None or not np.isfinite(lengths).all():
        return None
    return np.stack([np.zeros_like(lengths), lengths])


def read_box(recording: Recording) -> np.ndarray | None:
    """Read the lengths [dim] of the periodic box of bodies, inf for an open axis; None if there is none."""
    if EDGES not in recording:
        return None
    return recording[EDGES]


def find_ground(scene: dict[str, Any], dim: int) -> dict[str, Any] | None:
    """Find the ground under nodes in a scene, at a height along the last axis."""
    ground = (scene.get("environment") or {}).get("ground")
    if not ground or dim < 2:
        return None
    return {"normal": np.eye(dim)[-1], "offset": ground.get("height", 0.0)}


def find_turn(scene: dict[str, Any], dim: int) -> list[list[float]] | None:
    """Find the rotation that brings gravity down in a scene with a ground, which is then seen as a slope."""
    gravity: Any = (scene.get("environment") or {}).get("gravity")
    if find_ground(scene, dim) is None or np.shape(gravity) != (dim,) or not np.any(gravity):
        return None
    up = -np.array(gravity, float) / np.linalg.norm(gravity)
    last = np.eye(dim)[-1]
    if up @ last > 1 - 1e-12 or up @ last < 1e-6:
        return None
    both = up + last  # two reflections: by the bisector, then by the last axis
    turn = 2 * np.outer(last, up) - np.outer(both, both) / (1 + up @ last) + np.eye(dim)
    return turn.tolist()


def box_lines(box: np.ndarray) -> np.ndarray:
    """Compute the edges of a box between two corners [2, dim] as lines in the picture, [edges, 2, 2]."""
    dim = box.shape[1]
    ends = [(at, at | 1 << axis) for at in range(1 << dim) for axis in range(dim) if not at >> axis & 1]
    corners = np.array([[box[at >> axis & 1, axis] for axis in range(dim)] for at in range(1 << dim)])
    return project(corners)[0][np.array(ends)]


def draw_box(axes: Axes, lines: np.ndarray, *, is_periodic: bool) -> None:
    """Draw the edges [edges, 2, 2] of a box, dashed if it is periodic: bodies pass them."""
    look: dict[str, Any] = {"colors": LINE, "linewidths": 1, "linestyles": "--" if is_periodic else "-", "zorder": 1}
    axes.add_collection(LineCollection(list(lines), **look), autolim=False)


def project(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project positions to the picture [..., 2], with their distance [...]: a plane as it is, space in parallel."""
    if position.shape[-1] == 2:
        return position, np.zeros(position.shape[:-1])
    x, y, z = np.moveaxis(position, -1, 0)
    across = np.cos(AZIMUTH) * x + np.sin(AZIMUTH) * y
    away = np.cos(AZIMUTH) * y - np.sin(AZIMUTH) * x
    up = np.cos(ELEVATION) * z + np.sin(ELEVATION) * away
    return np.stack([across, up], axis=-1), np.cos(ELEVATION) * away - np.sin(ELEVATION) * z


def surface(shape: str, size: Sequence[float], dim: int, reach: float) -> np.ndarray:
    """Compute points whose convex hull is a collider, or a body, in its own frame, [points, dim]."""
    if shape == "box":
        return np.array(list(product(*((-half, half) for half in size))))
    if shape == "plane":
        flat = np.array(list(product(*[(-reach, reach)] * (dim - 1), (0.0, -0.02 * reach if dim == 2 else 0.0))))
        return flat
    ball = size[-1] * _directions(dim)
    if shape == "sphere":
        return ball
    along = size[0] * np.eye(dim)[0]
    return np.concatenate([ball - along, ball + along])


def _directions(dim: int) -> np.ndarray:
    """Compute unit vectors in all directions: a circle, or Fibonacci's lattice on a sphere."""
    count = np.arange(64 if dim == 2 else 400)
    if dim == 2:
        angle = 2 * np.pi * count / len(count)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    z = 1 - (2 * count + 1) / len(count)
    turn, radius = np.pi * (1 + 5**0.5) * count, np.sqrt(1 - z * z)
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), z], axis=1)


def hull(points: np.ndarray) -> np.ndarray:
    """Compute the corners of the convex hull of points in a plane, in order; a degenerate one is a line."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # a plane seen edge-on
        return points[[np.argmin(points[:, 0]), np.argmax(points[:, 0])]]
