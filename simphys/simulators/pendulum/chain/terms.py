"""The terms of a chain's equations of motion, as element functions.

With angles x_i, rates v_i and d_ij = x_i - x_j, the Lagrangian is

    T - V = 1/2 sum_ij P_ij cos(d_ij) v_i v_j + g sum_i s_i cos(x_i - e)         [J]
    P_ij = mu_max(i,j) L_i L_j,   s_i = mu_i L_i,   mu_i = sum_{k >= i} m_k

L length [m], m mass [kg], g gravity [m/s^2], e tilt [rad]. Its terms in the equation of link i are

    inertia(P, d, w)             = P cos(d) w        an element of M(x) w, where M_ij = P_ij cos(d_ij)
    centrifugal(P, d, w_i, w_j)  = P sin(d) w_i w_j  a term of -d(T - V)/dx_i; with w_j^2, of M dv/dt
    weight(s, g, x)              = -s g sin(x)       a term of d(T - V)/dx_i             [N m]
    joint(u, c, turn)            = u - c turn        motor and damping of joint i, which turns at v_i - v_{i-1}

u motor torque [N m], c damping [N m s/rad]. Joint i exerts its torque on link i, and the opposite one on link i - 1.
Each adj_f takes the adjoint of the result as its last argument, and returns those of all arguments. Source: Goldstein,
Poole, Safko, Classical Mechanics, ch. 1 and 2, for point masses at sum_{k <= i} L_k (sin x_k, -cos x_k).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The terms, their adjoints and tangents."""

    @ti.func
    def coupling(mu: real, a: real, b: real) -> real:
        return mu * a * b

    @ti.func
    def adj_coupling(mu: real, a: real, b: real, g: real):
        return a * b * g, mu * b * g, mu * a * g

    @ti.func
    def jvp_coupling(mu: real, a: real, b: real, dmu: real, da: real, db: real) -> real:
        return dmu * a * b + mu * (da * b + a * db)

    @ti.func
    def inertia(P: real, d: real, w: real) -> real:
        return P * ti.cos(d) * w

    @ti.func
    def adj_inertia(P: real, d: real, w: real, g: real):
        c = ti.cos(d)
        return c * w * g, -P * ti.sin(d) * w * g, P * c * g

    @ti.func
    def jvp_inertia(P: real, d: real, w: real, dP: real, dd: real, dw: real) -> real:
        c = ti.cos(d)
        return dP * c * w - P * ti.sin(d) * dd * w + P * c * dw

    @ti.func
    def centrifugal(P: real, d: real, wi: real, wj: real) -> real:
        return P * ti.sin(d) * wi * wj

    @ti.func
    def adj_centrifugal(P: real, d: real, wi: real, wj: real, g: real):
        s = ti.sin(d)
        return s * wi * wj * g, P * ti.cos(d) * wi * wj * g, P * s * wj * g, P * s * wi * g

    @ti.func
    def jvp_centrifugal(P: real, d: real, wi: real, wj: real, dP: real, dd: real, dwi: real, dwj: real) -> real:
        s = ti.sin(d)
        return dP * s * wi * wj + P * ti.cos(d) * dd * wi * wj + P * s * (dwi * wj + wi * dwj)

    @ti.func
    def weight(s: real, g: real, x: real) -> real:
        return -s * g * ti.sin(x)

    @ti.func
    def adj_weight(s: real, g: real, x: real, adj: real):
        sine = ti.sin(x)
        return -g * sine * adj, -s * sine * adj, -s * g * ti.cos(x) * adj

    @ti.func
    def jvp_weight(s: real, g: real, x: real, ds: real, dg: real, dx: real) -> real:
        return -(ds * g + s * dg) * ti.sin(x) - s * g * ti.cos(x) * dx

    @ti.func
    def joint(u: real, c: real, turn: real) -> real:
        return u - c * turn

    @ti.func
    def adj_joint(c: real, turn: real, g: real):
        """Adjoints of c and turn; that of u is g."""
        return -turn * g, -c * g

    @ti.func
    def jvp_joint(c: real, turn: real, du: real, dc: real, dturn: real) -> real:
        return du - dc * turn - c * dturn

    return SimpleNamespace(
        coupling=coupling, adj_coupling=adj_coupling, jvp_coupling=jvp_coupling,
        inertia=inertia, adj_inertia=adj_inertia, jvp_inertia=jvp_inertia,
        centrifugal=centrifugal, adj_centrifugal=adj_centrifugal, jvp_centrifugal=jvp_centrifugal,
        weight=weight, adj_weight=adj_weight, jvp_weight=jvp_weight,
        joint=joint, adj_joint=adj_joint, jvp_joint=jvp_joint,
    )  # fmt: skip
