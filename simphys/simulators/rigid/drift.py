"""Drift: bodies follow their new velocities for a time h, corrected for impulses within that time:

    x' = x + h v - s                                                        [m]
    q' = advance(q, h w - turn)

An impulse that changed v by dv at a time t after the forces was applied too early by t. Hence s = sum t dv and
turn = sum t dw over all impulses of the step (see phases.py). advance rotates exactly by a rotation vector in the world
frame, so that quaternions keep unit length (see numerics/rotation.py). Adjoint:

    adj_x = adj_x'     adj_v = h adj_x'     adj_s = -adj_x'     adj_w = h p     adj_turn = -p

with adj_q and p, the adjoint of the rotation vector, from the adjoint of advance. Source: symplectic Euler, Hairer,
Lubich and Wanner 2003; on the group of rotations, Hairer, Lubich and Wanner 2006, Geometric Numerical Integration,
IV.8.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import rows, variational
from .checks import VARIATIONAL
from .model import RigidBodies
from .nested import zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return `rotate(q, w, J, h, turn)`, which gives q' and w' = w, and its adjoint, in `dim` dimensions."""
    group = rotation.functions(real, dim)
    spin, quat = ti.types.vector(group.spins, real), ti.types.vector(group.rotations, real)

    @ti.func
    def rotate(q: quat, w: spin, J: spin, h: real, turn: spin):
        return group.advance(q, h * w - turn), w

    @ti.func
    def adj_rotate(q: quat, w: spin, J: spin, h: real, turn: spin, g_q: quat, g_w: spin):
        """Adjoints of q, w, J and turn."""
        adj_q, p = group.adj_advance(q, h * w - turn, g_q)
        return adj_q, g_w + h * p, spin(0.0), -p

    return SimpleNamespace(rotate=rotate, adj=adj_rotate)


@functools.cache
@no_type_check
def loops(real: Any, dim: int, is_variational: bool) -> SimpleNamespace:
    """Return the loops over all bodies; for the arguments see rows.py."""
    at = rows.functions(real, dim)
    f = variational.functions(real, dim) if is_variational else functions(real, dim)

    @ti.func
    def drift(
        n, h,
        x: ti.template(), x0, q: ti.template(), q0, twist: ti.template(), twist0, shift: ti.template(), shift0,
        inertia: ti.template(), inertia0,
        x_new: ti.template(), x_new0, q_new: ti.template(), q_new0,
        v_new: ti.template(), v_new0, w_new: ti.template(), w_new0,
    ):  # fmt: skip
        for i in range(n):
            v = at.linear(twist, twist0, i)
            q_i, w_i = f.rotate(
                at.rotation_of(q, q0, i), at.angular(twist, twist0, i), at.spin_of(inertia, inertia0, i), h,
                at.angular(shift, shift0, i),
            )  # fmt: skip
            at.put_vec(x_new, x_new0 + i * dim, at.vec_of(x, x0, i) + h * v - at.linear(shift, shift0, i))
            at.put_vec(v_new, v_new0 + i * dim, v)
            at.put_spin(w_new, w_new0 + i * at.spins, w_i)
            for c in ti.static(range(at.rotations)):
                q_new[q_new0 + i * at.rotations + c] = q_i[c]

    @ti.func
    def adj_drift(
        n, h,
        q: ti.template(), q0, twist: ti.template(), twist0, shift: ti.template(), shift0,
        inertia: ti.template(), inertia0,
        adj_x_new: ti.template(), adj_x_new0, adj_q_new: ti.template(), adj_q_new0,
        adj_v_new: ti.template(), adj_v_new0, adj_w_new: ti.template(), adj_w_new0,
        adj_x: ti.template(), adj_x0, adj_q: ti.template(), adj_q0, adj_twist: ti.template(), adj_twist0,
        adj_shift: ti.template(), adj_shift0, adj_inertia: ti.template(), adj_inertia0,
    ):  # fmt: skip
        """Add to the adjoints; adj_q [n, R], like adj_q_new, is by orientation components, not by a small rotation."""
        for i in range(n):
            g_x = at.vec_of(adj_x_new, adj_x_new0, i)
            g_q, g_w, g_J, g_turn = f.adj(
                at.rotation_of(q, q0, i), at.angular(twist, twist0, i), at.spin_of(inertia, inertia0, i), h,
                at.angular(shift, shift0, i), at.rotation_of(adj_q_new, adj_q_new0, i),
                at.spin_of(adj_w_new, adj_w_new0, i),
            )  # fmt: skip
            at.add_vec_of(adj_x, adj_x0, i, g_x)
            at.add_twist(adj_twist, adj_twist0, i, at.vec_of(adj_v_new, adj_v_new0, i) + h * g_x, g_w)
            at.add_twist(adj_shift, adj_shift0, i, -g_x, g_turn)
            at.add_spin_of(adj_inertia, adj_inertia0, i, g_J)
            for c in ti.static(range(at.rotations)):
                k = adj_q0 + i * at.rotations + c
                adj_q[k] = adj_q[k] + g_q[c]

    return SimpleNamespace(drift=drift, adj=adj_drift)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, is_variational: bool) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, f = ti.types.ndarray(dtype=real, ndim=1), loops(real, dim, is_variational)

    @kernel
    def forward(
        n: ti.i32, h: real, x: reals, q: reals, twist: reals, shift: reals, inertia: reals,
        x_new: reals, q_new: reals, v_new: reals, w_new: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.drift(
                n, h, x, 0, q, 0, twist, 0, shift, 0, inertia, 0, x_new, 0, q_new, 0, v_new, 0, w_new, 0
            )  # fmt: skip

    @kernel
    def adjoint(
        n: ti.i32, h: real, q: reals, twist: reals, shift: reals, inertia: reals,
        adj_x_new: reals, adj_q_new: reals, adj_v_new: reals, adj_w_new: reals,
        adj_x: reals, adj_q: reals, adj_twist: reals, adj_shift: reals, adj_inertia: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                n, h, q, 0, twist, 0, shift, 0, inertia, 0,
                adj_x_new, 0, adj_q_new, 0, adj_v_new, 0, adj_w_new, 0,
                adj_x, 0, adj_q, 0, adj_twist, 0, adj_shift, 0, adj_inertia, 0,
            )  # fmt: skip

    return SimpleNamespace(forward=forward, adjoint=adjoint)


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
        _kernels(model).forward(model.bodies, h, *flatten(position, orientation, *inputs), *flatten(*new))
        return tuple(new)

    @staticmethod
    def backward(ctx: Context, *adj_new: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        adjoints = [np.zeros((model.bodies, model.dim), adj_new[0].dtype), *zeros_like(*ctx.saved_tensors)]
        _kernels(model).adjoint(model.bodies, ctx.h, *flatten(*ctx.saved_tensors, *adj_new), *flatten(*adjoints))
        return None, None, *adjoints


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.integrator == VARIATIONAL)
