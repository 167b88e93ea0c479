"""The terms of a chain's equations of motion, as element functions.

With angles x_i, rates v_i and d_ij = x_i - x_j, the Lagrangian is

    T - V = 1/2 sum_ij C_ij v_i v_j + g sum_i s_i cos(x_i - e)                  [J]
    C_ij = P_ij cos(d_ij),   P_ij = mu_max(i,j) L_i L_j,   s_i = mu_i L_i,   mu_i = sum_{k >= i} m_k

L length [m], m mass [kg], g gravity [m/s^2], e tilt [rad]. The mass matrix is M(x) = C. With S_ij = P_ij sin(d_ij) and
S_ji = -S_ij, S_ij v_i v_j is a term of -d(T - V)/dx_i, and S_ij v_j^2 of M dv/dt, in the equation of link i. Besides,

    weight(s, g, x)     = -s g sin(x)       a term of d(T - V)/dx_i             [N m]
    joint(u, c, turn)   = u - c turn        motor and damping of joint i, which turns at v_i - v_{i-1}

u motor torque [N m], c damping [N m s/rad]. Joint i exerts its torque on link i, and the opposite one on link i - 1.
Adjoint of (C, S) for a pair: adj_P = cos(d) adj_C + sin(d) adj_S and adj_d = C adj_S - S adj_C. That of mu_i is
adj_m_k = sum_{i <= k} adj_mu_i. Source: Goldstein, Poole, Safko, Classical Mechanics, ch. 1 and 2, for point masses at
sum_{k <= i} L_k (sin x_k, -cos x_k).
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element


@element
def couple(mu, a, b, d):
    P = mu * a * b
    return P * ti.cos(d), P * ti.sin(d)


@couple.adjoint
def adj_couple(mu, a, b, d, adj_C, adj_S):
    c, s = ti.cos(d), ti.sin(d)
    adj_P = c * adj_C + s * adj_S
    return a * b * adj_P, mu * b * adj_P, mu * a * adj_P, mu * a * b * (c * adj_S - s * adj_C)


@couple.tangent
def jvp_couple(mu, a, b, d, dmu, da, db, dd):
    c, s = ti.cos(d), ti.sin(d)
    P, dP = mu * a * b, dmu * a * b + mu * (da * b + a * db)
    return dP * c - P * s * dd, dP * s + P * c * dd


@element
def weight(s, g, x):
    return -s * g * ti.sin(x)


@weight.adjoint
def adj_weight(s, g, x, y):
    sine = ti.sin(x)
    return -g * sine * y, -s * sine * y, -s * g * ti.cos(x) * y


@weight.tangent
def jvp_weight(s, g, x, ds, dg, dx):
    return -(ds * g + s * dg) * ti.sin(x) - s * g * ti.cos(x) * dx


@element
def joint(u, c, turn):
    return u - c * turn


@joint.adjoint
def adj_joint(u, c, turn, y):
    return y, -turn * y, -c * y


@joint.tangent
def jvp_joint(u, c, turn, du, dc, dturn):
    return du - dc * turn - c * dturn


@element
def carry(m):
    mu, total = m, 0 * m[0]
    for back in range(ti.static(m.n)):
        i = m.n - 1 - back
        total += m[i]
        mu[i] = total
    return mu


@carry.adjoint
def adj_carry(m, adj_mu):
    adj_m, total = adj_mu, 0 * m[0]
    for i in range(ti.static(m.n)):
        total += adj_mu[i]
        adj_m[i] = total
    return adj_m


@carry.tangent
def jvp_carry(m, dm):
    return carry(dm)
