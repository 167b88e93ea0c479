"""Constraint rows of the joints: directions in which body b is constrained relative to body a (joint_row.py).

    row = (l, m_a, m_b)      target = -(beta/h) error                       [m/s] or [rad/s]

where beta is the fraction of an error that one step corrects. Adjoint: adj_error = -(beta/h) adj_target, and those of
joint_row.py.

The arms of a joint are where it lies, seen from the centre of mass of each of its bodies: with the anchors in the
frames of its bodies a and b, and their centres of mass c there,

    p_a = anchor_a - c_a      p_b = anchor_b - c_b                          [m]

as one vector (p_a, p_b); the world's centre is its origin, and reads as 0. Adjoint: adj_anchor = adj_p, adj_c = -adj_p.
Source: Baumgarte 1972, Stabilization of constraints and integrals of motion.
"""

from simphys.numerics.element import element
from simphys.numerics.rotation import adj_turn
from simphys.substep import per_element

from ..rows import halves, join, split_row
from .joint_row import adj_row, row


@element
def measure_arms(anchor_a, anchor_b, c_a, c_b):
    return join(anchor_a - c_a, anchor_b - c_b)


@measure_arms.adjoint
def adj_measure_arms(anchor_a, anchor_b, c_a, c_b, adj_arms):
    g_a, g_b = halves(adj_arms)
    return g_a, g_b, -g_a, -g_b


Arms = per_element(
    measure_arms,
    over="joints",
    own={"anchor_a": "joint_anchor_a", "anchor_b": "joint_anchor_b"},
    gathered={"c_a": ("centre_of_mass", "joint_ends.a"), "c_b": ("centre_of_mass", "joint_ends.b")},
    results={"arms": "model.arm_width"},
)
"""Arms [J, 2 dim] of both bodies of each joint."""


@element
def joint_row(gain, x_a, x_b, q_a, q_b, arms, kind, part, still):
    direction, m_a, m_b, error = row(kind, part, arms, x_a - x_b, q_a, q_b + still)
    return join(direction, join(m_a, m_b)), -gain * error


@joint_row.adjoint
def adj_joint_row(gain, x_a, x_b, q_a, q_b, arms, kind, part, still, adj_row_, adj_target):
    g_l, g_ma, g_mb = split_row(adj_row_)
    x, adj_error = x_a - x_b, -gain * adj_target
    g_x, g_a, g_b, adj_arms = adj_row(kind, part, arms, x, q_a, q_b + still, g_l, g_ma, g_mb, adj_error)
    return g_x, -g_x, adj_turn(q_a, g_a), adj_turn(q_b + still, g_b), adj_arms


JointRows = per_element(
    joint_row,
    over="joint_rows",
    constant={"gain": "gain"},
    gathered={
        **{"x_a": ("position", "constraints.a"), "x_b": ("position", "constraints.b")},
        **{"q_a": ("orientation", "constraints.a"), "q_b": ("orientation", "constraints.b")},
        **{"arms": ("arms", "constraints.joint")},
    },
    of_model={"kind": "constraints.kind", "part": "constraints.parts", "still": "constraints.still"},
    results={"joint_row": "model.row_width", "joint_target": ()},
)
"""Rows [NJ, W] and targets [NJ] of all joints; `gain` is beta/h [1/s]."""
