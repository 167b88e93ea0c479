"""The terms of a chain's equations of motion, as element functions.

With angles x_i, rates v_i and d_ij = x_i - x_j, the Lagrangian is

    T - V = 1/2 sum_ij C_ij v_i v_j + g sum_i s_i cos(x_i - e)                  [J]
    C_ii = J_i,   C_ij = s_max(i,j) L_min(i,j) cos(d_ij)                        (i != j)

L length [m], s and J first and second moment of moments.py [kg m], [kg m^2], g gravity [m/s^2], e tilt [rad]. The mass
matrix is M(x) = C. With S_ij = s_i L_j sin(d_ij) for i > j and S_ji = -S_ij, S_ij v_i v_j is a term of -d(T - V)/dx_i,
and S_ij v_j^2 of M dv/dt, in the equation of link i. Besides,

    weight(s, g, x)     = -s g sin(x)       a term of d(T - V)/dx_i             [N m]
    joint(u, c, turn)   = u - c turn        motor and damping of joint i, which turns at v_i - v_{i-1}

u motor torque [N m], c damping [N m s/rad]. Joint i exerts its torque on link i, and the opposite one on link i - 1.
Adjoint of (C, S) for a pair with P = s L: adj_P = cos(d) adj_C + sin(d) adj_S and adj_d = C adj_S - S adj_C. Source:
Goldstein, Poole, Safko, Classical Mechanics, ch. 1, 2 and 5, for links with centres of mass on the lines through their
joints.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element


@element
def couple(s, b, d):
    P = s * b
    return P * ti.cos(d), P * ti.sin(d)


@couple.adjoint
def adj_couple(s, b, d, adj_C, adj_S):
    cosine, sine = ti.cos(d), ti.sin(d)
    adj_P = cosine * adj_C + sine * adj_S
    return b * adj_P, s * adj_P, s * b * (cosine * adj_S - sine * adj_C)


@element
def weight(s, g, x):
    return -s * g * ti.sin(x)


@weight.adjoint
def adj_weight(s, g, x, y):
    sine = ti.sin(x)
    return -g * sine * y, -s * sine * y, -s * g * ti.cos(x) * y


@element
def joint(u, c, turn):
    return u - c * turn


@joint.adjoint
def adj_joint(u, c, turn, y):
    return y, -turn * y, -c * y
