"""Integration: kick the velocity by a force for a time h, then drift the position at the new velocity for a time e.

    v' = v + (h/m) f
    x' = x + e v'

h and e [s] are the durations of kick and drift of one stage (see Charges.stages), m mass [kg]. Adjoint, with
w = adj_v' + e adj_x':

    adj_x = adj_x'     adj_v = w     adj_f = (h/m) w     adj_m = -(h/m^2) f.w

Source: symplectic Euler and velocity Verlet, Hairer, Lubich and Wanner 2003.
"""

from simphys.numerics.drift import drift
from simphys.numerics.kick import kick
from simphys.substep import per_element

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
