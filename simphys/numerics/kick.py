"""Kick: a mass m under a force f for a time h, v' = v + (h/m) f.

Adjoint, for z = adj_v':    adj_v = z      adj_f = (h/m) z      adj_m = -(h/m^2) f.z
"""

from .element import element


@element
def kick(v, f, m, h):
    return v + (h / m) * f


@kick.adjoint
def adj_kick(v, f, m, h, adj_v):
    return adj_v, (h / m) * adj_v, -(h / (m * m)) * f.dot(adj_v)
