"""Rigid colliders: what they are. How they push the grid: grid.py; how they move: collider_motion.py."""

from __future__ import annotations

from dataclasses import dataclass

from simphys.autograd.errors import InputError

SHAPES = {"sphere": 1, "box": 0, "capsule": 2, "plane": 0}
"""The shapes with the number of their sizes; a box has one for each axis."""

CONTACTS = ("sticking", "slip", "separating", "friction")
"""What a wall or a collider does to the material at it: see grid.py."""


@dataclass(frozen=True)
class Collider:
    """A rigid body that moves as it is told and pushes the material.

    In its own frame its centre is the origin. A capsule lies along the first axis; a plane's normal, which points into
    the material, is the last axis.
    """

    shape: str
    """Of SHAPES."""
    size: tuple[float, ...] = ()
    """[m]. sphere: radius; box: half of each edge; capsule: half the length between centres, radius; plane: none."""
    contact: str = "separating"
    """What it does to material at it, of CONTACTS."""

    def require_valid(self, dim: int) -> None:
        """Raise InputError unless shape, sizes and contact make sense in `dim` dimensions."""
        if self.shape not in SHAPES:
            raise InputError("Collider.shape", f"one of {tuple(SHAPES)}", self.shape, "Choose one of these.")
        if self.contact not in CONTACTS:
            raise InputError("Collider.contact", f"one of {CONTACTS}", self.contact, "Choose one of these.")
        count = dim if self.shape == "box" else SHAPES[self.shape]
        if len(self.size) != count or not all(size > 0 for size in self.size):
            raise InputError(f"Collider.size of a {self.shape}", f"{count} positive lengths", self.size, "Give these.")
