"""Loads on the links besides inertia: their weights, and the torques of motors and damping in the joints.

    f_i = -s_i g sin(x_i - e) + t_i - t_{i+1},   t_i = u_i - c_i (v_i - v_{i-1}),   v_{-1} = t_n = 0       [N m]

`weigh` is the first term and `turn_joints` the others. Adjoint, for y = adj_f: with z_i = y_i - y_{i-1}, the adjoint
of t_i,

    adj_u_i = z_i   adj_c_i = -(v_i - v_{i-1}) z_i   adj_v_i = -c_i z_i + c_{i+1} z_{i+1}
    adj_x_i = -s_i g cos(x_i - e) y_i   adj_e = -sum_i adj_x_i   adj_g = -sum_i s_i sin(x_i - e) y_i
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.forward_mode import tangent_of
from simphys.substep import per_element

from .terms import adj_joint, adj_weight, joint, weight


@ti.func
def take_previous(v, i):
    """Return the value v_{i-1} of the link before, 0 for the support."""
    found = 0 * v[0]
    if i > 0:
        found = v[ti.max(i - 1, 0)]
    return found


@element
def weigh(x, s, g, e):
    f = 0 * x
    for i in range(ti.static(x.n)):
        f[i] = weight(s[i], g, x[i] - e)
    return f


@weigh.adjoint
def adj_weigh(x, s, g, e, y):
    adj_x, adj_s, adj_g, adj_e = 0 * x, 0 * x, 0 * g, 0 * e
    for i in range(ti.static(x.n)):
        adj_s_i, adj_g_i, adj_x_i = adj_weight(s[i], g, x[i] - e, y[i])
        adj_x[i] = adj_x_i
        adj_s[i] = adj_s_i
        adj_g += adj_g_i
        adj_e -= adj_x_i
    return adj_x, adj_s, adj_g, adj_e


jvp_weigh = tangent_of(weigh, "x", "s", "g", "e")


@element
def turn_joints(v, u, c):
    f = 0 * v
    for i in range(ti.static(v.n)):
        f[i] = joint(u[i], c[i], v[i] - take_previous(v, i))
    for i in range(1, ti.static(v.n)):
        f[i - 1] = f[i - 1] - joint(u[i], c[i], v[i] - v[i - 1])
    return f


@turn_joints.adjoint
def adj_turn_joints(v, u, c, y):
    adj_v, adj_u, adj_c = 0 * v, 0 * v, 0 * v
    for i in range(ti.static(v.n)):
        z = y[i] - take_previous(y, i)
        adj_u_i, adj_c_i, adj_turn = adj_joint(u[i], c[i], v[i] - take_previous(v, i), z)
        adj_v[i] = adj_turn
        adj_u[i] = adj_u_i
        adj_c[i] = adj_c_i
    for i in range(1, ti.static(v.n)):
        adj_v[i - 1] = adj_v[i - 1] + c[i] * adj_u[i]
    return adj_v, adj_u, adj_c


jvp_turn_joints = tangent_of(turn_joints, "v", "u", "c")


TurnJoints = per_element(turn_joints, own={"v": "rate", "u": "torque", "c": "damping"}, results={"load": "v"})
"""Loads of motors and damping in the joints on the links [n] [N m], at rates [n] and motor torques [n]."""
