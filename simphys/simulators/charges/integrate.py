"""Integration: kick the velocity by a force for a time h, then drift the position at the new velocity for a time e.

    v' = v + (h/m) f
    x' = x + e v'

h and e [s] are the durations of kick and drift of one stage (see Charges.stages), m mass [kg]. Adjoint, with
w = adj_v' + e adj_x':

    adj_x = adj_x'     adj_v = w     adj_f = (h/m) w     adj_m = -(h/m^2) f.w

Source: symplectic Euler and velocity Verlet, Hairer, Lubich and Wanner 2003.
"""

from simphys.numerics.drift import drift
from simphys.numerics.element import element
from simphys.substep import per_element


@element
def kick(v, f, m, h):
    return v + (h / m) * f


@kick.adjoint
def adj_kick(v, f, m, h, adj_v):
    return adj_v, (h / m) * adj_v, -(h / (m * m)) * f.dot(adj_v)


@kick.tangent
def jvp_kick(v, f, m, h, dv, df, dm):
    return dv + (h / m) * (df - (dm / m) * f)


Kick = per_element(
    kick,
    over="bodies",
    own={"v": "velocity", "f": "force", "m": "mass"},
    constant={"h": "kick"},
    results={"velocity": "v"},
)
"""Velocity [n, dim] after a kick."""

Drift = per_element(
    drift, over="bodies", own={"x": "position", "v": "velocity"}, constant={"e": "drift"}, results={"position": "x"}
)
"""Position [n, dim] after a drift."""
