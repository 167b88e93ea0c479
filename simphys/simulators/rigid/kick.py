"""Kick: forces and torques change the velocities of all bodies during a time h, before impulses do:

    v* = v + h (a + f/m)
    w* = w + h A^-1 tau

a gravity, f, tau force and torque about the centre, m mass, A = R diag(J) R^T (see inertia.py). Free rotation, with its
gyroscopic torque, belongs to the drift (variational.py). A fixed body gets h = 0. Adjoint, for g_v = adj_v* and g =
adj_w*:

    adj_v = g_v     adj_a = h g_v     adj_f = (h/m) g_v     adj_m = -f.adj_f / m     adj_w = g     adj_tau = h A^-1 g
    adj_J = -(adj of A^-1 by 1/J) / J^2     adj_theta from dR, see inertia.py

Tangent, with d(A^-1 tau) in inertia.py:

    dv* = dv + h (da + df/m - f dm/m^2)     dw* = dw + h d(A^-1 tau)
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from . import inertia, rows
from .arrays import SETTING


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return the element functions of one body in `dim` dimensions."""
    rotate, body = rotation.functions(real, dim), inertia.functions(real, dim)
    vec, spin, quat = ti.types.vector(dim, real), body.spin, ti.types.vector(rotate.rotations, real)

    @ti.func
    def kick(v: vec, w: spin, q: quat, f: vec, tau: spin, m: real, J: spin, a: vec, h: real):
        return v + h * (a + f / m), w + h * body.apply(rotate.matrix(q), 1 / J, tau)

    @ti.func
    def adj_kick(q: quat, f: vec, tau: spin, m: real, J: spin, h: real, g_v: vec, g: spin):
        """Return the adjoints of theta, f, tau, m and J; those of v, a and w are g_v, h g_v and g."""
        adj_f = (h / m) * g_v
        adj_inverse, adj_tau, adj_theta = body.adj(rotate.matrix(q), 1 / J, tau, h * g)
        return adj_theta, adj_f, adj_tau, -f.dot(adj_f) / m, -adj_inverse / (J * J)

    @ti.func
    def jvp_push(f: vec, m: real, h: real, dv: vec, df: vec, dm: real, da: vec) -> vec:
        """Return the tangent of v*."""
        return dv + h * (da + df / m - dm / (m * m) * f)

    @ti.func
    def jvp_spin(q: quat, tau: spin, J: spin, h: real, dw: spin, dtheta: spin, dtau: spin, dJ: spin) -> spin:
        """Return the tangent of w*."""
        return dw + h * body.jvp(rotate.matrix(q), 1 / J, tau, dtheta, -dJ / (J * J), dtau)

    return SimpleNamespace(kick=kick, adj=adj_kick, jvp_push=jvp_push, jvp_spin=jvp_spin)


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies; for the arguments see rows.py. Bodies that are not `free` have h = 0."""
    at, f = rows.functions(real, dim), functions(real, dim)

    @ti.func
    def kick(model: ti.template(), x: ti.template()):
        for i in range(model.bodies):
            v_new, w_new = f.kick(
                at.vec_of(x.velocity, i), at.spin_of(x.angular_velocity, i), at.rotation_of(x.orientation, i),
                at.linear(x.wrench, i), at.angular(x.wrench, i), x.mass[i],
                at.spin_of(x.inertia, i), at.vec_at(x.gravity, 0), model.free[i] * model.h,
            )  # fmt: skip
            start = i * (dim + at.spins)
            at.put_vec(x.twist, start, v_new)
            at.put_spin(x.twist, start + dim, w_new)

    @ti.func
    def adj_kick(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for i in range(model.bodies):
            g_v = at.linear(adj_x.twist, i)
            g_w = at.angular(adj_x.twist, i)
            g_theta, g_f, g_tau, g_m, g_J = f.adj(
                at.rotation_of(x.orientation, i), at.linear(x.wrench, i), at.angular(x.wrench, i), x.mass[i],
                at.spin_of(x.inertia, i), model.free[i] * model.h, g_v, g_w,
            )  # fmt: skip
            at.add_vec_of(adj_x.velocity, i, g_v)
            at.add_spin_of(adj_x.angular_velocity, i, g_w)
            at.add_turn_of(adj_x.orientation, x.orientation, i, g_theta)
            at.add_twist(adj_x.wrench, i, g_f, g_tau)
            adj_x.mass[i] = adj_x.mass[i] + g_m
            at.add_spin_of(adj_x.inertia, i, g_J)
            at.add_vec(adj_x.gravity, 0, model.free[i] * model.h * g_v)

    @ti.func
    def jvp_kick(model: ti.template(), x: ti.template(), dx: ti.template()):
        for i in range(model.bodies):
            h_i, m, J = model.free[i] * model.h, x.mass[i], at.spin_of(x.inertia, i)
            dv = f.jvp_push(
                at.linear(x.wrench, i), m, h_i, at.vec_of(dx.velocity, i), at.linear(dx.wrench, i),
                dx.mass[i], at.vec_at(dx.gravity, 0),
            )  # fmt: skip
            dw = f.jvp_spin(
                at.rotation_of(x.orientation, i), at.angular(x.wrench, i), J, h_i,
                at.spin_of(dx.angular_velocity, i), at.turn_of(x.orientation, dx.orientation, i),
                at.angular(dx.wrench, i), at.spin_of(dx.inertia, i),
            )  # fmt: skip
            start = i * (dim + at.spins)
            at.put_vec(dx.twist, start, dv)
            at.put_spin(dx.twist, start + dim, dw)

    return SimpleNamespace(forward=kick, adjoint=adj_kick, tangent=jvp_kick)


Kick = routine(
    "Kick",
    loops,
    Fields(
        given=("velocity", "angular_velocity", "orientation", "wrench", "mass", "inertia", "gravity"),
        results=("twist",),
        numbers=("h",),
    ),
    SETTING,
    of_model=("bodies", "free"),
)
"""Twist [n, D] after forces have acted for `h` [s]."""
