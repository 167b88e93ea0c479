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

from simphys.autograd.kernels.runtime import ti
from simphys.substep import Fields, routine

from . import joint_row, rows
from .arrays import SETTING


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over the free rows of a table (joint_tables.py); see rows.py. Forces are added to `wrench`."""
    at, f = rows.functions(real, dim), joint_row.functions(real, dim)

    @ti.func
    def joint_force(model: ti.template(), x: ti.template()):
        at.clear(x.wrench, model.bodies)
        table = ti.static(model.free_rows)
        for k in range(table.count):
            i, j, motor = table.links[5 * k], table.links[5 * k + 1], table.links[5 * k + 4]
            a = f.pose(at.vec_of(x.position, i), at.rotation_of(x.orientation, i))
            b = f.pose(at.vec_of(x.position, j), at.rotation_of(x.orientation, j))
            direction, m_a, m_b, _ = f.row(table.links[5 * k + 2], f.read(table.parts, k), a, b)
            u = direction.dot(at.vec_of(x.velocity, i) - at.vec_of(x.velocity, j))
            u += m_a.dot(at.spin_of(x.angular_velocity, i)) - m_b.dot(at.spin_of(x.angular_velocity, j))
            s = -x.joint_damping[table.links[5 * k + 3]] * u
            if motor >= 0:
                s += x.motor_strength[motor] * x.action[motor]
            at.add_twist(x.wrench, i, s * direction, s * m_a)
            at.add_twist(x.wrench, j, -s * direction, -s * m_b)

    @ti.func
    def adj_joint_force(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        table = ti.static(model.free_rows)
        for k in range(table.count):
            i, j, joint, motor = (
                table.links[5 * k],
                table.links[5 * k + 1],
                table.links[5 * k + 3],
                table.links[5 * k + 4],
            )
            a = f.pose(at.vec_of(x.position, i), at.rotation_of(x.orientation, i))
            b = f.pose(at.vec_of(x.position, j), at.rotation_of(x.orientation, j))
            direction, m_a, m_b, _ = f.row(table.links[5 * k + 2], f.read(table.parts, k), a, b)
            v_ab, w_a, w_b = (
                at.vec_of(x.velocity, i) - at.vec_of(x.velocity, j),
                at.spin_of(x.angular_velocity, i),
                at.spin_of(x.angular_velocity, j),
            )
            u = direction.dot(v_ab) + m_a.dot(w_a) - m_b.dot(w_b)
            s = -x.joint_damping[joint] * u
            if motor >= 0:
                s += x.motor_strength[motor] * x.action[motor]

            g = at.linear(adj_x.wrench, i) - at.linear(adj_x.wrench, j)
            h_a, h_b = at.angular(adj_x.wrench, i), at.angular(adj_x.wrench, j)
            adj_s = direction.dot(g) + m_a.dot(h_a) - m_b.dot(h_b)
            adj_u = -x.joint_damping[joint] * adj_s
            g_x, g_a, g_b = f.adj(
                table.links[5 * k + 2], f.read(table.parts, k), a, b,
                s * g + adj_u * v_ab, s * h_a + adj_u * w_a, -s * h_b - adj_u * w_b, 0.0,
            )  # fmt: skip
            if motor >= 0:
                adj_x.action[motor] = adj_x.action[motor] + x.motor_strength[motor] * adj_s
                adj_x.motor_strength[motor] = adj_x.motor_strength[motor] + x.action[motor] * adj_s
            adj_x.joint_damping[joint] = adj_x.joint_damping[joint] - u * adj_s
            at.add_vec_of(adj_x.position, i, g_x)
            at.add_vec_of(adj_x.position, j, -g_x)
            at.add_turn_of(adj_x.orientation, x.orientation, i, g_a)
            at.add_turn_of(adj_x.orientation, x.orientation, j, g_b)
            at.add_vec_of(adj_x.velocity, i, adj_u * direction)
            at.add_vec_of(adj_x.velocity, j, -adj_u * direction)
            at.add_spin_of(adj_x.angular_velocity, i, adj_u * m_a)
            at.add_spin_of(adj_x.angular_velocity, j, -adj_u * m_b)

    @ti.func
    def jvp_joint_force(model: ti.template(), x: ti.template(), dx: ti.template()):
        at.clear(dx.wrench, model.bodies)
        table = ti.static(model.free_rows)
        for k in range(table.count):
            i, j, kind = table.links[5 * k], table.links[5 * k + 1], table.links[5 * k + 2]
            joint, motor = table.links[5 * k + 3], table.links[5 * k + 4]
            a = f.pose(at.vec_of(x.position, i), at.rotation_of(x.orientation, i))
            b = f.pose(at.vec_of(x.position, j), at.rotation_of(x.orientation, j))
            direction, m_a, m_b, _ = f.row(kind, f.read(table.parts, k), a, b)
            dl, dm_a, dm_b, _ = f.jvp(
                kind, f.read(table.parts, k), a, b, at.vec_of(dx.position, i) - at.vec_of(dx.position, j),
                at.turn_of(x.orientation, dx.orientation, i), at.turn_of(x.orientation, dx.orientation, j),
            )  # fmt: skip
            v_ab = at.vec_of(x.velocity, i) - at.vec_of(x.velocity, j)
            w_a, w_b = at.spin_of(x.angular_velocity, i), at.spin_of(x.angular_velocity, j)
            u = direction.dot(v_ab) + m_a.dot(w_a) - m_b.dot(w_b)
            du = dl.dot(v_ab) + direction.dot(at.vec_of(dx.velocity, i) - at.vec_of(dx.velocity, j))
            du += dm_a.dot(w_a) + m_a.dot(at.spin_of(dx.angular_velocity, i))
            du -= dm_b.dot(w_b) + m_b.dot(at.spin_of(dx.angular_velocity, j))
            s = -x.joint_damping[joint] * u
            ds = -dx.joint_damping[joint] * u - x.joint_damping[joint] * du
            if motor >= 0:
                s += x.motor_strength[motor] * x.action[motor]
                ds += dx.motor_strength[motor] * x.action[motor] + x.motor_strength[motor] * dx.action[motor]
            at.add_twist(dx.wrench, i, s * dl + ds * direction, s * dm_a + ds * m_a)
            at.add_twist(dx.wrench, j, -s * dl - ds * direction, -s * dm_b - ds * m_b)

    return SimpleNamespace(forward=joint_force, adjoint=adj_joint_force, tangent=jvp_joint_force)


JointForce = routine(
    "JointForce",
    loops,
    Fields(
        given=("position", "orientation", "velocity", "angular_velocity", "action", "motor_strength", "joint_damping"),
        results=("wrench",),
    ),
    SETTING,
    of_model=("bodies", "free_rows"),
)
"""Wrench [n, D] of all motors, for actions [A], and of the damping of all joints."""
