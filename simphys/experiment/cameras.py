"""Cameras, whose numbers may be unknown: how far, turned how, and where they see a position.

    orthographic    pixel = s (R p)_axis + origin_axis
    pinhole         pixel = f c_axis / c_z + origin_axis,    c = R (p - position)

R turns by an angle in the plane; in space by three about x, then y, then z. A pinhole camera looks along its axis z; it
is in space, and what moves in the plane has z = 0. Source: Hartley and Zisserman 2004, Multiple View Geometry, 6.1.
"""

from __future__ import annotations

from typing import Any

from simphys.autograd import Tensor, ops
from simphys.autograd.errors import UnphysicalValue

Vector = list[Any]


def see_orthographic(sensor: Any, position: Vector, axis: int) -> Tensor:
    """Compute a pixel of an orthographic camera."""
    seen: Tensor = _dot(rotation(sensor.camera_rotation, len(position))[axis], position)
    return seen * sensor.camera_scale + sensor.camera_origin[axis]


def see_pinhole(sensor: Any, position: Vector, axis: int) -> Tensor:
    """Compute a pixel of a pinhole camera. Errors: UnphysicalValue if it looks away."""
    whole = [*position, 0.0][:3]
    away = [each - sensor.camera_position[i] for i, each in enumerate(whole)]
    rows = rotation(sensor.camera_rotation, 3)
    depth = _dot(rows[2], away)
    if not (depth.data > 0).all():
        found = f"{float(depth.data.min()):.3g} along its axis z"
        remedy = "Turn the camera (observations.camera.rotation), move it (position), or bound these unknowns."
        raise UnphysicalValue("observations.camera", "must look at what its pixels show", found, remedy)
    seen: Tensor = _dot(rows[axis], away) / depth
    return seen * sensor.camera_focal + sensor.camera_origin[axis]


def rotation(angles: Tensor, dim: int) -> list[Vector]:
    """Make the rows of the matrix that turns by an angle in the plane, or by three about x, then y, then z."""
    if dim == 2:
        c, s = ops.cos(angles), ops.sin(angles)
        return [[c, -s], [s, c]]
    (ca, cb, cc), (sa, sb, sc) = ([each(angles[i]) for i in range(3)] for each in (ops.cos, ops.sin))
    return [
        [cc * cb, cc * sb * sa - sc * ca, cc * sb * ca + sc * sa],
        [sc * cb, sc * sb * sa + cc * ca, sc * sb * ca - cc * sa],
        [-sb, cb * sa, cb * ca],
    ]


def _dot(row: Vector, vector: Vector) -> Any:
    found = row[0] * vector[0]
    for factor, each in zip(row[1:], vector[1:], strict=True):
        found = found + factor * each
    return found
