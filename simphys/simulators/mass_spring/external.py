"""External force on each node: gravity, and a penalty ground with viscous friction. The last axis points up.

With penetration p = max(0, h - x_up), normal force N = k_g p and tangential velocity v_t (all axes but the last):

    f = m g + N e_up - mu N v_t                                             [N]

h ground height [m], k_g ground stiffness [N/m], mu ground friction [s/m]. Adjoint, for b = adj_f:

    adj_m = g.b      adj_g = m b      adj_N = b_up - mu v_t.b_t      adj_mu = -N v_t.b_t      adj_v_t = -mu N b_t
    adj_k_g = p adj_N      adj_h = -adj_x_up = k_g adj_N  (where p > 0)

Convention at the kink: a node exactly at the height of the ground is not in contact, and its derivative is 0.
Source: the linear penalty contact of Hu et al. 2020 (DiffTaichi) made continuous.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element


@element
def external_force(x, v, m, g, h, k, mu):
    up = ti.static(x.n - 1)
    normal = k * ti.max(h - x[up], 0)
    f = m * g
    for j in ti.static(range(up)):
        f[j] -= mu * normal * v[j]
    f[up] += normal
    return f


@external_force.adjoint
def adj_external_force(x, v, m, g, h, k, mu, adj_f):
    up = ti.static(x.n - 1)
    depth = ti.max(h - x[up], 0)
    normal = k * depth
    adj_x, adj_v, slip = 0 * x, 0 * v, 0 * m
    for j in ti.static(range(up)):
        slip += v[j] * adj_f[j]
        adj_v[j] = -mu * normal * adj_f[j]
    adj_normal = adj_f[up] - mu * slip
    adj_h = ti.select(depth > 0, k * adj_normal, 0)
    adj_x[up] = -adj_h
    return adj_x, adj_v, g.dot(adj_f), m * adj_f, adj_h, depth * adj_normal, -normal * slip


@external_force.tangent
def jvp_external_force(x, v, m, g, h, k, mu, dx, dv, dm, dg, dh, dk, dmu):
    up = ti.static(x.n - 1)
    depth = ti.max(h - x[up], 0)
    normal = k * depth
    dnormal = dk * depth + ti.select(depth > 0, k * (dh - dx[up]), 0)
    df = dm * g + m * dg
    for j in ti.static(range(up)):
        df[j] -= dmu * normal * v[j] + mu * (dnormal * v[j] + normal * dv[j])
    df[up] += dnormal
    return df


ExternalForce = per_element(
    external_force,
    over="nodes",
    own={"x": "position", "v": "velocity", "m": "mass"},
    shared={"g": "gravity", "h": "ground_height", "k": "ground_stiffness", "mu": "ground_friction"},
)
"""Forces [n, dim] [N] of gravity and the ground on the nodes."""
