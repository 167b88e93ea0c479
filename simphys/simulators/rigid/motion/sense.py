"""Inputs of a controller: poses of the bodies relative to their mean position, their velocities, and the goal.

    s_i = (scale (x_i - c), R_i e_1 [, R_i e_2], scale v_i, scale w_i)   of each body i,      s_goal = goal - c

in one array after the pattern of the controller, with c the mean of x_i. Of the rotation, the first dim - 1 columns
determine it and have no jumps (Zhou et al. 2019, On the Continuity of Rotation Representations). Adjoint, for g of the
parts of body i, k columns, and g_goal:

    adj_x_i = scale g_x_i - (g_goal + scale sum over j of g_x_j) / n      adj_theta_i = sum_k (R_i e_k) x g_k_i
    adj_v_i = scale g_v_i      adj_w_i = scale g_w_i
"""

from simphys.autograd.kernels.runtime import ti
from simphys.nn.sensing import sense_goal, share
from simphys.numerics.element import element
from simphys.numerics.rotation import adj_turn, matrix, moment
from simphys.substep import concatenate, per_element, total


@ti.func
def columns(R):
    """Return the first dim - 1 columns, one after the other."""
    dim = ti.static(R.n)
    return ti.Vector([R[e % dim, e // dim] for e in ti.static(range(dim * (dim - 1)))])


@ti.func
def column(axes, x, k):
    return ti.Vector([axes[x.n * k + e] for e in ti.static(range(x.n))])


@element
def sense_body(x, q, v, w, c, scale):
    return scale * (x - c), columns(matrix(q)), scale * v, scale * w


@sense_body.adjoint
def adj_sense_body(x, q, v, w, c, scale, adj_relative, adj_axes, adj_motion, adj_spin):
    axes, adj_theta = columns(matrix(q)), 0.0 * w
    for k in ti.static(range(x.n - 1)):
        adj_theta += moment(column(axes, x, k), column(adj_axes, x, k))
    return scale * adj_relative, adj_turn(q, adj_theta), scale * adj_motion, scale * adj_spin, -scale * adj_relative


Centre = total(share, over="bodies", own={"x": "position"}, constant={"part": "part"}, results={"centre": "x"})
"""Mean position c [dim] [m] of the bodies, from their positions and part = 1 / n."""

SenseBodies = per_element(
    sense_body,
    over="bodies",
    own={"x": "position", "q": "orientation", "v": "velocity", "w": "angular_velocity"},
    shared={"c": "centre"},
    constant={"scale": "scale"},
    results={"relative": "x", "axes": "model.axes", "motion": "v", "spin": "w"},
)
"""Position relative to the centre, axes, velocity and angular velocity of each body, scaled."""

SenseGoal = per_element(sense_goal, own={"c": "centre"}, constant={"goal": "goal"}, results={"offset": "c"})
"""Goal relative to the centre, [dim] [m]."""

ControllerInputs = concatenate("control", ("relative", "axes", "motion", "spin"), "offset", result="inputs")
"""Inputs of the network, [waves + senses]."""
