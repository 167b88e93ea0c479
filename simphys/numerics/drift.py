"""Drift: motion at constant velocity for a time e, x' = x + e v.

Adjoint: adj_x = adj_x', adj_v = e adj_x'.
"""

from .element import element


@element
def drift(x, v, e):
    return x + e * v


@drift.adjoint
def adj_drift(x, v, e, adj_x):
    return adj_x, e * adj_x
