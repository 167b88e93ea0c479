"""Motors and damping: forces along the free motions of joints, with opposite forces on the other body.

A joint's free row (l, m_a, m_b) (joint_constraints.py) has the rate u = l.(v_a - v_b) + m_a.w_a - m_b.w_b. Body a
rotates or slides at this rate relative to b, about or along the joint's axis; in the plane counter-clockwise. Motor and
damping give

    s = k action - d u                                                      [N m] or [N]
    force l s and torque m_a s on a;   -l s and -m_b s on b

k strength of the motor, d damping. Adjoint, for the adjoints (g_a, h_a), (g_b, h_b) of force and torque on a and b:

    adj_s = l.(g_a - g_b) + m_a.h_a - m_b.h_b        adj_u = -d adj_s
    adj_k = action adj_s      adj_action = k adj_s      adj_d = -u adj_s
    adj_l = s (g_a - g_b) + adj_u (v_a - v_b)        adj_v_a = -adj_v_b = adj_u l
    adj_ma = s h_a + adj_u w_a    adj_mb = -s h_b - adj_u w_b    adj_w_a = adj_u m_a    adj_w_b = -adj_u m_b

then the adjoint of the row. Source: virtual power, s u is the power given to the bodies; the adjoint is the transpose.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import joint_constraints, joint_tables, rows
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over the free rows of a table (joint_tables.py); see rows.py. Forces are added to `wrench`."""
    at, f = rows.functions(real, dim), joint_constraints.functions(real, dim)

    @ti.func
    def joint_force(
        links: ti.template(), parts: ti.template(), count,
        x: ti.template(), x0, q: ti.template(), q0, v: ti.template(), v0, w: ti.template(), w0,
        action: ti.template(), action0, strength: ti.template(), strength0, damping: ti.template(), damping0,
        wrench: ti.template(), wrench0,
    ):  # fmt: skip
        for k in range(count):
            i, j, motor = links[5 * k], links[5 * k + 1], links[5 * k + 4]
            a = f.pose(at.vec_of(x, x0, i), at.rotation_of(q, q0, i))
            b = f.pose(at.vec_of(x, x0, j), at.rotation_of(q, q0, j))
            direction, m_a, m_b, _ = f.row(links[5 * k + 2], f.read(parts, k), a, b)
            u = direction.dot(at.vec_of(v, v0, i) - at.vec_of(v, v0, j))
            u += m_a.dot(at.spin_of(w, w0, i)) - m_b.dot(at.spin_of(w, w0, j))
            s = -damping[damping0 + links[5 * k + 3]] * u
            if motor >= 0:
                s += strength[strength0 + motor] * action[action0 + motor]
            at.add_twist(wrench, wrench0, i, s * direction, s * m_a)
            at.add_twist(wrench, wrench0, j, -s * direction, -s * m_b)

    @ti.func
    def adj_joint_force(
        links: ti.template(), parts: ti.template(), count,
        x: ti.template(), x0, q: ti.template(), q0, v: ti.template(), v0, w: ti.template(), w0,
        action: ti.template(), action0, strength: ti.template(), strength0, damping: ti.template(), damping0,
        adj_wrench: ti.template(), adj_wrench0,
        adj_x: ti.template(), adj_x0, adj_theta: ti.template(), adj_theta0,
        adj_v: ti.template(), adj_v0, adj_w: ti.template(), adj_w0,
        adj_action: ti.template(), adj_action0, adj_strength: ti.template(), adj_strength0,
        adj_damping: ti.template(), adj_damping0,
    ):  # fmt: skip
        for k in range(count):
            i, j, joint, motor = links[5 * k], links[5 * k + 1], links[5 * k + 3], links[5 * k + 4]
            a = f.pose(at.vec_of(x, x0, i), at.rotation_of(q, q0, i))
            b = f.pose(at.vec_of(x, x0, j), at.rotation_of(q, q0, j))
            direction, m_a, m_b, _ = f.row(links[5 * k + 2], f.read(parts, k), a, b)
            v_ab, w_a, w_b = at.vec_of(v, v0, i) - at.vec_of(v, v0, j), at.spin_of(w, w0, i), at.spin_of(w, w0, j)
            u = direction.dot(v_ab) + m_a.dot(w_a) - m_b.dot(w_b)
            s = -damping[damping0 + joint] * u
            if motor >= 0:
                s += strength[strength0 + motor] * action[action0 + motor]

            g = at.linear(adj_wrench, adj_wrench0, i) - at.linear(adj_wrench, adj_wrench0, j)
            h_a, h_b = at.angular(adj_wrench, adj_wrench0, i), at.angular(adj_wrench, adj_wrench0, j)
            adj_s = direction.dot(g) + m_a.dot(h_a) - m_b.dot(h_b)
            adj_u = -damping[damping0 + joint] * adj_s
            g_x, g_a, g_b = f.adj(
                links[5 * k + 2], f.read(parts, k), a, b,
                s * g + adj_u * v_ab, s * h_a + adj_u * w_a, -s * h_b - adj_u * w_b, 0.0,
            )  # fmt: skip
            if motor >= 0:
                adj_action[adj_action0 + motor] = adj_action[adj_action0 + motor] + strength[strength0 + motor] * adj_s
                adj_strength[adj_strength0 + motor] = (
                    adj_strength[adj_strength0 + motor] + action[action0 + motor] * adj_s
                )
            adj_damping[adj_damping0 + joint] = adj_damping[adj_damping0 + joint] - u * adj_s
            at.add_vec_of(adj_x, adj_x0, i, g_x)
            at.add_vec_of(adj_x, adj_x0, j, -g_x)
            at.add_spin_of(adj_theta, adj_theta0, i, g_a)
            at.add_spin_of(adj_theta, adj_theta0, j, g_b)
            at.add_vec_of(adj_v, adj_v0, i, adj_u * direction)
            at.add_vec_of(adj_v, adj_v0, j, -adj_u * direction)
            at.add_spin_of(adj_w, adj_w0, i, adj_u * m_a)
            at.add_spin_of(adj_w, adj_w0, j, -adj_u * m_b)

    return SimpleNamespace(joint_force=joint_force, adj=adj_joint_force)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim), orientation_adjoint(real, dim)

    @kernel
    def forward(
        links: ints, parts: reals, count: ti.i32, x: reals, q: reals, v: reals, w: reals,
        action: reals, strength: reals, damping: reals, wrench: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.joint_force(
                links, parts, count, x, 0, q, 0, v, 0, w, 0, action, 0, strength, 0, damping, 0, wrench, 0
            )  # fmt: skip

    @kernel
    def adjoint(
        links: ints, parts: reals, count: ti.i32, n: ti.i32, x: reals, q: reals, v: reals, w: reals,
        action: reals, strength: reals, damping: reals, adj_wrench: reals, adj_theta: reals,
        adj_x: reals, adj_q: reals, adj_v: reals, adj_w: reals,
        adj_action: reals, adj_strength: reals, adj_damping: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                links, parts, count, x, 0, q, 0, v, 0, w, 0, action, 0, strength, 0, damping, 0, adj_wrench, 0,
                adj_x, 0, adj_theta, 0, adj_v, 0, adj_w, 0, adj_action, 0, adj_strength, 0, adj_damping, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class JointForce(Function):
    """Wrench [n, D] of all motors and of the damping of all joints. Saved: the inputs.

    Inputs: the fields of the state, action [A], motor_strength [A], joint_damping [J].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *inputs: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(*inputs)
        wrench = np.zeros((model.bodies, model.dim + model.spins), inputs[0].dtype)
        _kernels(model).forward(*_table(model), *flatten(*inputs, wrench))
        return wrench

    @staticmethod
    def backward(ctx: Context, adj_wrench: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        adj_theta = np.zeros(model.bodies * model.spins, adj_wrench.dtype)
        adjoints = zeros_like(*ctx.saved_tensors)
        _kernels(model).adjoint(
            *_table(model), model.bodies, *flatten(*ctx.saved_tensors, adj_wrench, adj_theta), *flatten(*adjoints)
        )
        return None, *adjoints


def _table(model: RigidBodies) -> tuple[Any, ...]:
    table = joint_tables.tabulate_free_rows(model)
    return table.links, table.parts, table.rows


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
