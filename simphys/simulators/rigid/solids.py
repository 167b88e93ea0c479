"""Shapes filled with matter: volume, centre of mass and moments of inertia of a body that consists of them.

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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .shapes import Box, Capsule, Shape, Sphere, core_of

Array = np.ndarray[Any, Any]


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
