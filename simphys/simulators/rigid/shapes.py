"""Shapes fixed to bodies, and planes that bound the world."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Array
from simphys.simulator.model_checks import is_length

Vector = tuple[float, ...]


@dataclass(frozen=True)
class Sphere:
    """All points within a radius of a centre; in the plane a disc."""

    radius: float
    """Radius [m]."""
    offset: Vector | None = None
    """Offset of the centre from the centre of mass, in the body's frame [m], [dim]; None: no offset."""

    def __post_init__(self) -> None:
        _require_positive("Sphere.radius", self.radius)


@dataclass(frozen=True)
class Box:
    """A box whose edges lie along the axes of the body's frame; in the plane a rectangle."""

    half: Vector
    """Half extents [m], [dim]."""
    offset: Vector | None = None
    """Offset of the centre from the centre of mass, in the body's frame [m], [dim]; None: no offset."""

    def __post_init__(self) -> None:
        for extent in self.half:
            _require_positive("Box.half", extent)


@dataclass(frozen=True)
class Capsule:
    """All points within a radius of a segment along the first axis of the body's frame."""

    radius: float
    """Radius [m]."""
    half_length: float
    """Half length of the segment [m]."""
    offset: Vector | None = None
    """Offset of the segment's middle from the centre of mass, in the body's frame [m], [dim]; None: no offset."""

    def __post_init__(self) -> None:
        _require_positive("Capsule.radius", self.radius)
        _require_positive("Capsule.half_length", self.half_length)


Shape = Sphere | Box | Capsule


class Core(NamedTuple):
    """A point, segment or box, with a radius about it, along the axes of a body's frame."""

    centre: Array
    """Centre from the centre of mass [m], [dim]."""
    half: Array
    """Half extents [m], [dim]; 0 across a point or a segment."""
    radius: float
    """Radius about all of it [m]."""


def core_of(shape: Shape, dim: int) -> Core:
    """Return the core of a shape."""
    half = np.zeros(dim)
    if isinstance(shape, Box):
        half[:] = shape.half
    elif isinstance(shape, Capsule):
        half[0] = shape.half_length
    centre = np.zeros(dim) if shape.offset is None else np.array(shape.offset, float)
    return Core(centre, half, getattr(shape, "radius", 0.0))


@dataclass(frozen=True)
class Plane:
    """A plane that bounds the world: bodies stay where normal . x > offset."""

    normal: Vector
    """Unit vector into the world, [dim]."""
    offset: float = 0.0
    """Distance of the plane from the origin along the normal [m]."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.offset):
            raise InputError("Plane.offset", "finite", self.offset, "Give a distance.")
        length = sum([each * each for each in self.normal]) ** 0.5
        if not abs(length - 1) < 1e-9:
            raise InputError("Plane.normal", "a unit vector", self.normal, f"Divide it by its length, {length:g}.")


def _require_positive(name: str, value: float) -> None:
    if not is_length(value):
        raise InputError(name, "a positive length, finite", value, "Omit the shape if the body touches nothing.")
