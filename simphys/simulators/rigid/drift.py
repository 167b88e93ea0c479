"""Drift: bodies follow their velocities for a time h, corrected for impulses within that time:

    x' = x + h v - s                                                        [m]
    q', w' = rotate(q, w, turn)

An impulse that changed v by dv at a time t after the forces was applied too early by t. Hence s = sum t dv and
turn = sum t dw over all impulses of the step (see phases.py). rotate is the free rotation, with its adjoint and tangent
(see variational.py). Adjoint and tangent of the rest:

    adj_x = adj_x'     adj_v = adj_v' + h adj_x'     adj_s = -adj_x'     dx' = dx + h dv - ds     dv' = dv

A step is a drift by h/2, a kick by h and a drift by h/2, as in Verlet's method: of second order, symplectic (Hairer,
Lubich and Wanner 2003).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import arrays, rows, variational
from .arrays import flat
from .model import RigidBodies
from .nested import zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies; for the arguments see rows.py."""
    at, f = rows.functions(real, dim), variational.functions(real, dim)

    @ti.func
    def drift(
        n,
        h,
        motion: ti.template(),
        twist: ti.template(),
        shift: ti.template(),
        params: ti.template(),
        new: ti.template(),
    ):
        for i in range(n):
            v = at.linear(twist, i)
            q_i, w_i = f.rotate(
                at.rotation_of(motion.q, i), at.angular(twist, i), at.spin_of(params.inertia, i), h,
                at.angular(shift, i),
            )  # fmt: skip
            at.put_vec(new.x, i * dim, at.vec_of(motion.x, i) + h * v - at.linear(shift, i))
            at.put_vec(new.v, i * dim, v)
            at.put_spin(new.w, i * at.spins, w_i)
            for c in ti.static(range(at.rotations)):
                new.q[i * at.rotations + c] = q_i[c]

    @ti.func
    def adj_drift(
        n,
        h,
        motion: ti.template(),
        twist: ti.template(),
        shift: ti.template(),
        params: ti.template(),
        adj_new: ti.template(),
        adj_motion: ti.template(),
        adj_twist: ti.template(),
        adj_shift: ti.template(),
        adj_params: ti.template(),
    ):
        """Add to the adjoints; adj_q [n, R], like adj_new.q, is by orientation components, not by a small rotation."""
        for i in range(n):
            g_x = at.vec_of(adj_new.x, i)
            g_q, g_w, g_J, g_turn = f.adj(
                at.rotation_of(motion.q, i), at.angular(twist, i), at.spin_of(params.inertia, i), h,
                at.angular(shift, i), at.rotation_of(adj_new.q, i),
                at.spin_of(adj_new.w, i),
            )  # fmt: skip
            at.add_vec_of(adj_motion.x, i, g_x)
            at.add_twist(adj_twist, i, at.vec_of(adj_new.v, i) + h * g_x, g_w)
            at.add_twist(adj_shift, i, -g_x, g_turn)
            at.add_spin_of(adj_params.inertia, i, g_J)
            for c in ti.static(range(at.rotations)):
                k = i * at.rotations + c
                adj_motion.q[k] = adj_motion.q[k] + g_q[c]

    @ti.func
    def jvp_drift(
        n,
        h,
        motion: ti.template(),
        twist: ti.template(),
        shift: ti.template(),
        params: ti.template(),
        dmotion: ti.template(),
        dtwist: ti.template(),
        dshift: ti.template(),
        dparams: ti.template(),
        dnew: ti.template(),
    ):
        for i in range(n):
            dv = at.linear(dtwist, i)
            dq, dw = f.jvp(
                at.rotation_of(motion.q, i), at.angular(twist, i), at.spin_of(params.inertia, i), h,
                at.angular(shift, i), at.drotation_of(dmotion.q, i), at.angular(dtwist, i),
                at.spin_of(dparams.inertia, i), at.angular(dshift, i),
            )  # fmt: skip
            at.put_vec(dnew.x, i * dim, at.vec_of(dmotion.x, i) + h * dv - at.linear(dshift, i))
            at.put_vec(dnew.v, i * dim, dv)
            at.put_spin(dnew.w, i * at.spins, dw)
            at.put_rotation(dnew.q, i * at.rotations, dq)

    return SimpleNamespace(drift=drift, adj=adj_drift, jvp=jvp_drift)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, types = loops(real, dim), arrays.types(real)
    pose_type, motion_type = types.pose, types.motion
    reals, rotation_only, bodies = types.reals, types.part(arrays.Motion, "q"), types.part(arrays.Params, "inertia")

    @kernel
    def forward(
        n: ti.i32, h: real, pose: pose_type, twist: reals, shift: reals, params: bodies, new: motion_type,
    ):  # fmt: skip
        for _ in range(1):
            f.drift(n, h, pose, twist, shift, params, new)

    @kernel
    def adjoint(
        n: ti.i32, h: real, pose: rotation_only, twist: reals, shift: reals, params: bodies, adj_new: motion_type,
        adj_pose: pose_type, adj_twist: reals, adj_shift: reals, adj_params: bodies,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(n, h, pose, twist, shift, params, adj_new, adj_pose, adj_twist, adj_shift, adj_params)

    @kernel
    def tangent(
        n: ti.i32, h: real, pose: rotation_only, twist: reals, shift: reals, params: bodies, dpose: pose_type,
        dtwist: reals, dshift: reals, dparams: bodies, dnew: motion_type,
    ):  # fmt: skip
        for _ in range(1):
            f.jvp(n, h, pose, twist, shift, params, dpose, dtwist, dshift, dparams, dnew)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Drift(Function):
    """Position [n, dim], orientation [n, R], velocity [n, dim] and angular velocity [n, S] after `h` [s].

    Inputs: position, orientation, twist [n, D], shift [n, D], inertia [n, S]. Saved: all but the position.
    """

    @staticmethod
    def forward(
        ctx: Context, model: RigidBodies, h: float, position: Tensor, orientation: Tensor, *inputs: Tensor
    ) -> tuple[np.ndarray[Any, Any], ...]:
        ctx.model, ctx.h = model, h
        ctx.save_for_backward(orientation, *inputs)
        new = [np.empty(shape, position.dtype) for shape in model.state_shapes().values()]
        twist, shift, inertia = flatten(*inputs)
        pose = flat(arrays.Motion(position, orientation))
        params = arrays.Params(inertia=inertia)
        _kernels(model).forward(model.bodies, h, pose, twist, shift, params, flat(arrays.Motion(*new)))
        return tuple(new)

    @staticmethod
    def backward(ctx: Context, *adj_new: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        q, twist, shift, inertia = flatten(*ctx.saved_tensors)
        adjoints = [np.zeros((model.bodies, model.dim), adj_new[0].dtype), *zeros_like(*ctx.saved_tensors)]
        adj_x, adj_q, adj_twist, adj_shift, adj_inertia = flatten(*adjoints)
        params, adj_params = arrays.Params(inertia=inertia), arrays.Params(inertia=adj_inertia)
        state, adj_state = arrays.Motion(q=q), arrays.Motion(adj_x, adj_q)
        new = flat(arrays.Motion(*adj_new))
        _kernels(model).adjoint(
            model.bodies, ctx.h, state, twist, shift, params, new, adj_state, adj_twist, adj_shift, adj_params
        )
        return None, None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, *tangents: Any) -> tuple[np.ndarray[Any, Any], ...]:
        model: RigidBodies = ctx.model
        q, twist, shift, inertia = flatten(*ctx.saved_tensors)
        dx, dq, dtwist, dshift, dinertia = flatten(*tangents)
        new = [np.empty(shape, dx.dtype) for shape in model.state_shapes().values()]
        params, dparams = arrays.Params(inertia=inertia), arrays.Params(inertia=dinertia)
        state, dstate, dnew = arrays.Motion(q=q), arrays.Motion(dx, dq), flat(arrays.Motion(*new))
        _kernels(model).tangent(
            model.bodies, ctx.h, state, twist, shift, params, dstate, dtwist, dshift, dparams, dnew
        )  # fmt: skip
        return tuple(new)


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
