"""Angular acceleration of the links: M(x) a = f, with the terms of terms.py and loads.py

    r_i = loads_i - sum_j [ C_ij a_j + S_ij v_j^2 ] = 0                     [N m], a [rad/s^2]

M = C is symmetric and positive definite, and is solved by Cholesky factorization. The adjoint, for y = adj_a, follows
from the implicit function theorem for r = 0, where dr/da = -M. Solve M lambda = y; then all inputs get the adjoint of
the terms of r for lambda, with a held fixed. This takes one solve and a sum over pairs; no inverse of M, no derivative
of its factor. Source: terms.py.
"""

from simphys.numerics.element import element
from simphys.substep import per_element

from . import linear
from .loads import adj_turn_joints, adj_weigh, jvp_turn_joints, jvp_weigh, turn_joints, weigh
from .pairs import adj_multiply, assemble, jvp_multiply
from .terms import adj_carry, carry, jvp_carry


@element
def acceleration(x, v, u, L, m, c, g, e):
    mu = carry(m)
    M, s = assemble(x, L, mu, v * v)
    return linear.solve(linear.factor(M), weigh(x, L, mu, g, e) + turn_joints(v, u, c) - s)


@acceleration.adjoint
def adj_acceleration(x, v, u, L, m, c, g, e, a, adj_a):
    mu = carry(m)
    M, _ = assemble(x, L, mu, v)
    y = linear.solve(linear.factor(M), adj_a)
    adj_x, adj_L, adj_mu, adj_g, adj_e = adj_weigh(x, L, mu, g, e, y)
    adj_v, adj_u, adj_c = adj_turn_joints(v, u, c, y)
    adj_x_pairs, adj_L_pairs, adj_mu_pairs, _, adj_square = adj_multiply(x, L, mu, a, v * v, -y, -y)
    adj_m = adj_carry(m, adj_mu + adj_mu_pairs)
    return adj_x + adj_x_pairs, adj_v + 2 * v * adj_square, adj_u, adj_L + adj_L_pairs, adj_m, adj_c, adj_g, adj_e


@acceleration.tangent
def jvp_acceleration(x, v, u, L, m, c, g, e, a, dx, dv, du, dL, dm, dc, dg, de):
    mu, dmu = carry(m), jvp_carry(m, dm)
    M, _ = assemble(x, L, mu, v)
    dp, ds = jvp_multiply(x, L, mu, a, v * v, dx, dL, dmu, 0 * a, 2 * v * dv)
    df = jvp_weigh(x, L, mu, g, e, dx, dL, dmu, dg, de) + jvp_turn_joints(v, u, c, dv, du, dc)
    return linear.solve(linear.factor(M), df - dp - ds)


Acceleration = per_element(
    acceleration,
    own={
        "x": "angle",
        "v": "rate",
        "u": "torque",
        "L": "length",
        "m": "mass",
        "c": "damping",
        "g": "gravity",
        "e": "tilt",
    },
)
"""Angular acceleration [n] [rad/s^2] at angle and rate [n], under motor torques [n]."""
