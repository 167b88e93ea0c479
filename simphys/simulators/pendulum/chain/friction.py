"""Dry friction of the joints, and drag of the air on the links.

    f_i = t_i - t_{i+1} - a_i |v_i| v_i,   t_i = -(2 / pi) F_i atan((v_i - v_{i-1}) / w_i),   v_{-1} = t_n = 0     [N m]

v rate [rad/s], F dry friction [N m], w transition rate [rad/s], a drag [N m s^2/rad^2]; numerics/dry_friction.py tells
about t. The air holds a link as if its upper joint were at rest. Adjoint, for y = adj_f: with z_i = y_i - y_{i-1}, the
adjoint of t_i, from which those of F, w and of the turn v_i - v_{i-1} follow,

    adj_a_i = -|v_i| v_i y_i     adj_v_i = adj_turn_i - adj_turn_{i+1} - 2 a_i |v_i| y_i

`braked_rate` is the rate v after the friction of a time k, which begins with momenta p: M(x) v = p + k f(v). Newton's
method finds it as in midpoint.py, from M(x) v = p on, and its adjoint follows likewise from the implicit function
theorem for R = p + k f(v) - M(x) v = 0, with K = -dR/dv.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.dry_friction import adj_rub, rub
from simphys.numerics.element import element
from simphys.numerics.forward_mode import tangent_of
from simphys.substep import per_element

from . import linear
from .loads import take_previous
from .momentum import INERTIA
from .newton import ITERATING, MAX_CORRECTIONS, correct, refuse_unconverged
from .pairs import adj_multiply, assemble, jvp_multiply


@element
def slow_down(v, F, w, a):
    f = -a * ti.abs(v) * v
    for i in range(ti.static(v.n)):
        t = rub(F[i], w[i], v[i] - take_previous(v, i))
        f[i] = f[i] + t
        if i > 0:
            f[ti.max(i - 1, 0)] = f[ti.max(i - 1, 0)] - t
    return f


@slow_down.adjoint
def adj_slow_down(v, F, w, a, y):
    adj_v, adj_F, adj_w = -2 * a * ti.abs(v) * y, 0 * v, 0 * v
    for i in range(ti.static(v.n)):
        z = y[i] - take_previous(y, i)
        adj_F_i, adj_w_i, adj_turn = adj_rub(F[i], w[i], v[i] - take_previous(v, i), z)
        adj_F[i] = adj_F_i
        adj_w[i] = adj_w_i
        adj_v[i] = adj_v[i] + adj_turn
        if i > 0:
            adj_v[ti.max(i - 1, 0)] = adj_v[ti.max(i - 1, 0)] - adj_turn
    return adj_v, adj_F, adj_w, -ti.abs(v) * v * y


jvp_slow_down = tangent_of(slow_down, "v", "F", "w", "a")


@ti.func
def find_brake_jacobian(x, v, L, s, J, F, w, a, k):
    """Return K = -dR/dv, a symmetric matrix, and M(x) v."""
    n = ti.static(v.n)
    K, _ = assemble(x, L, s, J, v)
    for i in range(n):
        for j in range(i):
            K[j, i] = K[i, j]
    moved = K @ v
    for i in range(n):
        _, _, slope = adj_rub(F[i], w[i], v[i] - take_previous(v, i), -k)
        K[i, i] = K[i, i] + slope + 2 * k * a[i] * ti.abs(v[i])
        if i > 0:
            j = ti.max(i - 1, 0)
            K[j, j] = K[j, j] + slope
            K[i, j] = K[i, j] - slope
            K[j, i] = K[j, i] - slope
    return K, moved


@element
def braked_rate(x, p, L, s, J, F, w, a, k, nan):
    M, _turned = assemble(x, L, s, J, p)
    v = linear.solve(linear.factor(M), p)
    status = ITERATING
    for _ in range(MAX_CORRECTIONS):
        if status == ITERATING:
            K, moved = find_brake_jacobian(x, v, L, s, J, F, w, a, k)
            correction = linear.eliminate(K, p + k * slow_down(v, F, w, a) - moved)
            v, status = correct(v, correction, k)
    return refuse_unconverged(v, status, nan)


@braked_rate.adjoint
def adj_braked_rate(x, p, L, s, J, F, w, a, k, nan, v, adj_v):
    K, _ = find_brake_jacobian(x, v, L, s, J, F, w, a, k)
    y = linear.eliminate(K, adj_v)
    adj_x, adj_L, adj_s, adj_J, _, _ = adj_multiply(x, L, s, J, v, v, -y, 0 * y)
    _, adj_F, adj_w, adj_a = adj_slow_down(v, F, w, a, k * y)
    return adj_x, y, adj_L, adj_s, adj_J, adj_F, adj_w, adj_a


@braked_rate.tangent
def jvp_braked_rate(x, p, L, s, J, F, w, a, k, nan, v, dx, dp, dL, ds, dJ, dF, dw, da):
    still = 0 * v
    K, _ = find_brake_jacobian(x, v, L, s, J, F, w, a, k)
    moved, _ = jvp_multiply(x, L, s, J, v, v, dx, dL, ds, dJ, still, still)
    return linear.eliminate(K, dp + k * jvp_slow_down(v, F, w, a, still, dF, dw, da) - moved)


FRICTION = {"F": "dry_friction", "w": "transition_rate", "a": "drag"}

SlowDown = per_element(slow_down, own={"v": "rate", **FRICTION}, results={"friction_load": "v"})
"""Loads of dry friction and drag on the links [n] [N m], at rates [n]."""

BrakedRate = per_element(
    braked_rate,
    own={"x": "angle", "p": "momentum", **INERTIA, **FRICTION},
    constant={"k": "half_step", "nan": "nan"},
)
"""Rates [n] [rad/s] of momenta [n] that friction has slowed down for a time, at angle [n]."""
