"""Angular acceleration of the links: M(x) a = f, with the terms of terms.py

    r_i = weight_i + b_i - sum_j [ C_ij a_j + S_ij v_j^2 ] = 0              [N m], a [rad/s^2]

and the loads b of the joints and of the air. M = C is symmetric and positive definite, and is solved by Cholesky
factorization. The adjoint, for y = adj_a, follows from the implicit function theorem for r = 0, where dr/da = -M. Solve
M lambda = y; then all inputs get the adjoint of the terms of r for lambda, with a held fixed. This takes one solve and
a sum over pairs; no inverse of M, no derivative of its factor. Source: terms.py.
"""

from simphys.numerics.element import element
from simphys.substep import per_element

from . import linear
from .loads import adj_weigh, jvp_weigh, weigh
from .momentum import INERTIA
from .pairs import adj_multiply, assemble, jvp_multiply


@element
def acceleration(x, v, b, L, s, J, g, e):
    M, turned = assemble(x, L, s, J, v * v)
    return linear.solve(linear.factor(M), weigh(x, s, g, e) + b - turned)


@acceleration.adjoint
def adj_acceleration(x, v, b, L, s, J, g, e, a, adj_a):
    M, _ = assemble(x, L, s, J, v)
    y = linear.solve(linear.factor(M), adj_a)
    adj_x, adj_s, adj_g, adj_e = adj_weigh(x, s, g, e, y)
    adj_x_pairs, adj_L, adj_s_pairs, adj_J, _, adj_square = adj_multiply(x, L, s, J, a, v * v, -y, -y)
    return adj_x + adj_x_pairs, 2 * v * adj_square, y, adj_L, adj_s + adj_s_pairs, adj_J, adj_g, adj_e


@acceleration.tangent
def jvp_acceleration(x, v, b, L, s, J, g, e, a, dx, dv, db, dL, ds, dJ, dg, de):
    M, _ = assemble(x, L, s, J, v)
    dp, dturned = jvp_multiply(x, L, s, J, a, v * v, dx, dL, ds, dJ, 0 * a, 2 * v * dv)
    return linear.solve(linear.factor(M), jvp_weigh(x, s, g, e, dx, ds, dg, de) + db - dp - dturned)


Acceleration = per_element(
    acceleration,
    own={"x": "angle", "v": "rate", "b": "load", **INERTIA, "g": "gravity", "e": "tilt"},
)
"""Angular acceleration [n] [rad/s^2] at angle and rate [n], under loads of joints and air [n] [N m]."""
