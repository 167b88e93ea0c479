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
from .terms import adj_carry, carry, jvp_carry


@element
def momentum(x, v, L, m):
    p, _ = multiply(x, L, carry(m), v, v)
    return p


@momentum.adjoint
def adj_momentum(x, v, L, m, y):
    adj_x, adj_L, adj_mu, adj_v, _ = adj_multiply(x, L, carry(m), v, v, y, 0 * y)
    return adj_x, adj_v, adj_L, adj_carry(m, adj_mu)


@momentum.tangent
def jvp_momentum(x, v, L, m, dx, dv, dL, dm):
    dp, _ = jvp_multiply(x, L, carry(m), v, v, dx, dL, jvp_carry(m, dm), dv, dv)
    return dp


@element
def rate(x, p, L, m):
    M, _ = assemble(x, L, carry(m), p)
    return linear.solve(linear.factor(M), p)


@rate.adjoint
def adj_rate(x, p, L, m, v, adj_v):
    mu = carry(m)
    M, _ = assemble(x, L, mu, p)
    y = linear.solve(linear.factor(M), adj_v)
    adj_x, adj_L, adj_mu, _, _ = adj_multiply(x, L, mu, v, v, -y, 0 * y)
    return adj_x, y, adj_L, adj_carry(m, adj_mu)


@rate.tangent
def jvp_rate(x, p, L, m, v, dx, dp, dL, dm):
    mu, still = carry(m), 0 * v
    M, _ = assemble(x, L, mu, p)
    moved, _ = jvp_multiply(x, L, mu, v, v, dx, dL, jvp_carry(m, dm), still, still)
    return linear.solve(linear.factor(M), dp - moved)


Momentum = per_element(momentum, own={"x": "angle", "v": "rate", "L": "length", "m": "mass"})
"""Momenta [n] [kg m^2/s] at angle and rate [n]."""

Rate = per_element(rate, own={"x": "angle", "p": "momentum", "L": "length", "m": "mass"})
"""Rates [n] [rad/s] of given momenta [n] at angle [n]."""
