"""Shapes fixed to bodies, the matter that fills them, and planes that bound the world.

About the centre of a shape, for a density of 1, with half extents a, b, c of a box, radius r of spheres and capsules,
and half length L of a capsule, whose caps have their centres of mass at L + c0:

    disc       V = pi r^2                I = V r^2 / 2
    rectangle  V = 4 a b                 I = V (a^2 + b^2) / 3
    sphere     V = 4/3 pi r^3            I = 2/5 V r^2
    box        V = 8 a b c               I_x = V (b^2 + c^2) / 3
    capsule    a rectangle or cylinder 2 L long between two halves of a disc or sphere, V_0; c0 = 4 r / 3 pi or 3 r / 8:
               I = I_middle + I_0 + V_0 (L^2 + 2 L c0) across its axis;    V_middle r^2 / 2 + I_0 about it
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


class Solid(NamedTuple):
    """Geometry of matter of density 1."""

    volume: float
    """Volume, in the plane area [m^dim]."""
    centre: Array
    """Centre of mass, [dim]."""
    inertia: Array
    """Moments of inertia about the frame's origin, [S, S]."""


def fill_shapes(shapes: Sequence[Shape], dim: int) -> Solid:
    """Sum up all shapes of a body, in its frame; overlaps count twice. Without shapes there is no matter."""
    spins = 1 if dim == 2 else 3
    volume, first, inertia = 0.0, np.zeros(dim), np.zeros((spins, spins))
    for shape in shapes:
        shape_volume, moments = _shape_moments(shape, dim)
        offset = core_of(shape, dim).centre
        volume, first = volume + shape_volume, first + shape_volume * offset
        along = np.outer(offset, offset) if dim == 3 else 0.0
        inertia += np.diag(moments) + shape_volume * (offset @ offset * np.eye(spins) - along)
    return Solid(volume, first / volume if volume else first, inertia)


def _shape_moments(shape: Shape, dim: int) -> tuple[float, Array]:
    """Return volume and moments about the shape's own centre, [S]."""
    if isinstance(shape, Box):
        return _box(np.array(shape.half, float))
    ball, about = _ball(shape.radius, dim)
    if isinstance(shape, Sphere):
        return ball, np.full(1 if dim == 2 else 3, about)
    return _capsule(shape, dim, ball, about)


def _ball(r: float, dim: int) -> tuple[float, float]:
    volume = np.pi * r**2 if dim == 2 else 4 / 3 * np.pi * r**3
    return volume, volume * r**2 * (1 / 2 if dim == 2 else 2 / 5)


def _box(half: Array) -> tuple[float, Array]:
    volume, squares = float(np.prod(2 * half)), half**2
    return volume, volume / 3 * (squares.sum(keepdims=True) if len(half) == 2 else squares.sum() - squares)


def _capsule(shape: Capsule, dim: int, ball: float, about: float) -> tuple[float, Array]:
    r, L = shape.radius, shape.half_length
    cap = 4 * r / (3 * np.pi) if dim == 2 else 3 * r / 8
    ends = about + ball * (L**2 + 2 * L * cap)
    if dim == 2:
        middle, moments = _box(np.array([L, r]))
        return middle + ball, moments + ends
    middle = 2 * np.pi * r**2 * L
    across = middle * (r**2 / 4 + L**2 / 3) + ends
    return middle + ball, np.array([middle * r**2 / 2 + about, across, across])
