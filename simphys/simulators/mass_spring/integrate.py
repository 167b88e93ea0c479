"""Integration: damp by drag, kick the velocity by a force for a time h, then drift the position for a time e.

    v' = a v + b f,   a = exp(-drag h),   b = (h / m) exp(-drag r)      (a = b = 0 for a pinned node)
    x' = x + e v'

h, r and e [s] are the durations of kick, damp and drift of one stage (see MassSpring.stages). Adjoint, with
w = adj_v' + e adj_x':

    adj_x = adj_x'     adj_v = a w     adj_f = b w     adj_drag = -h a v.w - r b f.w     adj_m = -(b/m) f.w

Velocity Verlet has two stages. The force of dashpots depends on the velocity, too. In the first stage it is that after
the drag, a v. In the second one it is not known yet, so the first kick predicts a velocity u:

    v1 = a v + b f(x, a v)      x' = x + dt v1      u = 2 v1 - a v      v' = a v1 + a b f(x', u)

As u has an error of O(dt^2), the step has one of O(dt^3), and is of second order. Without dashpots it is Verlet's.
Friction with the ground acts like drag, before the first stage and after the second (external.py).
Sources: symplectic Euler and velocity Verlet, Hairer, Lubich and Wanner 2003, with the drag by Strang splitting; the
prediction, Groot and Warren 1997, J. Chem. Phys. 107, 4423, with lambda = 1. A step begins with forces at the velocity
that the one before ended with, as in Besold, Vattulainen, Karttunen and Polson 2000, Phys. Rev. E 62, R7611.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.drift import drift
from simphys.numerics.element import element
from simphys.substep import per_element


@element
def kick_factors(drag, m, h, r, free):
    return free * ti.exp(-drag * h), free * h / m * ti.exp(-drag * r)


@kick_factors.adjoint
def adj_kick_factors(drag, m, h, r, free, adj_a, adj_b):
    a, b = kick_factors(drag, m, h, r, free)
    return -h * a * adj_a - r * b * adj_b, -b / m * adj_b


@element
def kick(v, f, a, b):
    return a * v + b * f


@kick.adjoint
def adj_kick(v, f, a, b, adj_v):
    return a * adj_v, b * adj_v, v.dot(adj_v), f.dot(adj_v)


@element
def damp(v, a):
    return a * v


@damp.adjoint
def adj_damp(v, a, adj_v):
    return a * adj_v, v.dot(adj_v)


@element
def predict(v, v1):
    return 2 * v1 - v


@predict.adjoint
def adj_predict(v, v1, adj_u):
    return -adj_u, 2 * adj_u


KickFactors = per_element(
    kick_factors,
    over="nodes",
    own={"drag": "drag", "m": "mass"},
    constant={"h": "kick", "r": "damp", "free": "free"},
    results={"decay": "drag", "impulse": "m"},
)
"""Factors a [1] and b [s/kg] of the kick, [n] each. They depend on parameters alone."""

Kick = per_element(
    kick,
    over="nodes",
    own={"v": "velocity", "f": "force", "a": "decay", "b": "impulse"},
    results={"velocity": "v"},
)
"""Velocity [n, dim] after a kick."""

Damp = per_element(damp, over="nodes", own={"v": "velocity", "a": "decay"}, results={"damped_velocity": "v"})
"""Velocity [n, dim] after drag alone, for the time of a kick."""

Predict = per_element(
    predict, over="nodes", own={"v": "damped_velocity", "v1": "velocity"}, results={"predicted_velocity": "v"}
)
"""Velocity [n, dim] after two kicks by the force that changed the damped velocity to this one."""

Drift = per_element(
    drift, over="nodes", own={"x": "position", "v": "velocity"}, constant={"e": "drift"}, results={"position": "x"}
)
"""Position [n, dim] after a drift."""
