"""Source of smoke: s' = s + dt q in each cell, q smoke rate [1/s].

Adjoint:

    adj_s = adj_s'          adj_q = dt adj_s'
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def add_smoke(s, q, h):
    return s + h * q


@add_smoke.adjoint
def adj_add_smoke(s, q, h, adj_s):
    return adj_s, h * adj_s


AddSmoke = per_element(
    add_smoke,
    over="cells",
    own={"s": "smoke", "q": "smoke_rate"},
    constant={"h": "dt"},
    results={"smoke": "s"},
    idle={"q": "s"},
)
"""Smoke [*cells] after a step with sources."""
