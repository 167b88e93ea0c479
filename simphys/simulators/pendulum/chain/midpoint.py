"""The midpoint rate of a step of the variational integrator.

The discrete Lagrangian is h (T - V)((x + x')/2, (x' - x)/h), with the loads F of motors and joints as forces at the
midpoint. Let v = (x' - x)/h, y = x + k v, k = h/2, and p and p' the momenta before and after the step. Then the
discrete Euler-Lagrange equations are

    p = M(y) v - k (d(T - V)/dx + F),   p' = M(y) v + k (d(T - V)/dx + F) = 2 M(y) v - p       (both at y, v)

so that v is the root of the residual, with C_ij and S_ij of terms.py at y, and the loads of loads.py,

    R_i = p_i + k loads_i(y, v) - sum_j [ C_ij v_j + k S_ij v_i v_j ]       [kg m^2/s]

Newton's method finds it with K = -dR/dv: v <- v + K^-1 R. It starts from the rate before the step, and stops when a
correction turns all links by less than the square root of the rounding error, k |dv|. As Newton's method converges
quadratically, only rounding is then left. v becomes NaN after MAX_CORRECTIONS of these, or after one that turns a link
by more than a radian and may lead to an unphysical root. The time step is then too long to be solved, and the motion
ends.

The adjoint follows from the implicit function theorem rather than from the iterations. Solve K^T lambda = adj_v; then
adj_p = lambda, and all other inputs get the adjoint of the terms of R for lambda, with v held fixed. Source: Marsden
and West, Discrete mechanics and variational integrators, Acta Numerica 2001, sections 1.6 (midpoint rule) and 3.2
(forcing).
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element

from . import linear
from .loads import adj_turn_joints, adj_weigh, jvp_turn_joints, jvp_weigh, turn_joints, weigh
from .momentum import INERTIA
from .newton import ITERATING, MAX_CORRECTIONS, correct, refuse_unconverged
from .pairs import adj_multiply, jvp_multiply, multiply
from .terms import adj_weight, couple


@ti.func
def find_residual(y, v, p, u, L, s, J, g, e, c, k):
    moved, turned = multiply(y, L, s, J, v, v)
    return p + k * (weigh(y, s, g, e) + turn_joints(v, u, c)) - moved - k * v * turned


@ti.func
def find_rate_jacobian(y, v, L, s, J, g, e, c, k):
    """Return K = -dR/dv, including the change of the midpoint with v."""
    n = ti.static(y.n)
    K = ti.Matrix.zero(float, n, n)
    for i in range(n):
        _, _, adj_weight_i = adj_weight(s[i], g, y[i] - e, -k)
        K_ii = J[i] + k * adj_weight_i + k * c[i]
        for j in range(i):
            C, S = couple(s[i], L[j], y[i] - y[j])
            bent, tilted = k * k * C * v[i] * v[j], k * S * (v[i] + v[j])
            K_ii += bent
            K[j, j] = K[j, j] + bent
            K[i, j] = C - bent + tilted
            K[j, i] = C - bent - tilted
        K[i, i] = K_ii
    for i in range(1, n):
        K[i, i - 1] = K[i, i - 1] - k * c[i]
        K[i - 1, i] = K[i - 1, i] - k * c[i]
        K[i - 1, i - 1] = K[i - 1, i - 1] + k * c[i]
    return K


@element
def midpoint_rate(guess, x, p, u, L, s, J, g, e, c, k, nan):
    v = guess
    status = ITERATING
    for _ in range(MAX_CORRECTIONS):
        if status == ITERATING:
            y = x + k * v
            R = find_residual(y, v, p, u, L, s, J, g, e, c, k)
            correction = linear.eliminate(find_rate_jacobian(y, v, L, s, J, g, e, c, k), R)
            v, status = correct(v, correction, k)
    return refuse_unconverged(v, status, nan)


@midpoint_rate.adjoint
def adj_midpoint_rate(guess, x, p, u, L, s, J, g, e, c, k, nan, v, adj_v):
    y = x + k * v
    lam = linear.eliminate(find_rate_jacobian(y, v, L, s, J, g, e, c, k).transpose(), adj_v)
    adj_x, adj_s, adj_g, adj_e = adj_weigh(y, s, g, e, k * lam)
    _, adj_u, adj_c = adj_turn_joints(v, u, c, k * lam)
    adj_x_pairs, adj_L, adj_s_pairs, adj_J, _, _ = adj_multiply(y, L, s, J, v, v, -lam, -k * lam * v)
    return 0 * guess, adj_x + adj_x_pairs, lam, adj_u, adj_L, adj_s + adj_s_pairs, adj_J, adj_g, adj_e, adj_c


@midpoint_rate.tangent
def jvp_midpoint_rate(guess, x, p, u, L, s, J, g, e, c, k, nan, v, dguess, dx, dp, du, dL, ds, dJ, dg, de, dc):
    y, still = x + k * v, 0 * v
    moved, turned = jvp_multiply(y, L, s, J, v, v, dx, dL, ds, dJ, still, still)
    df = jvp_weigh(y, s, g, e, dx, ds, dg, de) + jvp_turn_joints(v, u, c, still, du, dc)
    return linear.eliminate(find_rate_jacobian(y, v, L, s, J, g, e, c, k), dp + k * df - moved - k * v * turned)


MidpointRate = per_element(
    midpoint_rate,
    own={
        "guess": "rate",
        "x": "angle",
        "p": "momentum",
        "u": "torque",
        **INERTIA,
        "g": "gravity",
        "e": "tilt",
        "c": "damping",
    },
    constant={"k": "half_step", "nan": "nan"},
)
"""Midpoint rate [n] [rad/s] of a step, from angle and momentum [n] before it, under torques [n].

guess [n]: starting point of Newton's method; the result does not depend on it, and it gets no gradient.
"""
