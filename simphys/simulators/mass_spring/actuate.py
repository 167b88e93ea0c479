"""Actuation: a control lengthens and shortens springs.

    L' = L (1 + A u)                                                        [m]

L rest length [m], u control of the spring's actuator, A amplitude of the spring [1/unit of the control]. A spring
without an actuator has u = 0. Adjoint, for g = adj_L':

    adj_L = (1 + A u) g      adj_A = L u g      adj_u = sum of L A g over the actuator's springs

Source: the actuated springs of Hu et al. 2020 (DiffTaichi).
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def actuate(L, A, u):
    return L * (1 + A * u)


@actuate.adjoint
def adj_actuate(L, A, u, adj_L):
    return (1 + A * u) * adj_L, L * u * adj_L, L * A * adj_L


Actuate = per_element(
    actuate,
    over="springs",
    own={"L": "rest_length", "A": "amplitude"},
    gathered={"u": ("control", "actuator")},
    results={"actuated_length": "L"},
)
"""Actuated rest lengths [S] [m] of a step, from rest length [S], amplitude [S] and control [A]."""
