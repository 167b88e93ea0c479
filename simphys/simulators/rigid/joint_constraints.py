"""Constraint rows of the joints: directions in which body b is constrained relative to body a (joint_row.py).

    row = (l, m_a, m_b)      target = -(beta/h) error                       [m/s] or [rad/s]

where beta is the fraction of an error that one step corrects. Adjoint: adj_error = -(beta/h) adj_target, and those of
joint_row.py; so is the tangent. Source: Baumgarte 1972, Stabilization of constraints and integrals of motion.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.substep import Fields, routine

from . import joint_row, rows
from .arrays import SETTING


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over the rows of a table (joint_tables.py); see rows.py."""
    at, f = rows.functions(real, dim), joint_row.functions(real, dim)
    width = dim + 2 * at.spins

    @ti.func
    def joint_rows(model: ti.template(), x: ti.template()):
        table = ti.static(model.constraints)
        for k in range(table.count):
            i, j = table.links[5 * k], table.links[5 * k + 1]
            a = f.pose(at.vec_of(x.position, i), at.rotation_of(x.orientation, i))
            b = f.pose(at.vec_of(x.position, j), at.rotation_of(x.orientation, j))
            direction, m_a, m_b, error = f.row(table.links[5 * k + 2], f.read(table.parts, k), a, b)
            start = k * width
            at.put_vec(x.joint_row, start, direction)
            at.put_spin(x.joint_row, start + dim, m_a)
            at.put_spin(x.joint_row, start + dim + at.spins, m_b)
            x.joint_target[k] = -model.joint_gain * error

    @ti.func
    def adj_joint_rows(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        table = ti.static(model.constraints)
        for k in range(table.count):
            i, j = table.links[5 * k], table.links[5 * k + 1]
            a = f.pose(at.vec_of(x.position, i), at.rotation_of(x.orientation, i))
            b = f.pose(at.vec_of(x.position, j), at.rotation_of(x.orientation, j))
            start = k * width
            g_x, g_a, g_b = f.adj(
                table.links[5 * k + 2], f.read(table.parts, k), a, b,
                at.vec_at(adj_x.joint_row, start), at.spin_at(adj_x.joint_row, start + dim),
                at.spin_at(adj_x.joint_row, start + dim + at.spins), -model.joint_gain * adj_x.joint_target[k],
            )  # fmt: skip
            at.add_vec_of(adj_x.position, i, g_x)
            at.add_vec_of(adj_x.position, j, -g_x)
            at.add_turn_of(adj_x.orientation, x.orientation, i, g_a)
            at.add_turn_of(adj_x.orientation, x.orientation, j, g_b)

    @ti.func
    def jvp_joint_rows(model: ti.template(), x: ti.template(), dx: ti.template()):
        table = ti.static(model.constraints)
        for k in range(table.count):
            i, j = table.links[5 * k], table.links[5 * k + 1]
            a = f.pose(at.vec_of(x.position, i), at.rotation_of(x.orientation, i))
            b = f.pose(at.vec_of(x.position, j), at.rotation_of(x.orientation, j))
            dl, dm_a, dm_b, derror = f.jvp(
                table.links[5 * k + 2], f.read(table.parts, k), a, b,
                at.vec_of(dx.position, i) - at.vec_of(dx.position, j),
                at.turn_of(x.orientation, dx.orientation, i), at.turn_of(x.orientation, dx.orientation, j),
            )  # fmt: skip
            start = k * width
            at.put_vec(dx.joint_row, start, dl)
            at.put_spin(dx.joint_row, start + dim, dm_a)
            at.put_spin(dx.joint_row, start + dim + at.spins, dm_b)
            dx.joint_target[k] = -model.joint_gain * derror

    return SimpleNamespace(forward=joint_rows, adjoint=adj_joint_rows, tangent=jvp_joint_rows)


JointRows = routine(
    "JointRows",
    loops,
    Fields(given=("position", "orientation"), results=("joint_row", "joint_target")),
    SETTING,
    of_model=("constraints", "joint_gain"),
)
"""Rows [NJ, W] and targets [NJ] of all joints."""
