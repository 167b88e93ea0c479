"""Sensing: the inputs of a controller from the nodes' positions relative to their centre, their velocities, and a goal.

    s_i = (scale (x_i - c), scale v_i)   for each node i,      s_goal = goal - c,      c = mean of x_i

Together with the waves of the pattern these form one array: pattern, x_0, v_0, x_1, v_1, ..., goal. scale is in [1/m]
for positions, in [s/m] for velocities. Adjoint, for the adjoints g_i, h_i of the parts of s_i, and g_goal of s_goal:

    adj_v_i = scale h_i      adj_x_i = scale g_i - (g_goal + scale sum over j of g_j) / n

Source: Hu et al. 2020 (DiffTaichi), mass_spring.py.
"""

from simphys.nn.sensing import sense_goal, share
from simphys.numerics.element import element
from simphys.substep import concatenate, per_element, total


@element
def sense_node(x, v, c, scale):
    return scale * (x - c), scale * v


@sense_node.adjoint
def adj_sense_node(x, v, c, scale, adj_d, adj_w):
    return scale * adj_d, scale * adj_w, -scale * adj_d


Centre = total(share, over="nodes", own={"x": "position"}, constant={"part": "part"}, results={"centre": "x"})
"""Centre [dim] [m] of the nodes, from their positions and part = 1 / n."""

SenseNodes = per_element(
    sense_node,
    over="nodes",
    own={"x": "position", "v": "velocity"},
    shared={"c": "centre"},
    constant={"scale": "scale"},
    results={"relative": "x", "motion": "v"},
)
"""Scaled positions relative to the centre, and scaled velocities, [n, dim] each."""

SenseGoal = per_element(sense_goal, own={"c": "centre"}, constant={"goal": "goal"}, results={"offset": "c"})
"""Goal relative to the centre, [dim] [m]."""

Sense = concatenate("pattern", ("relative", "motion"), "offset", result="senses")
"""Inputs of the network [waves + 2 n dim + dim], in this order."""
