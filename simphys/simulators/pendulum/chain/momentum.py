"""Momenta conjugate to the angles, p = M(x) v [kg m^2/s], and the rates of given momenta, v = M(x)^-1 p.

    p_i = sum_j C_ij v_j

Adjoint of p, for y = adj_p: that of the product, see pairs.py. The adjoint of v follows from the equation
p - M(x) v = 0: with M lambda = adj_v, adj_p = lambda, and all other inputs get the adjoint of M(x) v for y = -lambda.
Source: terms.py.
"""

from simphys.numerics.element import element
from simphys.substep import per_element

from . import linear
from .pairs import adj_multiply, assemble, jvp_multiply, multiply


@element
def momentum(x, v, L, s, J):
    p, _ = multiply(x, L, s, J, v, v)
    return p


@momentum.adjoint
def adj_momentum(x, v, L, s, J, y):
    adj_x, adj_L, adj_s, adj_J, adj_v, _ = adj_multiply(x, L, s, J, v, v, y, 0 * y)
    return adj_x, adj_v, adj_L, adj_s, adj_J


@element
def rate(x, p, L, s, J):
    M, _ = assemble(x, L, s, J, p)
    return linear.solve(linear.factor(M), p)


@rate.adjoint
def adj_rate(x, p, L, s, J, v, adj_v):
    M, _ = assemble(x, L, s, J, p)
    y = linear.solve(linear.factor(M), adj_v)
    adj_x, adj_L, adj_s, adj_J, _, _ = adj_multiply(x, L, s, J, v, v, -y, 0 * y)
    return adj_x, y, adj_L, adj_s, adj_J


@rate.tangent
def jvp_rate(x, p, L, s, J, v, dx, dp, dL, ds, dJ):
    still = 0 * v
    M, _ = assemble(x, L, s, J, p)
    moved, _ = jvp_multiply(x, L, s, J, v, v, dx, dL, ds, dJ, still, still)
    return linear.solve(linear.factor(M), dp - moved)


INERTIA = {"L": "length", "s": "first_moment", "J": "second_moment"}

Momentum = per_element(momentum, own={"x": "angle", "v": "rate", **INERTIA})
"""Momenta [n] [kg m^2/s] at angle and rate [n]."""

Rate = per_element(rate, own={"x": "angle", "p": "momentum", **INERTIA})
"""Rates [n] [rad/s] of given momenta [n] at angle [n]."""
