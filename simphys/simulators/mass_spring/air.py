"""Drag of the air on each node, which grows with the square of its speed.

    m v' = -k |v| v,   k air drag [kg/m],   solved for a time e [s]:   v' = v / D,   D = 1 + c |v|,   c = k e / m  [s/m]

This is exact however strong the drag is. It acts like friction with the ground (external.py), around that: before the
first stage and after the second of velocity Verlet, which keeps its second order; before the only stage of Euler. For
b = adj_v' and s = v.b / D^2 it has

    adj_v = b / D - c s v / |v|     adj_c = -|v| s     adj_k = (e / m) adj_c     adj_m = -(c / m) adj_c

At rest v / |v| counts as 0, and the derivative is that without drag. Source: the solution is elementary; k = rho C_d A
/ 2 for air of density rho, with a body's drag coefficient C_d and cross section A (White 2016, Fluid Mechanics, 7.6).
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def resist(v, m, k, e):
    return v / (1 + k * e / m * v.norm())


@resist.adjoint
def adj_resist(v, m, k, e, adj_v_new):
    c, speed = k * e / m, v.norm()
    D = 1 + c * speed
    s = v.dot(adj_v_new) / (D * D)
    adj_v = adj_v_new / D
    if speed > 0:
        adj_v -= c * s / speed * v
    adj_c = -speed * s
    return adj_v, -c / m * adj_c, e / m * adj_c


Resist = per_element(
    resist,
    over="nodes",
    own={"v": "velocity", "m": "mass", "k": "air_drag"},
    constant={"e": "time"},
    results={"slowed_velocity": "v"},
)
"""Velocity [n, dim] after the drag of the air for a time."""
