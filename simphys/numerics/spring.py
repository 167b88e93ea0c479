"""Damped spring: a spring with a dashpot along its axis, between two points a and b.

With d the vector from a to b, u its rate, l = |d| and r = 1/l, the force on a is f = s d, and that on b is -f, where

    s = k (1 - L r) + c (u.d) r^2                                           [N/m]

k stiffness [N/m], L rest length [m], c damping [N s/m]. A spring with L = 0 is linear: f = k d, also at l = 0.
Adjoint, for g = adj_f (which is adj_f_a - adj_f_b) and e = g.d:

    adj_k = (1 - L r) e     adj_L = -k r e     adj_c = (u.d) r^2 e     adj_u = c r^2 e d
    adj_d = k ((1 - L r) g + L r^3 e d) + c r^2 ((u.d) g + e u - 2 (u.d) r^2 e d)

Convention at l = 0, where the direction is undefined: r = 0, so that only the linear part k d remains, in the force,
in its tangent and in its adjoint. Source: Hooke's law; the adjoint is the transpose of the Jacobian.
"""

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.runtime import ti

from .element import element


def least_square() -> float:
    """Return the least squared length that counts as greater than 0, in the precision in force."""
    return 1e-37 if runtime.real_dtype() == np.float32 else 1e-300


@ti.func
def inverse_length(d):
    """Return 1 / |d|, and 0 at d = 0: without a branch or a select, so that blocks of springs vectorize."""
    l2 = d.dot(d)
    return ti.sqrt(l2) / ti.max(l2, ti.static(least_square()))


@element
def spring_force(d, u, k, c, L):
    r = inverse_length(d)
    return (k * (1 - L * r) + c * u.dot(d) * r * r) * d


@spring_force.adjoint
def adj_spring_force(d, u, k, c, L, adj_f):
    r = inverse_length(d)
    h, e = L * r, adj_f.dot(d)
    q, p = c * r * r, u.dot(d)
    adj_d = k * ((1 - h) * adj_f + (h * r * r * e) * d) + q * (p * adj_f + e * u - (2 * p * r * r * e) * d)
    return adj_d, (q * e) * d, (1 - h) * e, p * r * r * e, -k * r * e


@spring_force.tangent
def jvp_spring_force(d, u, k, c, L, dd, du, dk, dc, dL):
    r = inverse_length(d)
    h, stretch, rate = L * r, d.dot(dd) * r * r, u.dot(d) * r * r
    s = k * (1 - h) + c * rate
    ds = dk * (1 - h) - k * dL * r + k * h * stretch
    ds += dc * rate + c * (du.dot(d) + u.dot(dd)) * r * r - 2 * c * rate * stretch
    return ds * d + s * dd
