"""Constraint rows of the joints: directions in which body b is constrained relative to body a (joint_row.py).

    row = (l, m_a, m_b)      target = -(beta/h) error                       [m/s] or [rad/s]

where beta is the fraction of an error that one step corrects. Adjoint: adj_error = -(beta/h) adj_target, and those of
joint_row.py. Source: Baumgarte 1972, Stabilization of constraints and integrals of motion.
"""

from simphys.numerics.element import element
from simphys.numerics.rotation import adj_turn
from simphys.substep import per_element

from ..twist import join, split_row
from .joint_row import adj_row, row


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
