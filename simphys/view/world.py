"""Places of a replay in the world of the viewer: every run fits into a cube of edge 2, several stand side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

EDGE = 2.0
"""Largest extent of a run in the world."""
GAP = 0.3
"""Gap between runs that stand side by side."""


class World:
    """Map from the places of a replay to the world: x to the right, z up; a plane stands upright, at y = 0."""

    def __init__(self, replay: dict[str, Any], left: float = 0.0) -> None:
        low, high = np.array(replay["low"], float), np.array(replay["high"], float)
        self.dim = int(replay["dim"])
        self.turn = np.array(replay.get("turn") or np.eye(self.dim))
        self.curve = "axes" in replay and any(layer["kind"] == "curve" for layer in replay["layers"])
        corners = np.array(np.meshgrid(*zip(low, high, strict=True), indexing="ij")).reshape(self.dim, -1).T
        turned = corners @ self.turn.T
        first, last = turned.min(axis=0), turned.max(axis=0)
        size = np.maximum(last - first, 1e-12)
        self.scale: Array = np.full(self.dim, EDGE / size.max())
        if self.curve:  # its axes have units of their own
            self.scale = np.array([EDGE, EDGE / 2]) / size
        self.middle = (first + last) / 2
        self.width = float(size[0] * self.scale[0])
        self.shift = np.array([left + self.width / 2, 0.0, 0.0])
        self.low = self(turned.min(axis=0) @ self.turn)  # corners of the run in the world
        self.high = self(turned.max(axis=0) @ self.turn)

    def __call__(self, places: Array, depth: float = 0.0) -> Array:
        """Map places [..., dim] to the world [..., 3]; those of a plane lie `depth` behind it."""
        moved = (np.asarray(places, float) @ self.turn.T - self.middle) * self.scale
        return self._embed(moved, depth) + self.shift

    def direction(self, vectors: Array) -> Array:
        """Turn vectors [..., dim] into the world [..., 3], without a change of their lengths.

        Bodies on a line, which lie in a plane, have vectors [..., 1].
        """
        missing = [(0, 0)] * (np.ndim(vectors) - 1) + [(0, self.dim - np.shape(vectors)[-1])]
        return self._embed(np.pad(np.asarray(vectors, float), missing) @ self.turn.T, 0.0)

    def size(self, length: float) -> float:
        """Map a length to the world."""
        return float(length * self.scale[0])

    def rotation(self, turn: Array) -> Array:
        """Turn the angle [1] of a body in a plane, or its quaternion (w, x, y, z), into a quaternion of the world."""
        if self.dim == 3:
            return np.asarray(turn, float)
        half = float(turn[0]) / 2
        return np.array([np.cos(half), 0.0, -np.sin(half), 0.0])

    def shape(self, points: Array) -> Array:
        """Map the corners of a shape in its body's frame to the world's scale, [..., 3]."""
        return self._embed(np.asarray(points, float) * self.scale, 0.0)

    def _embed(self, moved: Array, depth: float) -> Array:
        if self.dim == 3:
            return moved
        return np.stack([moved[..., 0], np.full(moved.shape[:-1], depth), moved[..., 1]], axis=-1)
