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

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import quaternion


def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions in 2-D or 3-D; `spins` and `rotations` are the numbers of components of phi and q."""
    return in_plane(real) if dim == 2 else in_space(real)


@functools.cache
@no_type_check
def in_plane(real: Any) -> SimpleNamespace:
    """The element functions in 2-D, by an angle [rad]; angles and angular velocities are vectors with one component."""
    one, vec, mat = ti.types.vector(1, real), ti.types.vector(2, real), ti.types.matrix(2, 2, real)

    @ti.func
    def matrix(q: one) -> mat:
        c, s = ti.cos(q[0]), ti.sin(q[0])
        return mat([[c, -s], [s, c]])

    @ti.func
    def cross(omega: one, r: vec) -> vec:
        return vec(-omega[0] * r[1], omega[0] * r[0])

    @ti.func
    def adj_cross(omega: one, f: vec) -> vec:
        return vec(omega[0] * f[1], -omega[0] * f[0])

    @ti.func
    def moment(r: vec, f: vec) -> one:
        return one(r[0] * f[1] - r[1] * f[0])

    @ti.func
    def jvp_turn(q: one, dq: one) -> one:
        return dq

    @ti.func
    def adj_turn(q: one, adj_theta: one) -> one:
        return adj_theta

    @ti.func
    def adj_theta(q: one, adj_q: one) -> one:
        return adj_q

    @ti.func
    def advance(q: one, phi: one) -> one:
        return q + phi

    @ti.func
    def adj_advance(q: one, phi: one, g: one):
        return g, g

    @ti.func
    def jvp_advance(q: one, phi: one, dq: one, dphi: one) -> one:
        return dq + dphi

    return SimpleNamespace(
        spins=1, rotations=1, matrix=matrix, cross=cross, adj_cross=adj_cross, moment=moment,
        adj_turn=adj_turn, adj_theta=adj_theta, jvp_turn=jvp_turn,
        advance=advance, adj_advance=adj_advance, jvp_advance=jvp_advance,
    )  # fmt: skip


@functools.cache
@no_type_check
def in_space(real: Any) -> SimpleNamespace:
    """The element functions in 3-D, by a quaternion."""
    quat, vec, mat = ti.types.vector(4, real), ti.types.vector(3, real), ti.types.matrix(3, 3, real)
    f = quaternion.functions(real)

    @ti.func
    def matrix(q: quat) -> mat:
        w, x, y, z = q[0], q[1], q[2], q[3]
        k = 2 / q.dot(q)
        return mat([
            [1 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y)],
            [k * (x * y + w * z), 1 - k * (x * x + z * z), k * (y * z - w * x)],
            [k * (x * z - w * y), k * (y * z + w * x), 1 - k * (x * x + y * y)],
        ])  # fmt: skip

    @ti.func
    def cross(omega: vec, r: vec) -> vec:
        return omega.cross(r)

    @ti.func
    def adj_cross(omega: vec, force: vec) -> vec:
        return force.cross(omega)

    @ti.func
    def moment(r: vec, force: vec) -> vec:
        return r.cross(force)

    @ti.func
    def jvp_turn(q: quat, dq: quat) -> vec:
        return (2 / q.dot(q)) * f.vector_part(f.product(dq, f.conjugate(q)))

    @ti.func
    def adj_turn(q: quat, adj_theta: vec) -> quat:
        return (2 / q.dot(q)) * f.product(f.with_scalar(0.0, adj_theta), q)

    @ti.func
    def adj_theta(q: quat, adj_q: quat) -> vec:
        return f.vector_part(f.product(adj_q, f.conjugate(q))) / 2

    @ti.func
    def advance(q: quat, phi: vec) -> quat:
        return f.product(f.exponential(phi), q / q.norm())

    @ti.func
    def adj_advance(q: quat, phi: vec, g: quat):
        unit = q / q.norm()
        adj_e, adj_unit = f.adj_product(f.exponential(phi), unit, g)
        return (adj_unit - unit.dot(adj_unit) * unit) / q.norm(), f.adj_exponential(phi, adj_e)

    @ti.func
    def jvp_advance(q: quat, phi: vec, dq: quat, dphi: vec) -> quat:
        unit = q / q.norm()
        dunit = (dq - unit.dot(dq) * unit) / q.norm()
        return f.jvp_product(f.exponential(phi), unit, f.jvp_exponential(phi, dphi), dunit)

    return SimpleNamespace(
        spins=3, rotations=4, matrix=matrix, cross=cross, adj_cross=adj_cross, moment=moment,
        adj_turn=adj_turn, adj_theta=adj_theta, jvp_turn=jvp_turn,
        advance=advance, adj_advance=adj_advance, jvp_advance=jvp_advance,
    )  # fmt: skip
