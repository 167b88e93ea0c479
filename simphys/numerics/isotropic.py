"""Derivatives of isotropic maps of F = U diag(s) V^T (see svd.py), given by their values g, h in the principal frame:

    G(F) = U diag(g(s)) V^T,   as a plastic law's new F;     H(F) = U diag(h(s)) U^T,   as a Kirchhoff stress

g, h are equivariant under permutations of s, with Jacobians J[i, j] = dg_i/ds_j. With dP = U^T dF V, and for each pair
i, j the divided difference k_ij = (g_i - g_j) / (s_i - s_j), or that of h, and m_ij = (g_i + g_j) / (s_i + s_j):

    dG = U dB V^T,   dB_ii = sum_j J_ij dP_jj,   dB_ij = k_ij (dP_ij + dP_ji) / 2 + m_ij (dP_ij - dP_ji) / 2
    dH = U dB U^T,   dB_ii = sum_j J_ij dP_jj,   dB_ij = k_ij (s_j dP_ij + s_i dP_ji) / (s_i + s_j)

The adjoint of G is the same with J^T, as the rest is symmetric. That of H is, with B = U^T adj_H U,

    adj_F = U adj_P V^T,   adj_P_ii = sum_j J_ji B_jj,   adj_P_ij = k_ij s_j (B_ij + B_ji) / (s_i + s_j)

For equal singular values, k_ij is its limit J_ii - J_ij. If they differ by less than TIE (relative), it is the mean of
that and of J_jj - J_ji, which is right to second order. For inverted F with s_i + s_j = 0, U and V are discontinuous.
As a denominator, s_i + s_j is therefore at least LEAST: derivatives stay finite, and are exact where it is larger.
Source: the derivatives of U and V, Papadopoulo and Lourakis 2000, Estimating the Jacobian of the singular value
decomposition, equation 7.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

TIE = {"f32": 5e-3, "f64": 6e-6}
"""Cube root of the rounding error, where the errors of the quotient and of the mean are equally large."""
LEAST = {"f32": 1e-3, "f64": 1e-6}
"""Smallest sum of two principal stretches that is used as a denominator."""


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Tangent and adjoint of G (jvp, adj) and H (jvp_left, adj_left): (U, s, V, values, J, dF or adjoint) -> result."""
    mat = ti.types.matrix(dim, dim, real)
    precision = "f32" if real is ti.f32 else "f64"
    tie, least = TIE[precision], LEAST[precision]
    pairs = tuple([(i, j) for i in range(dim) for j in range(i + 1, dim)])

    @ti.func
    def diagonal(J, P):
        result = mat(0.0)
        for i, j in ti.static(ti.ndrange(dim, dim)):
            result[i, i] += J[i, j] * P[j, j]
        return result

    @ti.func
    def difference(s, g, J, i: ti.template(), j: ti.template()):
        d = s[i] - s[j]
        k = 0.5 * (J[i, i] + J[j, j] - J[i, j] - J[j, i])
        if ti.abs(d) > tie * (ti.abs(s[i]) + ti.abs(s[j])):
            k = (g[i] - g[j]) / d
        return k

    @ti.func
    def jvp(U, s, V, g, J, dF):
        P = U.transpose() @ dF @ V
        B = diagonal(J, P)
        for i, j in ti.static(pairs):
            k, m = difference(s, g, J, i, j), (g[i] + g[j]) / ti.max(s[i] + s[j], least)
            even, odd = 0.5 * k * (P[i, j] + P[j, i]), 0.5 * m * (P[i, j] - P[j, i])
            B[i, j], B[j, i] = even + odd, even - odd
        return U @ B @ V.transpose()

    @ti.func
    def adj(U, s, V, g, J, adj_G):
        return jvp(U, s, V, g, J.transpose(), adj_G)

    @ti.func
    def jvp_left(U, s, V, h, J, dF):
        P = U.transpose() @ dF @ V
        B = diagonal(J, P)
        for i, j in ti.static(pairs):
            k = difference(s, h, J, i, j) / ti.max(s[i] + s[j], least)
            b = k * (s[j] * P[i, j] + s[i] * P[j, i])
            B[i, j], B[j, i] = b, b
        return U @ B @ U.transpose()

    @ti.func
    def adj_left(U, s, V, h, J, adj_H):
        B = U.transpose() @ adj_H @ U
        P = diagonal(J.transpose(), B)
        for i, j in ti.static(pairs):
            b = difference(s, h, J, i, j) / ti.max(s[i] + s[j], least) * (B[i, j] + B[j, i])
            P[i, j], P[j, i] = b * s[j], b * s[i]
        return U @ P @ V.transpose()

    return SimpleNamespace(adj=adj, jvp=jvp, adj_left=adj_left, jvp_left=jvp_left)
