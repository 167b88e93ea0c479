"""What joins bodies: joints, which leave one motion free or none, and spring-dampers between two points."""

from __future__ import annotations

from dataclasses import dataclass

from ..autograd.errors import InputError
from .shapes import Vector

REVOLUTE, PRISMATIC, FIXED = KINDS = ("revolute", "prismatic", "fixed")

WORLD = -1
"""The index of what is no body: the world, whose frame is the one that positions are in."""


@dataclass(frozen=True)
class Joint:
    """Of body a to body b, or to the world: what it leaves free is one turn (revolute), one slide (prismatic), nothing.

    The anchors of both lie on one point (revolute, fixed), or on a line along the axis (prismatic). The orientation of
    b's frame seen from a's is `relative`, up to a turn about the axis (revolute).
    """

    kind: str
    """revolute, prismatic or fixed."""
    a: int
    """A body."""
    b: int
    """Another body, or WORLD."""
    anchor_a: Vector
    """In the frame of a, from its centre of mass [m], [dim]."""
    anchor_b: Vector
    """In the frame of b, from its centre of mass; a place of the world [m], [dim]."""
    axis: Vector | None = None
    """Unit vector in the frame of a, [dim]: of the turn (in space only: in the plane None), or of the slide."""
    relative: Vector | None = None
    """Orientation of b's frame in a's: (angle [rad],), or a unit quaternion; None: the frames agree."""
    motor: bool = False
    """Whether a motor drives what the joint leaves free."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError("Joint.kind", f"one of {KINDS}", self.kind, "Choose one of these.")
        if self.a == self.b:
            raise InputError(
                "Joint", "joins two bodies, or a body and the world", f"body {self.a} twice", "Name another."
            )
        if self.a < 0:
            raise InputError("Joint.a", "a body", self.a, "Of a joint to the world the body comes first.")
        if self.motor and self.kind == FIXED:
            raise InputError("Joint.motor", "drives a revolute or a prismatic joint", self.kind, "Leave it away.")

    def rows(self, dim: int) -> int:
        """How many scalar constraints it is."""
        spins = 1 if dim == 2 else 3
        return dim + spins - (self.kind != FIXED)


@dataclass(frozen=True)
class Spring:
    """A spring with a damper between a point of body a and one of body b or of the world."""

    a: int
    """A body."""
    b: int
    """Another body, or WORLD."""
    anchor_a: Vector
    """In the frame of a, from its centre of mass [m], [dim]."""
    anchor_b: Vector
    """In the frame of b, from its centre of mass; a place of the world [m], [dim]."""

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise InputError(
                "Spring", "joins two bodies, or a body and the world", f"body {self.a} twice", "Name another."
            )
        if self.a < 0:
            raise InputError("Spring.a", "a body", self.a, "Of a spring to the world the body comes first.")
