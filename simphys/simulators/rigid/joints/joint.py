"""Connections of bodies: joints, which leave one motion free or none, and spring-dampers between two points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Array

from ..shapes import Vector

REVOLUTE, PRISMATIC, FIXED = KINDS = ("revolute", "prismatic", "fixed")

WORLD = -1
"""Index of the world, in whose frame positions are given."""


@dataclass(frozen=True)
class Joint:
    """A joint from body a to body b or the world; it leaves free a rotation (revolute), a slide (prismatic) or nothing.

    The anchors of both bodies coincide (revolute, fixed), or lie on a line along the axis (prismatic). The orientation
    of b's frame relative to a's is `relative`, up to a rotation about the axis (revolute).
    """

    kind: str
    """revolute, prismatic or fixed."""
    a: int
    """Index of a body."""
    b: int
    """Index of another body, or WORLD."""
    anchor_a: Vector
    """Anchor in the frame of a, from its centre of mass [m], [dim]."""
    anchor_b: Vector
    """Anchor in the frame of b, from its centre of mass; for the world a position [m], [dim]."""
    axis: Vector | None = None
    """Unit vector in the frame of a, [dim]: axis of rotation (only in space, None in the plane), or of the slide."""
    relative: Vector | None = None
    """Orientation of b's frame in a's: (angle [rad],), or a unit quaternion; None if the frames agree."""
    motor: bool = False
    """True if a motor drives the free motion of the joint."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError("Joint.kind", f"one of {KINDS}", self.kind, "Choose one of these.")
        _require_ends("Joint", self.a, self.b)
        if self.motor and self.kind == FIXED:
            raise InputError("Joint.motor", "drives a revolute or a prismatic joint", self.kind, "Remove the motor.")

    def rows(self, dim: int) -> int:
        """Return the number of scalar constraints."""
        spins = 1 if dim == 2 else 3
        return dim + spins - (self.kind != FIXED)


@dataclass(frozen=True)
class Spring:
    """A spring with a damper between a point of body a and one of body b or of the world."""

    a: int
    """Index of a body."""
    b: int
    """Index of another body, or WORLD."""
    anchor_a: Vector
    """Anchor in the frame of a, from its centre of mass [m], [dim]."""
    anchor_b: Vector
    """Anchor in the frame of b, from its centre of mass; for the world a position [m], [dim]."""

    def __post_init__(self) -> None:
        _require_ends("Spring", self.a, self.b)


def _require_ends(name: str, a: int, b: int) -> None:
    if a == b:
        raise InputError(name, "joins two bodies, or a body and the world", f"body {a} twice", "Name another.")
    if a < 0:
        raise InputError(f"{name}.a", "a body", a, f"In a {name.lower()} to the world, the body comes first.")


class Ends(NamedTuple):
    """Bodies and anchors of joints or spring-dampers as arrays, for sub-steps."""

    a: Array
    """Body a of each, [L]."""
    b: Array
    """Body b, or WORLD, [L]."""
    anchor_a: Array
    """Anchor in the frame of a, [L, dim]."""
    anchor_b: Array
    """Anchor in the frame of b, or of the world, [L, dim]."""
    still: Array
    """Orientation of the world where it is body b, else 0, [L, R]."""

    @property
    def arms(self) -> Array:
        """Both anchors, [L, 2 dim]."""
        return np.hstack([self.anchor_a, self.anchor_b])


def tabulate_ends(links: Sequence[Joint | Spring], dim: int) -> Ends:
    """Tabulate the ends of all joints or spring-dampers."""
    a, b = np.array([(link.a, link.b) for link in links], np.int32).reshape(-1, 2).T
    anchors = np.array([(link.anchor_a, link.anchor_b) for link in links], float).reshape(-1, 2, dim)
    return Ends(a, b, anchors[:, 0], anchors[:, 1], orient_world(b, dim))


def orient_world(bodies: Array, dim: int) -> Array:
    """Return the orientation of the world where it is the body, else 0, [len(bodies), R]."""
    return (bodies == WORLD)[:, None] * (np.zeros(1) if dim == 2 else np.array([1.0, 0.0, 0.0, 0.0]))
