"""Drift of a variational step: a turn along a great circle, such that d x d' = h w.

    q = h w,   d' = q x d + sqrt(1 - q.q) d

q is perpendicular to d, and w to d' as well. This is the chord in the discrete Lagrangian
L_d = m L^2 |d' - d|^2 / (2 h) - h/2 (V(d) + V(d')), whose momentum is m L^2 w. No such d' exists for a turn by a right
angle or more, h |w| >= 1: the motion then ends in NaN. Adjoint, for y = adj_d', with r = sqrt(1 - q.q):

    adj_d = y x q + r y,   adj_q = d x y - (d.y / r) q,   adj_w = h adj_q

Source: Lee, Leok, McClamroch, Lagrangian mechanics and variational integrators on two-spheres, Int. J. Numer. Meth.
Engng 79 (2009), Corollary 3.1: for M_ij = 0 (i != j) it is explicit.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element


@element
def drift(d, w, h):
    q = h * w
    return q.cross(d) + ti.sqrt(1 - q.dot(q)) * d


@drift.adjoint
def adj_drift(d, w, h, y):
    q = h * w
    r = ti.sqrt(1 - q.dot(q))
    return y.cross(q) + r * y, h * (d.cross(y) - (d.dot(y) / r) * q)


Drift = per_element(drift, own={"d": "direction", "w": "rate"}, constant={"h": "time"}, results={"direction": "d"})
"""Direction [3] after a time h at the rate [3]."""
