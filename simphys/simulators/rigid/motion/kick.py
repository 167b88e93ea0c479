"""Kick: forces and torques change the velocities of all bodies during a time h, before impulses do:

    v* = v + h (a + f/m)
    w* = w + h A^-1 tau

a gravity, f, tau force and torque about the centre, m mass, A = R diag(J) R^T (see inertia.py). Free rotation, with its
gyroscopic torque, belongs to the drift (variational.py). h is 0 for a fixed body, which is not `free`. Adjoint, for
g_v = adj_v* and g = adj_w*:

    adj_v = g_v     adj_a = h g_v     adj_f = (h/m) g_v     adj_m = -f.adj_f / m     adj_w = g     adj_tau = h A^-1 g
    adj_J = -(adj of A^-1 by 1/J) / J^2     adj_theta from dR, see inertia.py
"""

from simphys.numerics import rotation
from simphys.numerics.element import element
from simphys.substep import per_element

from ..rows import angular, join, linear
from . import inertia


@element
def kick(h, v, w, q, wrench, m, J, a, free):
    t, spin = h * free, inertia.apply(rotation.matrix(q), inertia.invert(J), angular(wrench))
    return join(v + t * (a + linear(wrench) / m), w + t * spin)


@kick.adjoint
def adj_kick(h, v, w, q, wrench, m, J, a, free, adj_twist):
    t, g_v, g_w = h * free, linear(adj_twist), angular(adj_twist)
    adj_f = (t / m) * g_v
    inverse, tau = inertia.invert(J), angular(wrench)
    adj_inverse, adj_tau, adj_theta = inertia.adj_apply(rotation.matrix(q), inverse, tau, t * g_w)
    adj_q, adj_J = rotation.adj_turn(q, adj_theta), inertia.adj_invert(J, adj_inverse)
    return g_v, g_w, adj_q, join(adj_f, adj_tau), -linear(wrench).dot(adj_f) / m, adj_J, t * g_v


Kick = per_element(
    kick,
    over="bodies",
    constant={"h": "h"},
    own={"v": "velocity", "w": "angular_velocity", "q": "orientation", "wrench": "wrench", "m": "mass", "J": "inertia"},
    shared={"a": "gravity"},
    of_model={"free": "free"},
    results={"twist": "wrench"},
)
"""Twist [n, D] after forces have acted for `h` [s]."""
