"""Rigid colliders: shape, size and contact. See grid.py for their effect on nodes, collider_motion.py for motion."""

from __future__ import annotations

from dataclasses import dataclass

from simphys.autograd.errors import InputError

SHAPES = {"sphere": 1, "box": 0, "capsule": 2, "plane": 0}
"""Number of sizes of each shape; a box has one for each axis instead."""
MEANINGS = {
    "sphere": "its radius",
    "box": "half of each edge",
    "capsule": "half of the distance between its centres, and the radius",
    "plane": "none",
}
"""Meaning of these sizes."""

CONTACTS = ("sticking", "slip", "separating", "friction")
"""Contact conditions between material and a wall or a collider, see contact.py."""


@dataclass(frozen=True)
class Collider:
    """A rigid body with prescribed motion that pushes the material.

    Its centre is the origin of its own frame. A capsule lies along the first axis. A plane's normal points into the
    material, along the last axis.
    """

    shape: str
    """One of SHAPES."""
    size: tuple[float, ...] = ()
    """Sizes [m]. sphere: radius; box: half of each edge; capsule: half the distance of centres, radius; plane: none."""
    contact: str = "separating"
    """Contact condition, one of CONTACTS."""

    def require_valid(self, dim: int) -> None:
        """Raise InputError unless shape, sizes and contact make sense in `dim` dimensions."""
        if self.shape not in SHAPES:
            raise InputError("Collider.shape", f"must be one of {tuple(SHAPES)}", self.shape, "Choose one of these.")
        if self.contact not in CONTACTS:
            raise InputError("Collider.contact", f"must be one of {CONTACTS}", self.contact, "Choose one of these.")
        count = dim if self.shape == "box" else SHAPES[self.shape]
        if len(self.size) != count or not all(size > 0 for size in self.size):
            constraint = f"a {self.shape} has {count} positive size{'' if count == 1 else 's'}"
            raise InputError("Collider.size", constraint, list(self.size), f"Give {MEANINGS[self.shape]}.")
