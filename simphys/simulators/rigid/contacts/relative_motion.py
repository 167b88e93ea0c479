"""Motion of the two bodies of a candidate within a step, with the velocities after the forces; tau is a time in it."""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from .. import rows


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return the offset of the centres, the speed of features, and the orientation of a body at a time."""
    at = rows.functions(real, dim)

    @ti.func
    def centre_offset(position: ti.template(), twist: ti.template(), i, j, tau):
        """Return the vector from the centre of body j to that of i."""
        still = at.vec_of(position, i) - at.vec_of(position, j)
        return still + tau * (at.linear(twist, i) - at.linear(twist, j))

    @ti.func
    def speed(frame: ti.template(), start, twist: ti.template(), i, j):
        """Return u for features with this frame."""
        r_a, r_b = at.vec_at(frame, start + dim), at.vec_at(frame, start + 2 * dim)
        u_a = at.linear(twist, i) + rotation.cross(at.angular(twist, i), r_a)
        u_b = at.linear(twist, j) + rotation.cross(at.angular(twist, j), r_b)
        return at.vec_at(frame, start).dot(u_a - u_b)

    @ti.func
    def rotated_at(body, tau, x: ti.template()):
        """Return the orientation of a body at a time tau."""
        return rotation.advance(at.rotation_of(x.orientation, body), tau * at.angular(x.twist, body))

    return SimpleNamespace(centre_offset=centre_offset, speed=speed, rotated_at=rotated_at)
