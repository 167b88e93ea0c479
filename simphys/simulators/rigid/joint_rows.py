"""Constraint rows of the joints: directions of velocity that they forbid, and the rate at which errors are corrected.

    row = (l, m_a, m_b)      target = -(beta/h) error                       [m/s] or [rad/s]

for each row of joint_row.py, where beta is the fraction of an error that one step corrects. Adjoint: that of a row,
with adj_error = -(beta/h) adj_target. Source: Baumgarte 1972, Stabilization of constraints and integrals of motion.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import joint_row, joint_table, rows
from .model import RigidBodies
from .nested import turns, zeros_like
from .rows import flat


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over the rows of a table (joint_table.py); see rows.py. `gain` is beta/h."""
    at, f = rows.functions(real, dim), joint_row.functions(real, dim)
    width = dim + 2 * at.spins

    @ti.func
    def joint_rows(
        links: ti.template(), parts: ti.template(), count, gain, x: ti.template(), x0, q: ti.template(), q0,
        row: ti.template(), row0, target: ti.template(), target0,
    ):  # fmt: skip
        for k in range(count):
            i, j = links[5 * k], links[5 * k + 1]
            a = f.pose(at.vec_of(x, x0, i), at.rotation_of(q, q0, i))
            b = f.pose(at.vec_of(x, x0, j), at.rotation_of(q, q0, j))
            along, m_a, m_b, error = f.row(links[5 * k + 2], f.read(parts, k), a, b)
            start = row0 + k * width
            at.put_vec(row, start, along)
            at.put_spin(row, start + dim, m_a)
            at.put_spin(row, start + dim + at.spins, m_b)
            target[target0 + k] = -gain * error

    @ti.func
    def adj_joint_rows(
        links: ti.template(), parts: ti.template(), count, gain, x: ti.template(), x0, q: ti.template(), q0,
        adj_row: ti.template(), adj_row0, adj_target: ti.template(), adj_target0,
        adj_x: ti.template(), adj_x0, adj_theta: ti.template(), adj_theta0,
    ):  # fmt: skip
        for k in range(count):
            i, j = links[5 * k], links[5 * k + 1]
            a = f.pose(at.vec_of(x, x0, i), at.rotation_of(q, q0, i))
            b = f.pose(at.vec_of(x, x0, j), at.rotation_of(q, q0, j))
            start = adj_row0 + k * width
            g_x, g_a, g_b = f.adj(
                links[5 * k + 2], f.read(parts, k), a, b, at.vec_at(adj_row, start), at.spin_at(adj_row, start + dim),
                at.spin_at(adj_row, start + dim + at.spins), -gain * adj_target[adj_target0 + k],
            )  # fmt: skip
            at.add_vec_of(adj_x, adj_x0, i, g_x)
            at.add_vec_of(adj_x, adj_x0, j, -g_x)
            at.add_spin_of(adj_theta, adj_theta0, i, g_a)
            at.add_spin_of(adj_theta, adj_theta0, j, g_b)

    return SimpleNamespace(joint_rows=joint_rows, adj=adj_joint_rows)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim), turns(real, dim)

    @kernel
    def forward(links: ints, parts: reals, count: ti.i32, gain: real, x: reals, q: reals, row: reals, target: reals):
        for _ in range(1):
            f.joint_rows(links, parts, count, gain, x, 0, q, 0, row, 0, target, 0)

    @kernel
    def adjoint(
        links: ints, parts: reals, count: ti.i32, gain: real, x: reals, q: reals, n: ti.i32,
        adj_row: reals, adj_target: reals, adj_theta: reals, adj_x: reals, adj_q: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                links, parts, count, gain, x, 0, q, 0, adj_row, 0, adj_target, 0, adj_x, 0, adj_theta, 0
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


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
        _kernels(model).forward(*_arguments(model), *flat(position, orientation, row, target))
        return row, target

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor, adj_target: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        adj_theta = np.zeros(model.bodies * model.spins, adj_row.dtype)
        adjoints = zeros_like(*ctx.saved_tensors)
        _kernels(model).adjoint(
            *_arguments(model), *flat(*ctx.saved_tensors), model.bodies, *flat(adj_row, adj_target, adj_theta),
            *flat(*adjoints),
        )  # fmt: skip
        return None, *adjoints


def _arguments(model: RigidBodies) -> tuple[Any, ...]:
    table = joint_table.held(model)
    return table.links, table.parts, table.rows, model.joint_correction / model.dt


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
