"""Kick: forces and torques change the velocities of all bodies during a time h, before impulses do:

    v* = v + h (a + f/m)
    w* = w + h A^-1 tau - h R y,     N(w_b) y = w_b x (J w_b)

a gravity, f, tau force and torque about the centre, m mass, A = R diag(J) R^T (see inertia.py), w_b = R^T w. The last
term is the gyroscopic torque -w x (A w). It exists only in space, and only if `gyroscopic`: a variational step has it
in its drift (see variational.py). It is linearly implicit, in the body frame,

    N(w) = diag(J) + h/2 d(w x (J w))/dw = diag(J) + h/2 ([w]x diag(J) - [J w]x)

which for this quadratic equation is Kahan's method: errors in energy and |A w| of a free body stay O(h^2) for all
times. The explicit form, N = diag(J), lets the momentum grow, |J w*|^2 = |J w|^2 + h^2 |w x J w|^2, until the motion
blows up. Implicit Euler, with h in place of h/2 (Catto 2015), dissipates nearly all energy of a top within some hundred
turns. Other torques stay outside of N, so that action and reaction change the momenta of two bodies by opposite
amounts. A fixed body gets h = 0.

Adjoint, for g_v = adj_v*, g = adj_w*, and in the body's frame lambda = N^-T (-h R^T g), with D and * of inertia.py:

    adj_v = g_v     adj_a = h g_v     adj_f = (h/m) g_v     adj_m = -f.adj_f / m     adj_tau = h A^-1 g
    adj_w = g - R ((w_b - h/2 y) * (D(J) lambda))
    adj_J = D(lambda (w_b * (w_b - h y)) / 2) - lambda y - (adj of A^-1 by 1/J) / J^2
    adj_theta from dR, see inertia.py

Other products are componentwise. The tangent is

    dv* = dv + h (da + df/m - f dm/m^2)           dw_b = R^T (dw - dtheta x w)
    dw* = dw + h d(A^-1 tau) - h (dtheta x (R y) + R dy)
    dy = -N^-1 (D(J) (dw_b * (w_b - h/2 y)) + D(dJ) (w_b * (w_b - h y)) / 2 + dJ y)

since N y and w_b x (J w_b) are linear in J, and quadratic in w_b and y; d(A^-1 tau) is in inertia.py.
Source: Kahan 1993, Unconventional numerical methods for trajectory calculations; Hirota
and Kimura 2000, Discretization of the Euler top.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import arrays, inertia, rows
from .arrays import flat
from .checks import EULER
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like


@functools.cache
@no_type_check
def functions(real: Any, dim: int, gyroscopic: bool) -> SimpleNamespace:
    """Return the element functions of one body in `dim` dimensions."""
    rotate, body = rotation.functions(real, dim), inertia.functions(real, dim)
    vec, spin, quat = ti.types.vector(dim, real), body.spin, ti.types.vector(rotate.rotations, real)
    mat = ti.types.matrix(dim, dim, real)
    gyroscopic = gyroscopic and dim == 3

    @ti.func
    def torque(w: vec, J: vec) -> vec:
        """Return w x (J w)."""
        return -body.differences(J) * vec(w[1] * w[2], w[2] * w[0], w[0] * w[1])

    @ti.func
    def newton(w: vec, J: vec, h: real) -> mat:
        N = h / 2 * body.gyration(w, J)
        for j in ti.static(range(3)):
            N[j, j] = J[j]
        return N

    @ti.func
    def gyrate(w: spin, q: quat, J: spin, h: real) -> spin:
        """Return the change of a spin due to the gyroscopic torque."""
        change = spin(0.0)
        if ti.static(gyroscopic):
            R = rotate.matrix(q)
            w_b = body.to_body(R, w)
            change = -h * body.to_world(R, body.inverse_transposed(newton(w_b, J, h)).transpose() @ torque(w_b, J))
        return change

    @ti.func
    def adj_gyrate(w: spin, q: quat, J: spin, h: real, g: spin):
        """Return the adjoints of w, theta and J."""
        adj_w, adj_theta, adj_J = spin(0.0), spin(0.0), spin(0.0)
        if ti.static(gyroscopic):
            R = rotate.matrix(q)
            w_b = body.to_body(R, w)
            inverse_T = body.inverse_transposed(newton(w_b, J, h))
            y = inverse_T.transpose() @ torque(w_b, J)
            lam = inverse_T @ body.to_body(R, -h * g)
            adj_w -= body.to_world(R, body.mix(w_b - h / 2 * y, body.differences(J) * lam))
            adj_J += body.differences(lam * body.mix(w_b, (w_b - h * y) / 2)) - lam * y
            adj_theta += body.small_rotation(body.to_world(R, -h * y), g) - body.small_rotation(w, adj_w)
        return adj_w, adj_theta, adj_J

    @ti.func
    def jvp_gyrate(w: spin, q: quat, J: spin, h: real, dw: spin, dtheta: spin, dJ: spin) -> spin:
        dchange = spin(0.0)
        if ti.static(gyroscopic):
            R = rotate.matrix(q)
            w_b, dw_b = body.to_body(R, w), body.jvp_to_body(R, w, dtheta, dw)
            inverse = body.inverse_transposed(newton(w_b, J, h)).transpose()
            y = inverse @ torque(w_b, J)
            change_of_w = body.differences(J) * body.mix(dw_b, w_b - h / 2 * y)
            change_of_J = body.differences(dJ) * body.mix(w_b, (w_b - h * y) / 2)
            dy = -inverse @ (change_of_w + change_of_J + dJ * y)
            dchange = -h * (dtheta.cross(R @ y) + R @ dy)
        return dchange

    @ti.func
    def kick(v: vec, w: spin, q: quat, f: vec, tau: spin, m: real, J: spin, a: vec, h: real):
        return v + h * (a + f / m), w + h * body.apply(rotate.matrix(q), 1 / J, tau) + gyrate(w, q, J, h)

    @ti.func
    def adj_kick(w: spin, q: quat, f: vec, tau: spin, m: real, J: spin, h: real, g_v: vec, g: spin):
        """Return the adjoints of w, theta, f, tau, m and J; those of v and a are g_v and h g_v."""
        adj_f = (h / m) * g_v
        adj_inverse, adj_tau, adj_theta = body.adj(rotate.matrix(q), 1 / J, tau, h * g)
        gyro_w, gyro_theta, gyro_J = adj_gyrate(w, q, J, h, g)
        return g + gyro_w, adj_theta + gyro_theta, adj_f, adj_tau, -f.dot(adj_f) / m, gyro_J - adj_inverse / (J * J)

    @ti.func
    def jvp_push(f: vec, m: real, h: real, dv: vec, df: vec, dm: real, da: vec) -> vec:
        """Return the tangent of v*."""
        return dv + h * (da + df / m - dm / (m * m) * f)

    @ti.func
    def jvp_spin(w: spin, q: quat, tau: spin, J: spin, h: real, dw: spin, dtheta: spin, dtau: spin, dJ: spin) -> spin:
        """Return the tangent of w*."""
        dspin = body.jvp(rotate.matrix(q), 1 / J, tau, dtheta, -dJ / (J * J), dtau)
        return dw + h * dspin + jvp_gyrate(w, q, J, h, dw, dtheta, dJ)

    return SimpleNamespace(
        kick=kick, adj=adj_kick, jvp_push=jvp_push, jvp_spin=jvp_spin,
        gyrate=gyrate, adj_gyrate=adj_gyrate, jvp_gyrate=jvp_gyrate,
    )  # fmt: skip


@functools.cache
@no_type_check
def loops(real: Any, dim: int, gyroscopic: bool) -> SimpleNamespace:
    """Return the loops over all bodies; for the arguments see rows.py. Bodies that are not `free` have h = 0."""
    at, f = rows.functions(real, dim), functions(real, dim, gyroscopic)

    @ti.func
    def kick(system: ti.template(), h, motion: ti.template(), change: ti.template(), params: ti.template()):
        for i in range(system.n):
            v_new, w_new = f.kick(
                at.vec_of(motion.v, i), at.spin_of(motion.w, i), at.rotation_of(motion.q, i),
                at.linear(change.wrench, i), at.angular(change.wrench, i), params.mass[i],
                at.spin_of(params.inertia, i), at.vec_at(params.gravity, 0), system.free[i] * h,
            )  # fmt: skip
            start = i * (dim + at.spins)
            at.put_vec(change.twist, start, v_new)
            at.put_spin(change.twist, start + dim, w_new)

    @ti.func
    def adj_kick(
        system: ti.template(),
        h,
        motion: ti.template(),
        change: ti.template(),
        params: ti.template(),
        adj_change: ti.template(),
        adj_motion: ti.template(),
        adj_params: ti.template(),
    ):
        for i in range(system.n):
            g_v = at.linear(adj_change.twist, i)
            g_w, g_theta, g_f, g_tau, g_m, g_J = f.adj(
                at.spin_of(motion.w, i), at.rotation_of(motion.q, i), at.linear(change.wrench, i),
                at.angular(change.wrench, i), params.mass[i], at.spin_of(params.inertia, i), system.free[i] * h,
                g_v, at.angular(adj_change.twist, i),
            )  # fmt: skip
            at.add_vec_of(adj_motion.v, i, g_v)
            at.add_spin_of(adj_motion.w, i, g_w)
            at.add_spin_of(adj_motion.theta, i, g_theta)
            at.add_twist(adj_change.wrench, i, g_f, g_tau)
            adj_params.mass[i] = adj_params.mass[i] + g_m
            at.add_spin_of(adj_params.inertia, i, g_J)
            at.add_vec(adj_params.gravity, 0, system.free[i] * h * g_v)

    @ti.func
    def jvp_kick(
        system: ti.template(), h, motion: ti.template(), change: ti.template(), params: ti.template(),
        dmotion: ti.template(), dchange: ti.template(), dparams: ti.template(),
    ):  # fmt: skip
        for i in range(system.n):
            h_i, m, J = system.free[i] * h, params.mass[i], at.spin_of(params.inertia, i)
            dv = f.jvp_push(
                at.linear(change.wrench, i), m, h_i, at.vec_of(dmotion.v, i), at.linear(dchange.wrench, i),
                dparams.mass[i], at.vec_at(dparams.gravity, 0),
            )  # fmt: skip
            dw = f.jvp_spin(
                at.spin_of(motion.w, i), at.rotation_of(motion.q, i), at.angular(change.wrench, i), J, h_i,
                at.spin_of(dmotion.w, i), at.turn_of(motion.q, dmotion.q, i), at.angular(dchange.wrench, i),
                at.spin_of(dparams.inertia, i),
            )  # fmt: skip
            start = i * (dim + at.spins)
            at.put_vec(dchange.twist, start, dv)
            at.put_spin(dchange.twist, start + dim, dw)

    return SimpleNamespace(kick=kick, adj=adj_kick, jvp=jvp_kick)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, gyroscopic: bool) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, add_turns, types = loops(real, dim, gyroscopic), orientation_adjoint(real, dim), arrays.types(real)
    bodies_type = types.bodies
    motions, turned = types.part(arrays.Motion, "v w q"), types.part(arrays.Motion, "v w q theta")
    saved = types.part(arrays.Motion, "w q")
    forces, twists = types.part(arrays.Change, "wrench"), types.part(arrays.Change, "wrench twist")
    masses, loads = types.part(arrays.Params, "mass inertia"), types.part(arrays.Params, "mass inertia gravity")

    @kernel
    def forward(system: bodies_type, h: real, motion: motions, change: twists, params: loads):
        for _ in range(1):
            f.kick(system, h, motion, change, params)

    @kernel
    def adjoint(
        system: bodies_type, h: real, motion: saved, change: forces, params: masses,
        adj_change: twists, adj_motion: turned, adj_params: loads,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(system, h, motion, change, params, adj_change, adj_motion, adj_params)
            add_turns(motion.q, system.n, adj_motion.theta, adj_motion.q)

    @kernel
    def tangent(
        system: bodies_type, h: real, motion: saved, change: forces, params: masses,
        dmotion: motions, dchange: twists, dparams: loads,
    ):  # fmt: skip
        for _ in range(1):
            f.jvp(system, h, motion, change, params, dmotion, dchange, dparams)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Kick(Function):
    """Twist [n, D] after forces have acted for `h` [s]. Saved: all inputs but the velocity.

    Inputs: velocity [n, dim], angular_velocity [n, S], orientation [n, R], wrench [n, D], mass, inertia, gravity.
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, h: float, velocity: Tensor, *inputs: Tensor) -> np.ndarray[Any, Any]:
        ctx.model, ctx.h = model, h
        ctx.save_for_backward(*inputs)
        twist = np.empty((model.bodies, model.dim + model.spins), velocity.dtype)
        w, q, wrench, mass, inertia, gravity = inputs
        motion, change = arrays.Motion(v=velocity, w=w, q=q), arrays.Change(wrench, twist)
        params = arrays.Params(mass, inertia, gravity)
        _kernels(model).forward(_system(model), h, flat(motion), flat(change), flat(params))
        return twist

    @staticmethod
    def backward(ctx: Context, adj_twist: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        w, q, wrench, mass, inertia, _ = ctx.saved_tensors
        adj_v = np.zeros((model.bodies, model.dim), adj_twist.dtype)
        adj_w, adj_q, adj_wrench, *adj_params = zeros_like(*ctx.saved_tensors)
        adj_theta = np.zeros(model.bodies * model.spins, adj_twist.dtype)
        _kernels(model).adjoint(
            _system(model),
            ctx.h,
            flat(arrays.Motion(w=w, q=q)),
            flat(arrays.Change(wrench)),
            flat(arrays.Params(mass, inertia)),
            flat(arrays.Change(adj_wrench, adj_twist)),
            flat(arrays.Motion(v=adj_v, w=adj_w, q=adj_q, theta=adj_theta)),
            flat(arrays.Params(*adj_params)),
        )
        return None, None, adj_v, adj_w, adj_q, adj_wrench, *adj_params

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, *tangents: Any) -> np.ndarray[Any, Any]:
        model: RigidBodies = ctx.model
        w, q, wrench, mass, inertia, _gravity = ctx.saved_tensors
        dv, dw, dq, dwrench, *dparams = tangents
        dtwist = np.empty((model.bodies, model.dim + model.spins), dv.dtype)
        _kernels(model).tangent(
            _system(model),
            ctx.h,
            flat(arrays.Motion(w=w, q=q)),
            flat(arrays.Change(wrench)),
            flat(arrays.Params(mass, inertia)),
            flat(arrays.Motion(v=dv, w=dw, q=dq)),
            flat(arrays.Change(dwrench, dtwist)),
            flat(arrays.Params(*dparams)),
        )
        return dtwist


def _system(model: RigidBodies) -> arrays.System:
    return arrays.System(free=model.free, n=model.bodies)


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.integrator == EULER)
