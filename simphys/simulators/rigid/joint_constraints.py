"""Constraint rows of the joints: directions in which body b is constrained relative to body a (joint_row.py).

    row = (l, m_a, m_b)      target = -(beta/h) error                       [m/s] or [rad/s]

where beta is the fraction of an error that one step corrects. Adjoint: adj_error = -(beta/h) adj_target, and those of
joint_row.py; so is the tangent. Source: Baumgarte 1972, Stabilization of constraints and integrals of motion.
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


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over the rows of a table (joint_tables.py); see rows.py. `gain` is beta/h."""
    at, f = rows.functions(real, dim), joint_row.functions(real, dim)
    width = dim + 2 * at.spins

    @ti.func
    def joint_rows(table: ti.template(), gain, pose: ti.template(), rows: ti.template()):
        for k in range(table.count):
            i, j = table.links[5 * k], table.links[5 * k + 1]
            a = f.pose(at.vec_of(pose.x, i), at.rotation_of(pose.q, i))
            b = f.pose(at.vec_of(pose.x, j), at.rotation_of(pose.q, j))
            direction, m_a, m_b, error = f.row(table.links[5 * k + 2], f.read(table.parts, k), a, b)
            start = k * width
            at.put_vec(rows.row, start, direction)
            at.put_spin(rows.row, start + dim, m_a)
            at.put_spin(rows.row, start + dim + at.spins, m_b)
            rows.target[k] = -gain * error

    @ti.func
    def adj_joint_rows(
        table: ti.template(), gain, pose: ti.template(), adj_rows: ti.template(), adj_pose: ti.template()
    ):
        for k in range(table.count):
            i, j = table.links[5 * k], table.links[5 * k + 1]
            a = f.pose(at.vec_of(pose.x, i), at.rotation_of(pose.q, i))
            b = f.pose(at.vec_of(pose.x, j), at.rotation_of(pose.q, j))
            start = k * width
            g_x, g_a, g_b = f.adj(
                table.links[5 * k + 2], f.read(table.parts, k), a, b,
                at.vec_at(adj_rows.row, start), at.spin_at(adj_rows.row, start + dim),
                at.spin_at(adj_rows.row, start + dim + at.spins), -gain * adj_rows.target[k],
            )  # fmt: skip
            at.add_vec_of(adj_pose.x, i, g_x)
            at.add_vec_of(adj_pose.x, j, -g_x)
            at.add_spin_of(adj_pose.theta, i, g_a)
            at.add_spin_of(adj_pose.theta, j, g_b)

    @ti.func
    def jvp_joint_rows(table: ti.template(), gain, pose: ti.template(), dpose: ti.template(), drows: ti.template()):
        for k in range(table.count):
            i, j = table.links[5 * k], table.links[5 * k + 1]
            a = f.pose(at.vec_of(pose.x, i), at.rotation_of(pose.q, i))
            b = f.pose(at.vec_of(pose.x, j), at.rotation_of(pose.q, j))
            dl, dm_a, dm_b, derror = f.jvp(
                table.links[5 * k + 2], f.read(table.parts, k), a, b, at.vec_of(dpose.x, i) - at.vec_of(dpose.x, j),
                at.turn_of(pose.q, dpose.q, i), at.turn_of(pose.q, dpose.q, j),
            )  # fmt: skip
            start = k * width
            at.put_vec(drows.row, start, dl)
            at.put_spin(drows.row, start + dim, dm_a)
            at.put_spin(drows.row, start + dim + at.spins, dm_b)
            drows.target[k] = -gain * derror

    return SimpleNamespace(joint_rows=joint_rows, adj=adj_joint_rows, jvp=jvp_joint_rows)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, add_turns, types = loops(real, dim), orientation_adjoint(real, dim), arrays.types(real)
    table_type, pose_type, turned_pose_type = types.table, types.pose, types.turned_pose
    lines = types.part(arrays.Rows, "row target")

    @kernel
    def forward(table: table_type, gain: real, pose: pose_type, rows: lines):
        for _ in range(1):
            f.joint_rows(table, gain, pose, rows)

    @kernel
    def adjoint(
        table: table_type, gain: real, pose: pose_type, n: ti.i32, adj_rows: lines, adj_pose: turned_pose_type,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(table, gain, pose, adj_rows, adj_pose)
            add_turns(pose.q, n, adj_pose.theta, adj_pose.q)

    @kernel
    def tangent(table: table_type, gain: real, pose: pose_type, dpose: pose_type, drows: lines):
        for _ in range(1):
            f.jvp(table, gain, pose, dpose, drows)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class JointRows(Function):
    """row [NJ, W] and target [NJ] of all joints, at position [n, dim] and orientation [n, R]. Saved: the inputs."""

    @staticmethod
    def forward(
        ctx: Context, model: RigidBodies, position: Tensor, orientation: Tensor
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        ctx.model = model
        ctx.save_for_backward(position, orientation)
        count, dtype = model.joint_rows, position.dtype
        row, target = np.empty((count, model.dim + 2 * model.spins), dtype), np.empty(count, dtype)
        pose = flat(arrays.Motion(position, orientation))
        _kernels(model).forward(*_arguments(model), pose, flat(arrays.Rows(row, target)))
        return row, target

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor, adj_target: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        adj_theta = np.zeros(model.bodies * model.spins, adj_row.dtype)
        adjoints = zeros_like(*ctx.saved_tensors)
        pose, adj_rows = flat(arrays.Motion(*ctx.saved_tensors)), flat(arrays.Rows(adj_row, adj_target))
        turned = flat(arrays.Motion(*adjoints)._replace(theta=adj_theta))
        _kernels(model).adjoint(*_arguments(model), pose, model.bodies, adj_rows, turned)
        return None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, dposition: Any, dorientation: Any) -> tuple[Any, Any]:
        model: RigidBodies = ctx.model
        count, dtype = model.joint_rows, dposition.dtype
        drow, dtarget = np.empty((count, model.dim + 2 * model.spins), dtype), np.empty(count, dtype)
        pose, dpose = flat(arrays.Motion(*ctx.saved_tensors)), flat(arrays.Motion(dposition, dorientation))
        _kernels(model).tangent(*_arguments(model), pose, dpose, flat(arrays.Rows(drow, dtarget)))
        return drow, dtarget


def _arguments(model: RigidBodies) -> tuple[Any, ...]:
    table = joint_tables.tabulate_constraints(model)
    return arrays.Table(table.links, table.parts, table.rows), model.joint_correction / model.dt


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
