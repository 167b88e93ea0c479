"""Fixed corotated elasticity. With F = R S (polar decomposition) and J = det F, energy density and stress are

    psi = mu |F - R|^2 + lambda/2 (J - 1)^2                                 [J/m^3]
    tau = P F^T = 2 mu (F - R) F^T + lambda (J - 1) J I                     [Pa]

mu, lambda Lame's constants [Pa]. Adjoint, for G = adj_tau and D = F - R:

    adj_D = 2 mu G F     adj_R = -adj_D     adj_mu = 2 G : D F^T     adj_lambda = (J - 1) J tr G
    adj_F = 2 mu G^T D + adj_D + (adjoint of R) + lambda (2 J - 1) tr(G) cof F

It is also defined for inverted F; where there is no unique nearest rotation, the convention of numerics/polar.py holds.
Source: Stomakhin, Howes, Schroeder and Teran 2012, Energetically consistent invertible elasticity.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import polar
from simphys.numerics.cofactor import cofactor

from .lame import COEFFICIENTS, PARAMETERS, adj_coefficients, coefficients, jvp_coefficients

__all__ = ["COEFFICIENTS", "PARAMETERS", "adj_coefficients", "coefficients", "functions", "jvp_coefficients"]

HIDDEN, REST = False, 0.0


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The response of a particle, its adjoint and its tangent; see laws/__init__.py."""
    p = polar.functions(real, dim)

    @ti.func
    def respond(F, q, c):
        mu, la = c[0], c[1]
        J = F.determinant()
        tau = (2 * mu) * (F - p.rotation(F)) @ F.transpose()
        for i in ti.static(range(dim)):
            tau[i, i] += la * (J - 1) * J
        return F, q, tau

    @ti.func
    def adj(F, q, c, adj_F_new, adj_q_new, adj_tau):
        mu, la = c[0], c[1]
        J, R = F.determinant(), p.rotation(F)
        D, trace = F - R, adj_tau.trace()
        GF = adj_tau @ F  # adj_D / (2 mu)
        adj_F = adj_F_new + (2 * mu) * (adj_tau.transpose() @ D + GF - p.derivative(F, R, GF))
        adj_F += (la * (2 * J - 1) * trace) * cofactor(F)
        adj_c = c
        for k in ti.static(range(2, c.n)):
            adj_c[k] = 0.0
        adj_c[0] = 2 * (GF * D).sum()
        adj_c[1] = (J - 1) * J * trace
        return adj_F, adj_q_new, adj_c

    @ti.func
    def jvp(F, q, c, dF, dq, dc):
        mu, la = c[0], c[1]
        J, R = F.determinant(), p.rotation(F)
        D, dD, dJ = F - R, dF - p.derivative(F, R, dF), (cofactor(F) * dF).sum()
        dtau = 2 * ((dc[0] * D + mu * dD) @ F.transpose() + mu * D @ dF.transpose())
        for i in ti.static(range(dim)):
            dtau[i, i] += dc[1] * (J - 1) * J + la * (2 * J - 1) * dJ
        return dF, dq, dtau

    return SimpleNamespace(respond=respond, adj=adj, jvp=jvp)
