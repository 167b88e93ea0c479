"""Hencky's elasticity: isotropic, linear in the logarithmic strain.

With F = U diag(s) V^T and the principal strains e = log s, the Kirchhoff stress is

    tau = U diag(h) U^T,   h = 2 mu e + lambda tr(e)                        [Pa]

mu, lambda Lame's constants [Pa]. With this elasticity a plastic law is a return mapping of strains: it gives e' from e
and a hidden variable q. Then F' = U diag(g) V^T with g = exp(e'), and h is a function of e'. Adjoint, for G = adj_g and
H = adj_h, followed by the adjoint of the mapping:

    adj_e' = g G + 2 mu H + lambda tr(H)     adj_mu += 2 e'.H     adj_lambda += tr(e') tr(H)

The derivatives by the stretches, with E_ij = de'_i/de_j of the mapping, are

    dg_i/ds_j = g_i E_ij / s_j               dh_i/ds_j = (2 mu E_ij + lambda sum_k E_kj) / s_j

Convention for crushed or inverted material: a stretch below STRETCH_FLOOR counts as STRETCH_FLOOR, also in F', which is
then no longer inverted. The derivative by the stretch is 0 below the floor, and that of the logarithm at the floor.
Source: Klar et al. 2016, Drucker-Prager elastoplasticity for sand animation (St. Venant-Kirchhoff with Hencky strain).
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

from . import principal
from .lame import COEFFICIENTS, PARAMETERS, adj_coefficients, coefficients, jvp_coefficients

__all__ = ["COEFFICIENTS", "PARAMETERS", "adj_coefficients", "coefficients", "functions", "jvp_coefficients", "plastic"]

HIDDEN, REST = False, 0.0

STRETCH_FLOOR = 0.01
"""Least principal stretch."""


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The response of a particle, its adjoint and its tangent; see laws/__init__.py."""
    mat, vec = ti.types.matrix(dim, dim, real), ti.types.vector(dim, real)

    @ti.func
    def return_map(e, q, c):
        return e, q

    @ti.func
    def adj_return_map(e, q, c, adj_e_new, adj_q_new):
        return adj_q_new, principal.zero(c)

    @ti.func
    def jvp_return_map(e, q, c, dq, dc):
        return vec(0.0), dq

    @ti.func
    def jacobian(e, q, c):
        e_e = mat(0.0)
        for i in ti.static(range(dim)):
            e_e[i, i] = 1.0
        return e_e, vec(0.0)

    return plastic(
        real, dim, SimpleNamespace(return_map=return_map, jacobian=jacobian, adj=adj_return_map, jvp=jvp_return_map)
    )


def plastic(real: Any, dim: int, mapping: SimpleNamespace) -> SimpleNamespace:
    """The `functions` of a plastic law with this elasticity, whose coefficients c begin with mu and lambda.

    The return `mapping` has returned(e, q, c) -> e', q'; jacobian(e, q, c) -> de'/de, dq'/de;
    adj(e, q, c, adj_e', adj_q') -> adj_q, adj_c; jvp(e, q, c, dq, dc) -> de', dq' at constant e.
    """
    mat, vec = ti.types.matrix(dim, dim, real), ti.types.vector(dim, real)

    @ti.func
    def strain(s):
        return ti.log(ti.max(s, STRETCH_FLOOR))

    @ti.func
    def stretches(s, q, c):
        e = strain(s)
        e_new, q_new = mapping.return_map(e, q, c)
        g = ti.max(s, STRETCH_FLOOR) * ti.exp(e_new - e)  # in this form g = s exactly if e' = e
        return g, q_new, 2 * c[0] * e_new + c[1] * e_new.sum()

    @ti.func
    def adj_stretches(s, q, c, adj_g, adj_q_new, adj_h):
        e = strain(s)
        e_new, _ = mapping.return_map(e, q, c)
        trace = adj_h.sum()
        adj_e_new = ti.exp(e_new) * adj_g + 2 * c[0] * adj_h + c[1] * trace
        adj_q, adj_c = mapping.adj(e, q, c, adj_e_new, adj_q_new)
        adj_c[0] += 2 * e_new.dot(adj_h)
        adj_c[1] += e_new.sum() * trace
        return adj_q, adj_c

    @ti.func
    def jvp_stretches(s, q, c, dq, dc):
        e = strain(s)
        e_new, _ = mapping.return_map(e, q, c)
        de, dq_new = mapping.jvp(e, q, c, dq, dc)
        dh = 2 * (c[0] * de + dc[0] * e_new) + c[1] * de.sum() + dc[1] * e_new.sum()
        return ti.exp(e_new) * de, dq_new, dh

    @ti.func
    def jacobian(s, q, c):
        e = strain(s)
        e_new, _ = mapping.return_map(e, q, c)
        e_e, q_e = mapping.jacobian(e, q, c)
        g, g_s, q_s, h_s = ti.exp(e_new), mat(0.0), vec(0.0), mat(0.0)
        for j in ti.static(range(dim)):
            de_ds = 0.0 if s[j] < STRETCH_FLOOR else 1 / s[j]
            q_s[j] = q_e[j] * de_ds
            trace = real(0.0)
            for i in ti.static(range(dim)):
                trace += e_e[i, j]
            for i in ti.static(range(dim)):
                g_s[i, j] = g[i] * e_e[i, j] * de_ds
                h_s[i, j] = (2 * c[0] * e_e[i, j] + c[1] * trace) * de_ds
        return g_s, q_s, h_s

    law = SimpleNamespace(respond=stretches, jacobian=jacobian, adj=adj_stretches, jvp=jvp_stretches)
    return principal.functions(real, dim, law)
