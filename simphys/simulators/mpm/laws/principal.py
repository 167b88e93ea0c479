"""Plastic laws in matrix form, derived from laws written for principal stretches.

For the trial deformation F = U diag(s) V^T, a law computes g, q' and h from s, the hidden variable q and the
coefficients c:

    F' = U diag(g) V^T,   tau = U diag(h) U^T                               [Pa]

The adjoint of F is that of isotropic maps (numerics/isotropic.py), with the law's Jacobians of g and h by s, plus
U diag(adj_q' dq'/ds) V^T. The adjoints of q and c are the law's own, for adj_g, the diagonal of U^T adj_F' V, and
adj_h, the diagonal of U^T adj_tau U. The tangent is analogous.
"""

from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import isotropic, svd


@ti.func
def zero(c):
    """Return a zero vector like c."""
    result = c
    for k in ti.static(range(c.n)):
        result[k] = 0.0
    return result


def functions(real: Any, dim: int, law: SimpleNamespace) -> SimpleNamespace:
    """The response of a particle, its adjoint and its tangent; see laws/__init__.py.

    `law` has respond(s, q, c) -> g, q', h; jacobian(s, q, c) -> dg/ds, dq'/ds, dh/ds (row i, column j: dg_i/ds_j);
    adj(s, q, c, adj_g, adj_q', adj_h) -> adj_q, adj_c; jvp(s, q, c, dq, dc) -> dg, dq', dh at constant s.
    """
    vec = ti.types.vector(dim, real)
    decompose, maps = svd.functions(real, dim).svd, isotropic.functions(real, dim)

    @ti.func
    def respond(F, q, c):
        U, s, V = decompose(F)
        g, q_new, h = law.respond(s, q, c)
        return F + from_principal(U, g - s, V), q_new, from_principal(U, h, U)  # in this form F' = F exactly if g = s

    @ti.func
    def adj(F, q, c, adj_F_new, adj_q_new, adj_tau):
        U, s, V = decompose(F)
        g, _, h = law.respond(s, q, c)
        g_s, q_s, h_s = law.jacobian(s, q, c)
        adj_F = maps.adj(U, s, V, g, g_s, adj_F_new) + maps.adj_left(U, s, V, h, h_s, adj_tau)
        adj_F += from_principal(U, adj_q_new * q_s, V)
        adj_q, adj_c = law.adj(s, q, c, diagonal(U, adj_F_new, V), adj_q_new, diagonal(U, adj_tau, U))
        return adj_F, adj_q, adj_c

    @ti.func
    def jvp(F, q, c, dF, dq, dc):
        U, s, V = decompose(F)
        g, _, h = law.respond(s, q, c)
        g_s, q_s, h_s = law.jacobian(s, q, c)
        dg, dq_new, dh = law.jvp(s, q, c, dq, dc)
        dF_new = maps.jvp(U, s, V, g, g_s, dF) + from_principal(U, dg, V)
        dtau = maps.jvp_left(U, s, V, h, h_s, dF) + from_principal(U, dh, U)
        return dF_new, dq_new + q_s.dot(diagonal(U, dF, V)), dtau

    @ti.func
    def from_principal(U, x, V):
        """Return U diag(x) V^T."""
        Ux = U
        for i, j in ti.static(ti.ndrange(dim, dim)):
            Ux[i, j] = U[i, j] * x[j]
        return Ux @ V.transpose()

    @ti.func
    def diagonal(U, A, V):
        """Return the diagonal of U^T A V."""
        P = U.transpose() @ A @ V
        return vec([P[i, i] for i in ti.static(range(dim))])

    return SimpleNamespace(respond=respond, adj=adj, jvp=jvp)
