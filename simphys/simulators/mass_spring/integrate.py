"""Integration: kick the velocity by a force for a time h, then drift the position at the new velocity for a time e.

    v' = a v + b f,   a = exp(-drag h),   b = (h / m) exp(-drag r)      (a = b = 0 for a pinned node)
    x' = x + e v'

h, r and e [s] are the durations of kick, damp and drift of one stage (see MassSpring.stages). Adjoint, with
w = adj_v' + e adj_x':

    adj_x = adj_x'     adj_v = a w     adj_f = b w     adj_drag = -h a v.w - r b f.w     adj_m = -(b/m) f.w

Source: symplectic Euler and velocity Verlet, Hairer, Lubich and Wanner 2003, with the drag by Strang splitting.
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


@kick_factors.tangent
def jvp_kick_factors(drag, m, h, r, free, ddrag, dm):
    a, b = kick_factors(drag, m, h, r, free)
    return -h * a * ddrag, -r * b * ddrag - b / m * dm


@element
def kick(v, f, a, b):
    return a * v + b * f


@kick.adjoint
def adj_kick(v, f, a, b, adj_v):
    return a * adj_v, b * adj_v, v.dot(adj_v), f.dot(adj_v)


@kick.tangent
def jvp_kick(v, f, a, b, dv, df, da, db):
    return da * v + a * dv + db * f + b * df


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

Drift = per_element(
    drift, over="nodes", own={"x": "position", "v": "velocity"}, constant={"e": "drift"}, results={"position": "x"}
)
"""Position [n, dim] after a drift."""
