"""Moments of the links about their upper joints, each with all links beyond it as point masses at its end:

    s_i = m_i r_i + M_i L_i                                                 [kg m]
    J_i = I0_i + m_i r_i^2 + M_i L_i^2,   r_i = q_i L_i,   M_i = sum_{k > i} m_k       [kg m^2]

L length [m], m mass [kg], q centre of mass in parts of the length from the upper joint [1], I0 inertia about the centre
of mass [kg m^2]. A point mass at the end has q = 1 and I0 = 0. Adjoint, with y = adj_s and z = adj_J:

    adj_I0_i = z_i     adj_r_i = m_i (y_i + 2 r_i z_i)     adj_q_i = L_i adj_r_i     adj_M_i = L_i (y_i + L_i z_i)
    adj_L_i = q_i adj_r_i + M_i (y_i + 2 L_i z_i)         adj_m_k = r_k (y_k + r_k z_k) + sum_{i < k} adj_M_i

Source: terms.py, with the parallel axis theorem.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element


@element
def carry(m):
    M, total = m, 0 * m[0]
    for back in range(ti.static(m.n)):
        i = m.n - 1 - back
        M[i] = total
        total += m[i]
    return M


@carry.adjoint
def adj_carry(m, adj_M):
    adj_m, total = adj_M, 0 * m[0]
    for i in range(ti.static(m.n)):
        adj_m[i] = total
        total += adj_M[i]
    return adj_m


@element
def moments(L, m, q, I0):
    r, M = q * L, carry(m)
    return m * r + M * L, I0 + m * r * r + M * L * L


@moments.adjoint
def adj_moments(L, m, q, I0, y, z):
    r, M = q * L, carry(m)
    adj_r = m * (y + 2 * r * z)
    adj_m = r * (y + r * z) + adj_carry(m, L * (y + L * z))
    return q * adj_r + M * (y + 2 * L * z), adj_m, L * adj_r, z


Moments = per_element(
    moments,
    own={"L": "length", "m": "mass", "q": "centre", "I0": "inertia"},
    results={"first_moment": "L", "second_moment": "L"},
)
"""First [kg m] and second moment [kg m^2] of the links [n] about their upper joints."""
