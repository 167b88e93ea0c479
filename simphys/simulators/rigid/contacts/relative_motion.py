"""Motion of the two bodies of a candidate within a step, with the velocities after the forces; tau is a time in it."""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from ..rows import angular, frame_of, linear, orientation_of, row_of

CLOSE = (1e-14, 1e-6)
"""Convergence tolerance of tau as a fraction of h, in double and in single precision."""


@ti.func
def centre_offset(position: ti.template(), twist: ti.template(), i, j, tau):
    """Return the vector from the centre of body j to that of i."""
    still = row_of(position, i) - row_of(position, j)
    return still + tau * (linear(row_of(twist, i)) - linear(row_of(twist, j)))


@ti.func
def speed(frame: ti.template(), c, twist: ti.template(), i, j):
    """Return u for features with the frame of candidate c."""
    n, r_a, r_b = frame_of(frame, c)
    twist_a, twist_b = row_of(twist, i), row_of(twist, j)
    u_a = linear(twist_a) + rotation.cross(angular(twist_a), r_a)
    u_b = linear(twist_b) + rotation.cross(angular(twist_b), r_b)
    return n.dot(u_a - u_b)


@ti.func
def rotated_at(body, tau, x: ti.template()):
    """Return the orientation of a body at a time tau."""
    return rotation.advance(orientation_of(x.orientation, body), tau * angular(row_of(x.twist, body)))
