"""Drift: bodies follow their velocities for a time h, corrected for impulses within that time:

    x' = x + h v - s                                                        [m]
    q', w' = rotate(q, w, turn)

An impulse that changed v by dv at a time t after the forces was applied too early by t. Hence s = sum t dv and
turn = sum t dw over all impulses of the step (see phases.py). rotate is the free rotation, with its adjoint and tangent
(see variational.py). Adjoint of the rest:

    adj_x = adj_x'     adj_v = adj_v' + h adj_x'     adj_s = -adj_x'

At the beginning of a step there are no impulses yet, and s = turn = 0. A step is a drift by h/2, a kick by h and a
drift by h/2, as in Verlet's method: of second order, symplectic (Hairer, Lubich and Wanner 2003).
"""

from simphys.numerics.element import element
from simphys.substep import per_element

from ..rows import angular, join, linear
from .variational import adj_rotate, rotate


@element
def drift(h, x, q, twist, shift, J):
    q_new, w = rotate(q, angular(twist), J, h, angular(shift))
    return x + h * linear(twist) - linear(shift), q_new, linear(twist), w


@drift.adjoint
def adj_drift(h, x, q, twist, shift, J, adj_x, adj_q, adj_v, adj_w):
    adj_q_old, adj_spin, adj_J, adj_turn = adj_rotate(q, angular(twist), J, h, angular(shift), adj_q, adj_w)
    return adj_x, adj_q_old, join(adj_v + h * adj_x, adj_spin), join(-adj_x, adj_turn), adj_J


@element
def drift_freely(h, x, q, v, w, J):
    q_new, w_new = rotate(q, w, J, h, 0.0 * w)
    return x + h * v, q_new, w_new


@drift_freely.adjoint
def adj_drift_freely(h, x, q, v, w, J, adj_x, adj_q, adj_w):
    adj_q_old, adj_spin, adj_J, _ = adj_rotate(q, w, J, h, 0.0 * w, adj_q, adj_w)
    return adj_x, adj_q_old, h * adj_x, adj_spin, adj_J


Drift = per_element(
    drift,
    over="bodies",
    constant={"h": "h"},
    own={"x": "position", "q": "orientation", "twist": "twist", "shift": "shift", "J": "inertia"},
    results={"new_position": "x", "new_orientation": "q", "new_velocity": "x", "new_spin": "model.spins"},
)
"""Position [n, dim], orientation [n, R], velocity [n, dim] and angular velocity [n, S] after `h` [s]."""

FreeDrift = per_element(
    drift_freely,
    over="bodies",
    constant={"h": "h"},
    own={"x": "position", "q": "orientation", "v": "velocity", "w": "angular_velocity", "J": "inertia"},
    results={"new_position": "x", "new_orientation": "q", "new_spin": "w"},
)
"""Position [n, dim], orientation [n, R] and angular velocity [n, S] after `h` [s] without impulses."""
