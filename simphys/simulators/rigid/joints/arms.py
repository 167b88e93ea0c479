"""Arms of joints: where the joint lies, seen from the centre of mass of each of its bodies.

With the anchors of a joint in the frames of its bodies a and b, and their centres of mass c there,

    p_a = anchor_a - c_a      p_b = anchor_b - c_b                          [m]

as one vector (p_a, p_b); the world's centre is its origin, and reads as 0. Adjoint: adj_anchor = adj_p, adj_c = -adj_p.
"""

from simphys.numerics.element import element
from simphys.substep import per_element

from ..twist import halves, join


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
