"""Motors, damping and dry friction: forces along the free motions of joints, opposite ones on the other body.

A joint's free row (l, m_a, m_b) (joint_row.py) has the rate u = l.(v_a - v_b) + m_a.w_a - m_b.w_b. Body a
rotates or slides at this rate relative to b, about or along the joint's axis; in the plane counter-clockwise. Motor,
damping and dry friction t (numerics/dry_friction.py) give

    s = k action - d u + t(F, w, u)                                         [N m] or [N]
    force l s and torque m_a s on a;   -l s and -m_b s on b

k strength of the motor, d damping, F dry friction, w transition rate. Adjoint, for the adjoints (g_a, h_a), (g_b, h_b)
of force and torque on a and b:

    adj_s = l.(g_a - g_b) + m_a.h_a - m_b.h_b        adj_u = -d adj_s + (dt/du) adj_s
    adj_k = action adj_s      adj_action = k adj_s      adj_d = -u adj_s
    adj_l = s (g_a - g_b) + adj_u (v_a - v_b)        adj_v_a = -adj_v_b = adj_u l
    adj_ma = s h_a + adj_u w_a    adj_mb = -s h_b - adj_u w_b    adj_w_a = adj_u m_a    adj_w_b = -adj_u m_b

then the adjoint of the row. Source: virtual power, s u is the power given to the bodies; the adjoint is the transpose.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.dry_friction import adj_rub, rub
from simphys.numerics.element import element
from simphys.numerics.rotation import adj_turn
from simphys.substep import collect, per_element

from ..rows import angular, join, linear
from .joint_row import adj_row, row


@ti.func
def drive(k, action, d, F, w, direction, m_a, m_b, v, w_a, w_b):
    """Return u and s; v is v_a - v_b."""
    u = direction.dot(v) + m_a.dot(w_a) - m_b.dot(w_b)
    return u, k * action - d * u + rub(F, w, u)


@element
def joint_force(x_a, x_b, q_a, q_b, v_a, v_b, w_a, w_b, action, k, d, F, w, arms, kind, part, still):
    direction, m_a, m_b, _ = row(kind, part, arms, x_a - x_b, q_a, q_b + still)
    _, s = drive(k, action, d, F, w, direction, m_a, m_b, v_a - v_b, w_a, w_b)
    return join(s * direction, s * m_a), join(-s * direction, -s * m_b)


@joint_force.adjoint
def adj_joint_force(
    x_a, x_b, q_a, q_b, v_a, v_b, w_a, w_b, action, k, d, F, w, arms, kind, part, still, adj_wrench_a, adj_wrench_b
):
    x, v = x_a - x_b, v_a - v_b
    direction, m_a, m_b, _ = row(kind, part, arms, x, q_a, q_b + still)
    u, s = drive(k, action, d, F, w, direction, m_a, m_b, v, w_a, w_b)
    g, h_a, h_b = linear(adj_wrench_a) - linear(adj_wrench_b), angular(adj_wrench_a), angular(adj_wrench_b)
    adj_s = direction.dot(g) + m_a.dot(h_a) - m_b.dot(h_b)
    adj_F, adj_w, adj_rate = adj_rub(F, w, u, adj_s)
    adj_u = adj_rate - d * adj_s
    adj_l, adj_ma, adj_mb = s * g + adj_u * v, s * h_a + adj_u * w_a, -s * h_b - adj_u * w_b
    g_x, g_a, g_b, adj_arms = adj_row(kind, part, arms, x, q_a, q_b + still, adj_l, adj_ma, adj_mb, 0.0)
    adj_qa, adj_qb, adj_v = adj_turn(q_a, g_a), adj_turn(q_b + still, g_b), adj_u * direction
    adj_k, adj_d, of_motor = action * adj_s, -u * adj_s, k * adj_s
    adj_wa, adj_wb = adj_u * m_a, -adj_u * m_b
    return g_x, -g_x, adj_qa, adj_qb, adj_v, -adj_v, adj_wa, adj_wb, of_motor, adj_k, adj_d, adj_F, adj_w, adj_arms


JointForce = per_element(
    joint_force,
    over="free_rows",
    gathered={
        **{"x_a": ("position", "free_rows.a"), "x_b": ("position", "free_rows.b")},
        **{"q_a": ("orientation", "free_rows.a"), "q_b": ("orientation", "free_rows.b")},
        **{"v_a": ("velocity", "free_rows.a"), "v_b": ("velocity", "free_rows.b")},
        **{"w_a": ("angular_velocity", "free_rows.a"), "w_b": ("angular_velocity", "free_rows.b")},
        **{"action": ("action", "free_rows.motor"), "k": ("motor_strength", "free_rows.motor")},
        **{"d": ("joint_damping", "free_rows.joint"), "F": ("joint_dry_friction", "free_rows.joint")},
        **{"w": ("joint_transition_rate", "free_rows.joint"), "arms": ("arms", "free_rows.joint")},
    },
    of_model={"kind": "free_rows.kind", "part": "free_rows.parts", "still": "free_rows.still"},
    results={"joint_wrench_a": "model.freedoms", "joint_wrench_b": "model.freedoms"},
)
"""Wrenches [rows, D] of motors, for actions [A], damping and friction on bodies a and b of joints with free rows."""

JointWrench = collect(
    "joint_wrench",
    parts={"joint_wrench_a": "free_rows.a", "joint_wrench_b": "free_rows.b"},
    over="free_rows",
    onto="bodies",
)
"""Sum [n, D] of these wrenches on each body."""
