"""Motors and damping: forces along the free motions of joints, with opposite forces on the other body.

A joint's free row (l, m_a, m_b) (joint_row.py) has the rate u = l.(v_a - v_b) + m_a.w_a - m_b.w_b. Body a
rotates or slides at this rate relative to b, about or along the joint's axis; in the plane counter-clockwise. Motor and
damping give

    s = k action - d u                                                      [N m] or [N]
    force l s and torque m_a s on a;   -l s and -m_b s on b

k strength of the motor, d damping. Adjoint, for the adjoints (g_a, h_a), (g_b, h_b) of force and torque on a and b:

    adj_s = l.(g_a - g_b) + m_a.h_a - m_b.h_b        adj_u = -d adj_s
    adj_k = action adj_s      adj_action = k adj_s      adj_d = -u adj_s
    adj_l = s (g_a - g_b) + adj_u (v_a - v_b)        adj_v_a = -adj_v_b = adj_u l
    adj_ma = s h_a + adj_u w_a    adj_mb = -s h_b - adj_u w_b    adj_w_a = adj_u m_a    adj_w_b = -adj_u m_b

then the adjoint of the row. Tangent, from that of the row:

    du = dl.(v_a - v_b) + l.(dv_a - dv_b) + dm_a.w_a + m_a.dw_a - dm_b.w_b - m_b.dw_b
    ds = action dk + k daction - u dd - d du         of force and torques: s dl + l ds, s dm + m ds

Source: virtual power, s u is the power given to the bodies; the adjoint is the transpose.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import arrays, joint_row, joint_tables, rows
from .arrays import flat
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over the free rows of a table (joint_tables.py); see rows.py. Forces are added to `wrench`."""
    at, f = rows.functions(real, dim), joint_row.functions(real, dim)

    @ti.func
    def joint_force(
        table: ti.template(), motion: ti.template(), action: ti.template(), params: ti.template(), change: ti.template()
    ):
        for k in range(table.count):
            i, j, motor = table.links[5 * k], table.links[5 * k + 1], table.links[5 * k + 4]
            a = f.pose(at.vec_of(motion.x, i), at.rotation_of(motion.q, i))
            b = f.pose(at.vec_of(motion.x, j), at.rotation_of(motion.q, j))
            direction, m_a, m_b, _ = f.row(table.links[5 * k + 2], f.read(table.parts, k), a, b)
            u = direction.dot(at.vec_of(motion.v, i) - at.vec_of(motion.v, j))
            u += m_a.dot(at.spin_of(motion.w, i)) - m_b.dot(at.spin_of(motion.w, j))
            s = -params.joint_damping[table.links[5 * k + 3]] * u
            if motor >= 0:
                s += params.motor_strength[motor] * action[motor]
            at.add_twist(change.wrench, i, s * direction, s * m_a)
            at.add_twist(change.wrench, j, -s * direction, -s * m_b)

    @ti.func
    def adj_joint_force(
        table: ti.template(),
        motion: ti.template(),
        action: ti.template(),
        params: ti.template(),
        adj_change: ti.template(),
        adj_motion: ti.template(),
        adj_action: ti.template(),
        adj_params: ti.template(),
    ):
        for k in range(table.count):
            i, j, joint, motor = (
                table.links[5 * k],
                table.links[5 * k + 1],
                table.links[5 * k + 3],
                table.links[5 * k + 4],
            )
            a = f.pose(at.vec_of(motion.x, i), at.rotation_of(motion.q, i))
            b = f.pose(at.vec_of(motion.x, j), at.rotation_of(motion.q, j))
            direction, m_a, m_b, _ = f.row(table.links[5 * k + 2], f.read(table.parts, k), a, b)
            v_ab, w_a, w_b = (
                at.vec_of(motion.v, i) - at.vec_of(motion.v, j),
                at.spin_of(motion.w, i),
                at.spin_of(motion.w, j),
            )
            u = direction.dot(v_ab) + m_a.dot(w_a) - m_b.dot(w_b)
            s = -params.joint_damping[joint] * u
            if motor >= 0:
                s += params.motor_strength[motor] * action[motor]

            g = at.linear(adj_change.wrench, i) - at.linear(adj_change.wrench, j)
            h_a, h_b = at.angular(adj_change.wrench, i), at.angular(adj_change.wrench, j)
            adj_s = direction.dot(g) + m_a.dot(h_a) - m_b.dot(h_b)
            adj_u = -params.joint_damping[joint] * adj_s
            g_x, g_a, g_b = f.adj(
                table.links[5 * k + 2], f.read(table.parts, k), a, b,
                s * g + adj_u * v_ab, s * h_a + adj_u * w_a, -s * h_b - adj_u * w_b, 0.0,
            )  # fmt: skip
            if motor >= 0:
                adj_action[motor] = adj_action[motor] + params.motor_strength[motor] * adj_s
                adj_params.motor_strength[motor] = adj_params.motor_strength[motor] + action[motor] * adj_s
            adj_params.joint_damping[joint] = adj_params.joint_damping[joint] - u * adj_s
            at.add_vec_of(adj_motion.x, i, g_x)
            at.add_vec_of(adj_motion.x, j, -g_x)
            at.add_spin_of(adj_motion.theta, i, g_a)
            at.add_spin_of(adj_motion.theta, j, g_b)
            at.add_vec_of(adj_motion.v, i, adj_u * direction)
            at.add_vec_of(adj_motion.v, j, -adj_u * direction)
            at.add_spin_of(adj_motion.w, i, adj_u * m_a)
            at.add_spin_of(adj_motion.w, j, -adj_u * m_b)

    @ti.func
    def jvp_joint_force(
        table: ti.template(), motion: ti.template(), action: ti.template(), params: ti.template(),
        dmotion: ti.template(), daction: ti.template(), dparams: ti.template(), dchange: ti.template(),
    ):  # fmt: skip
        for k in range(table.count):
            i, j, kind = table.links[5 * k], table.links[5 * k + 1], table.links[5 * k + 2]
            joint, motor = table.links[5 * k + 3], table.links[5 * k + 4]
            a = f.pose(at.vec_of(motion.x, i), at.rotation_of(motion.q, i))
            b = f.pose(at.vec_of(motion.x, j), at.rotation_of(motion.q, j))
            direction, m_a, m_b, _ = f.row(kind, f.read(table.parts, k), a, b)
            dl, dm_a, dm_b, _ = f.jvp(
                kind, f.read(table.parts, k), a, b, at.vec_of(dmotion.x, i) - at.vec_of(dmotion.x, j),
                at.turn_of(motion.q, dmotion.q, i), at.turn_of(motion.q, dmotion.q, j),
            )  # fmt: skip
            v_ab = at.vec_of(motion.v, i) - at.vec_of(motion.v, j)
            w_a, w_b = at.spin_of(motion.w, i), at.spin_of(motion.w, j)
            u = direction.dot(v_ab) + m_a.dot(w_a) - m_b.dot(w_b)
            du = dl.dot(v_ab) + direction.dot(at.vec_of(dmotion.v, i) - at.vec_of(dmotion.v, j))
            du += dm_a.dot(w_a) + m_a.dot(at.spin_of(dmotion.w, i))
            du -= dm_b.dot(w_b) + m_b.dot(at.spin_of(dmotion.w, j))
            s = -params.joint_damping[joint] * u
            ds = -dparams.joint_damping[joint] * u - params.joint_damping[joint] * du
            if motor >= 0:
                s += params.motor_strength[motor] * action[motor]
                ds += dparams.motor_strength[motor] * action[motor] + params.motor_strength[motor] * daction[motor]
            at.add_twist(dchange.wrench, i, s * dl + ds * direction, s * dm_a + ds * m_a)
            at.add_twist(dchange.wrench, j, -s * dl - ds * direction, -s * dm_b - ds * m_b)

    return SimpleNamespace(joint_force=joint_force, adj=adj_joint_force, jvp=jvp_joint_force)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, add_turns, types = loops(real, dim), orientation_adjoint(real, dim), arrays.types(real)
    table_type, motion_type, turned_motion_type = types.table, types.motion, types.turned_motion
    reals, forces = types.reals, types.part(arrays.Change, "wrench")
    drives = types.part(arrays.Params, "joint_damping motor_strength")

    @kernel
    def forward(table: table_type, motion: motion_type, action: reals, params: drives, change: forces):
        for _ in range(1):
            f.joint_force(table, motion, action, params, change)

    @kernel
    def adjoint(
        table: table_type, n: ti.i32, motion: motion_type, action: reals, params: drives, adj_change: forces,
        adj_motion: turned_motion_type, adj_action: reals, adj_params: drives,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(table, motion, action, params, adj_change, adj_motion, adj_action, adj_params)
            add_turns(motion.q, n, adj_motion.theta, adj_motion.q)

    @kernel
    def tangent(
        table: table_type, motion: motion_type, action: reals, params: drives,
        dmotion: motion_type, daction: reals, dparams: drives, dchange: forces,
    ):  # fmt: skip
        for _ in range(1):
            f.jvp(table, motion, action, params, dmotion, daction, dparams, dchange)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class JointForce(Function):
    """Wrench [n, D] of all motors and of the damping of all joints. Saved: the inputs.

    Inputs: the fields of the state, action [A], motor_strength [A], joint_damping [J].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *inputs: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(*inputs)
        wrench = np.zeros((model.bodies, model.dim + model.spins), inputs[0].dtype)
        _kernels(model).forward(_table(model), *_records(*inputs), flat(arrays.Change(wrench)))
        return wrench

    @staticmethod
    def backward(ctx: Context, adj_wrench: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        adj_theta = np.zeros(model.bodies * model.spins, adj_wrench.dtype)
        adjoints = zeros_like(*ctx.saved_tensors)
        motion, *others = _records(*ctx.saved_tensors)
        adj_motion, *adj_others = _records(*adjoints)
        forces, turned = flat(arrays.Change(adj_wrench)), adj_motion._replace(theta=adj_theta)
        _kernels(model).adjoint(_table(model), model.bodies, motion, *others, forces, turned, *adj_others)
        return None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        model: RigidBodies = ctx.model
        dwrench = np.zeros((model.bodies, model.dim + model.spins), tangents[0].dtype)
        values, dvalues = _records(*ctx.saved_tensors), _records(*tangents)
        _kernels(model).tangent(_table(model), *values, *dvalues, flat(arrays.Change(dwrench)))
        return dwrench


def _records(x: Any, q: Any, v: Any, w: Any, action: Any, strength: Any, damping: Any) -> tuple[Any, ...]:
    """Return motion, action and parameters, of the inputs or of their adjoints."""
    params = arrays.Params(joint_damping=damping, motor_strength=strength)
    return flat(arrays.Motion(x, q, v, w)), *flatten(action), flat(params)


def _table(model: RigidBodies) -> arrays.Table:
    table = joint_tables.tabulate_free_rows(model)
    return arrays.Table(table.links, table.parts, table.rows)


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
