"""Neo-Hookean elasticity. With J = det F, energy density and stress are

    psi = mu/2 (|F|^2 - dim) - mu log J + lambda/2 (log J)^2                [J/m^3]
    tau = P F^T = mu (F F^T - I) + lambda log(J) I                          [Pa]

mu, lambda Lame's constants [Pa]. Adjoint, for G = adj_tau:

    adj_F = mu (G + G^T) F + lambda tr(G) / J cof F     adj_mu = G : (F F^T - I)     adj_lambda = log(J) tr G

Convention for F inverted or nearly so, J <= LEAST_J, which no finite energy reaches: log J is held at log LEAST_J, with
zero derivative. Source: Bonet and Wood 2008, Nonlinear Continuum Mechanics for Finite Element Analysis, section 6.4.3.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.cofactor import cofactor

from .lame import COEFFICIENTS, PARAMETERS, adj_coefficients, coefficients, jvp_coefficients

__all__ = ["COEFFICIENTS", "PARAMETERS", "adj_coefficients", "coefficients", "functions", "jvp_coefficients"]

HIDDEN, REST = False, 0.0
LEAST_J = 1e-6


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The response of a particle, its adjoint and its tangent; see laws/__init__.py."""

    @ti.func
    def log_J(F):
        return ti.log(ti.max(F.determinant(), LEAST_J))

    @ti.func
    def inverse_J(F):
        """Return the derivative of log J by J."""
        J = F.determinant()
        return 1 / J if J > LEAST_J else 0.0

    @ti.func
    def respond(F, q, c):
        mu, la = c[0], c[1]
        tau = mu * (F @ F.transpose())
        pressure = la * log_J(F) - mu
        for i in ti.static(range(dim)):
            tau[i, i] += pressure
        return F, q, tau

    @ti.func
    def adj(F, q, c, adj_F_new, adj_q_new, adj_tau):
        mu, la = c[0], c[1]
        trace = adj_tau.trace()
        GF = adj_tau @ F
        adj_F = adj_F_new + mu * (GF + adj_tau.transpose() @ F) + (la * trace * inverse_J(F)) * cofactor(F)
        adj_c = c
        for k in ti.static(range(2, c.n)):
            adj_c[k] = 0.0
        adj_c[0] = (GF * F).sum() - trace
        adj_c[1] = log_J(F) * trace
        return adj_F, adj_q_new, adj_c

    @ti.func
    def jvp(F, q, c, dF, dq, dc):
        mu, la = c[0], c[1]
        dFF = dF @ F.transpose()
        dtau = dc[0] * (F @ F.transpose()) + mu * (dFF + dFF.transpose())
        change = dc[1] * log_J(F) - dc[0] + la * inverse_J(F) * (cofactor(F) * dF).sum()
        for i in ti.static(range(dim)):
            dtau[i, i] += change
        return dF, dq, dtau

    return SimpleNamespace(respond=respond, adj=adj, jvp=jvp)
