"""Damping of the joint in the second half of a variational step, of duration k = h/2, implicit in the new rate:

    w' = w - k c / (m L^2) w',   that is   w' = w / f,   f = 1 + k c / (m L^2)

The first half is explicit in the rate at its start. Thus the step is symmetric in time, and of order 2. Adjoint, for
y = adj_w': adj_w = y / f, and with adj_f = -w.y / f^2 and r = k / (m L^2): adj_c = r adj_f, adj_m = -r c adj_f / m,
adj_L = -2 r c adj_f / L. Source: Marsden and West, Acta Numerica 2001, section 3.2 (forcing at both ends of a step).
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def damp(w, L, m, c, k):
    return w / (1 + k * c / (m * L * L))


@damp.adjoint
def adj_damp(w, L, m, c, k, y):
    r = k / (m * L * L)
    f = 1 + r * c
    adj_f = -w.dot(y) / (f * f)
    return y / f, -2 * r * c * adj_f / L, -r * c * adj_f / m, r * adj_f


Damp = per_element(
    damp,
    own={"w": "rate", "L": "length", "m": "mass", "c": "damping"},
    constant={"k": "duration"},
    results={"rate": "w"},
)
"""Rate [3] after damping for a time k, from rate [3], length, mass and damping."""
