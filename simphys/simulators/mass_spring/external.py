"""External forces on each node: its weight, and a penalty ground with viscous friction. The last axis points up.

    weight = m g                                                            [N]

With penetration p = max(0, h - x_up), normal force N = k p and tangential velocity v_t (all axes but the last):

    f = N e_up - mu N v_t                                                   [N]

m mass [kg], g gravity [m/s^2], h ground height [m], k ground stiffness [N/m], mu ground friction [s/m]. Adjoint, for
b = adj_f:

    adj_m = g.b      adj_g = m b      adj_N = b_up - mu v_t.b_t      adj_mu = -N v_t.b_t      adj_v_t = -mu N b_t
    adj_k = p adj_N      adj_h = -adj_x_up = k adj_N  (where p > 0)

Velocity Verlet takes the normal force alone, and lets the friction act for a time e [s] at this depth, which stays
stable however strong it is: v_t' = exp(-r) v_t with r = mu N e / m. For b = adj_v' and q = exp(-r) v_t.b_t it has

    adj_v_t = exp(-r) b_t     adj_mu = -N e/m q     adj_N = -mu e/m q     adj_m = r q / m

Convention at the kink: a node exactly at the height of the ground is not in contact, and its derivative is 0.
Source: the linear penalty contact of Hu et al. 2020 (DiffTaichi) made continuous.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element


@element
def weight(m, g):
    return m * g


@weight.adjoint
def adj_weight(m, g, adj_f):
    return g.dot(adj_f), m * adj_f


@element
def press(y, h, k):
    return k * ti.max(h - y, 0)


@press.adjoint
def adj_press(y, h, k, adj_normal):
    depth = ti.max(h - y, 0)
    adj_h = ti.select(depth > 0, k * adj_normal, 0)
    return -adj_h, adj_h, depth * adj_normal


@element
def normal_force(x, h, k):
    up = ti.static(x.n - 1)
    f = 0 * x
    f[up] = press(x[up], h, k)
    return f


@normal_force.adjoint
def adj_normal_force(x, h, k, adj_f):
    up = ti.static(x.n - 1)
    adj_x = 0 * x
    adj_x[up], adj_h, adj_k = adj_press(x[up], h, k, adj_f[up])
    return adj_x, adj_h, adj_k


@element
def ground_force(x, v, h, k, mu):
    up = ti.static(x.n - 1)
    normal = press(x[up], h, k)
    f = -mu * normal * v
    f[up] = normal
    return f


@ground_force.adjoint
def adj_ground_force(x, v, h, k, mu, adj_f):
    up = ti.static(x.n - 1)
    normal = press(x[up], h, k)
    adj_x, slip, adj_v = 0 * x, 0 * h, -mu * normal * adj_f
    for j in ti.static(range(up)):
        slip += v[j] * adj_f[j]
    adj_v[up] = 0
    adj_x[up], adj_h, adj_k = adj_press(x[up], h, k, adj_f[up] - mu * slip)
    return adj_x, adj_v, adj_h, adj_k, -normal * slip


@element
def rub(x, v, m, h, k, mu, e):
    up = ti.static(x.n - 1)
    slower = ti.exp(-mu * press(x[up], h, k) * e / m) * v
    slower[up] = v[up]
    return slower


@rub.adjoint
def adj_rub(x, v, m, h, k, mu, e, adj_v_new):
    up = ti.static(x.n - 1)
    normal, w = press(x[up], h, k), e / m
    s = ti.exp(-mu * normal * w)
    adj_x, adj_v, q = 0 * x, s * adj_v_new, 0 * h
    for j in ti.static(range(up)):
        q += s * v[j] * adj_v_new[j]
    adj_v[up] = adj_v_new[up]
    adj_x[up], adj_h, adj_k = adj_press(x[up], h, k, -mu * w * q)
    return adj_x, adj_v, mu * normal * w * q / m, adj_h, adj_k, -normal * w * q


Weight = per_element(weight, over="nodes", own={"m": "mass"}, shared={"g": "gravity"}, results={"weight": "g"})
"""Weight of each node [N], [n, dim]."""

GroundForce = per_element(
    ground_force,
    over="nodes",
    own={"x": "position", "v": "velocity"},
    shared={"h": "ground_height", "k": "ground_stiffness", "mu": "ground_friction"},
)
"""Force of the ground on each node [N], [n, dim]."""

NormalForce = per_element(
    normal_force, over="nodes", own={"x": "position"}, shared={"h": "ground_height", "k": "ground_stiffness"}
)
"""Force of the ground on each node without friction [N], [n, dim]."""

Rub = per_element(
    rub,
    over="nodes",
    own={"x": "position", "v": "velocity", "m": "mass"},
    shared={"h": "ground_height", "k": "ground_stiffness", "mu": "ground_friction"},
    constant={"e": "time"},
    results={"rubbed_velocity": "v"},
    idle={"mu": "v"},
)
"""Velocity [n, dim] after friction with the ground for a time."""
