"""Velocity of a direction d that turns at the angular velocity w:

    d' = w x d                                                              [1/s]

Adjoint, for y = adj_d': adj_w = d x y and adj_d = y x w.
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def turn(w, d):
    return w.cross(d)


@turn.adjoint
def adj_turn(w, d, y):
    return d.cross(y), y.cross(w)


Turn = per_element(turn, own={"w": "rate", "d": "direction"})
"""Velocity [3] of a direction [3] at the rate [3]."""
