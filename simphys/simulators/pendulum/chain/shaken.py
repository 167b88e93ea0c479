"""The midpoint rate of a step of the variational integrator while the pivot moves.

The equations are those of midpoint.py, without motors. The acceleration A of the pivot in the middle of the step acts
on the links as the load of shake.py there. The residual is

    R_i = p_i + k (loads_i(y, v) + shake_i(y, A)) - sum_j [ C_ij v_j + k S_ij v_i v_j ]       [kg m^2/s],   y = x + k v

and K = -dR/dv has the additional diagonal -k^2 d(shake_i)/dy_i = -k^2 s_i (A_x sin y_i - A_y cos y_i). The adjoint
follows from the implicit function theorem likewise: the load has the adjoint k lambda. Source: Marsden and West,
Discrete mechanics and variational integrators, Acta Numerica 2001, section 3.2 (forcing).
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element

from . import linear
from .loads import adj_turn_joints, adj_weigh, jvp_turn_joints, jvp_weigh
from .midpoint import find_rate_jacobian, find_residual
from .momentum import INERTIA
from .newton import ITERATING, MAX_CORRECTIONS, correct, refuse_unconverged
from .pairs import adj_multiply, jvp_multiply
from .shake import adj_shake, jvp_shake, shake


@ti.func
def find_shaken_jacobian(y, v, A, L, s, J, g, e, c, k):
    """Return K = -dR/dv, with the change of the shaking at the midpoint."""
    K = find_rate_jacobian(y, v, L, s, J, g, e, c, k)
    for i in range(ti.static(y.n)):
        K[i, i] = K[i, i] - k * k * s[i] * (A[0] * ti.sin(y[i]) - A[1] * ti.cos(y[i]))
    return K


@element
def shaken_midpoint_rate(guess, x, p, A, L, s, J, g, e, c, k, nan):
    v = guess
    status = ITERATING
    for _ in range(MAX_CORRECTIONS):
        if status == ITERATING:
            y = x + k * v
            R = find_residual(y, v, p, 0 * v, L, s, J, g, e, c, k) + k * shake(y, s, A)
            correction = linear.eliminate(find_shaken_jacobian(y, v, A, L, s, J, g, e, c, k), R)
            v, status = correct(v, correction, k)
    return refuse_unconverged(v, status, nan)


@shaken_midpoint_rate.adjoint
def adj_shaken_midpoint_rate(guess, x, p, A, L, s, J, g, e, c, k, nan, v, adj_v):
    y = x + k * v
    lam = linear.eliminate(find_shaken_jacobian(y, v, A, L, s, J, g, e, c, k).transpose(), adj_v)
    adj_x_weight, adj_s_weight, adj_g, adj_e = adj_weigh(y, s, g, e, k * lam)
    _, _, adj_c = adj_turn_joints(v, 0 * v, c, k * lam)
    adj_x_pairs, adj_L, adj_s_pairs, adj_J, _, _ = adj_multiply(y, L, s, J, v, v, -lam, -k * lam * v)
    adj_x_shaken, adj_s_shaken, adj_A = adj_shake(y, s, A, k * lam)
    adj_x, adj_s = adj_x_weight + adj_x_pairs + adj_x_shaken, adj_s_weight + adj_s_pairs + adj_s_shaken
    return 0 * guess, adj_x, lam, adj_A, adj_L, adj_s, adj_J, adj_g, adj_e, adj_c


@shaken_midpoint_rate.tangent
def jvp_shaken_midpoint_rate(guess, x, p, A, L, s, J, g, e, c, k, nan, v, dguess, dx, dp, dA, dL, ds, dJ, dg, de, dc):
    y, still = x + k * v, 0 * v
    moved, turned = jvp_multiply(y, L, s, J, v, v, dx, dL, ds, dJ, still, still)
    df = jvp_weigh(y, s, g, e, dx, ds, dg, de) + jvp_turn_joints(v, still, c, still, still, dc)
    df = df + jvp_shake(y, s, A, dx, ds, dA)
    return linear.eliminate(find_shaken_jacobian(y, v, A, L, s, J, g, e, c, k), dp + k * df - moved - k * v * turned)


ShakenMidpointRate = per_element(
    shaken_midpoint_rate,
    own={
        "guess": "rate",
        "x": "angle",
        "p": "momentum",
        "A": "acceleration",
        **INERTIA,
        "g": "gravity",
        "e": "tilt",
        "c": "damping",
    },
    constant={"k": "half_step", "nan": "nan"},
)
"""Midpoint rate [n] [rad/s] of a step, from angle and momentum [n] before it; A [2] [m/s^2] is that of the pivot.

guess [n]: starting point of Newton's method; the result does not depend on it, and it gets no gradient.
"""
