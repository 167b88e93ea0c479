"""Spring force on each node: the sum over its springs, each damped by a dashpot along its axis.

For each spring, with d = x_b - x_a and u = v_b - v_a, the force f(d, u) of `simphys.numerics.spring` acts on node a,
and -f on node b. Adjoint: with adj_d and adj_u for adj_f = adj_force_a - adj_force_b,

    adj_x_b = sum of adj_d     adj_x_a = -sum of adj_d     adj_v_b = sum of adj_u     adj_v_a = -sum of adj_u
"""

from simphys.numerics.spring import spring_force
from simphys.substep import edges

SpringForce = edges(
    spring_force,
    over="springs",
    between={"d": "position", "u": "velocity"},
    own={"k": "stiffness", "c": "damping", "L": "rest_length"},
    onto="spring_force",
    unread={"c": ("u", "d")},
)
"""Forces [n, dim] [N] of all springs on the nodes; stiffness, damping and rest length are [S]."""
