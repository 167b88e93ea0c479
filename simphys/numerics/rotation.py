"""Rotations with a common interface in 2-D and 3-D: by an angle q (one number), or a quaternion q = (w, x, y, z).

R(q) rotates from the body frame to the world frame; a quaternion of any length |q| > 0 stands for q / |q|. An angular
velocity omega has 1 or 3 components. `cross` is omega x r; its adjoints are `moment`, r x f, with respect to omega, and
`adj_cross`, f x omega, with respect to r. A change dq is a small rotation dtheta in the world frame,

    dR = [dtheta]x R,     dtheta = dq  or  2/|q|^2 vec(dq q*)

which does not depend on the length of q. So derivatives with respect to q need only dtheta and its transpose,

    adj_q = adj_theta  or  2/|q|^2 (0, adj_theta) q,        and back     adj_theta = adj_q  or  vec(adj_q q*) / 2

Advancing by the rotation vector phi gives q' = q + phi, or e(phi) q / |q| (see quaternion.py).
Source: Sola 2017, Quaternion kinematics for the error-state Kalman filter, sections 2 and 4.
"""

from simphys.autograd.kernels.runtime import ti

from .forward_mode import tangent_of
from .quaternion import (
    adj_exponential,
    adj_product,
    conjugate,
    exponential,
    product,
    vector_part,
    with_scalar,
)


@ti.func
def matrix(q):
    if ti.static(q.n == 1):
        c, s = ti.cos(q[0]), ti.sin(q[0])
        return ti.Matrix([[c, -s], [s, c]])
    else:
        w, x, y, z = q[0], q[1], q[2], q[3]
        k = 2 / q.dot(q)
        return ti.Matrix([
            [1 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y)],
            [k * (x * y + w * z), 1 - k * (x * x + z * z), k * (y * z - w * x)],
            [k * (x * z - w * y), k * (y * z + w * x), 1 - k * (x * x + y * y)],
        ])  # fmt: skip


@ti.func
def cross(omega, r):
    if ti.static(r.n == 2):
        return ti.Vector([-omega[0] * r[1], omega[0] * r[0]])
    else:
        return omega.cross(r)


@ti.func
def adj_cross(omega, f):
    if ti.static(f.n == 2):
        return ti.Vector([omega[0] * f[1], -omega[0] * f[0]])
    else:
        return f.cross(omega)


@ti.func
def moment(r, f):
    if ti.static(r.n == 2):
        return ti.Vector([r[0] * f[1] - r[1] * f[0]])
    else:
        return r.cross(f)


@ti.func
def jvp_turn(q, dq):
    if ti.static(q.n == 1):
        return dq
    else:
        return (2 / q.dot(q)) * vector_part(product(dq, conjugate(q)))


@ti.func
def adj_turn(q, adj_theta):
    if ti.static(q.n == 1):
        return adj_theta
    else:
        return (2 / q.dot(q)) * product(with_scalar(0.0, adj_theta), q)


@ti.func
def adj_theta(q, adj_q):
    if ti.static(q.n == 1):
        return adj_q
    else:
        return vector_part(product(adj_q, conjugate(q))) / 2


@ti.func
def advance(q, phi):
    if ti.static(q.n == 1):
        return q + phi
    else:
        return product(exponential(phi), q / q.norm())


@ti.func
def adj_advance(q, phi, g):
    if ti.static(q.n == 1):
        return g, g
    else:
        unit = q / q.norm()
        adj_e, adj_unit = adj_product(exponential(phi), unit, g)
        return (adj_unit - unit.dot(adj_unit) * unit) / q.norm(), adj_exponential(phi, adj_e)


jvp_advance = tangent_of(advance, "q", "phi")
