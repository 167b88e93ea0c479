"""Snow: elastic up to a critical stretch and compression of the principal axes; deformation beyond hardens or softens.

With F = U diag(s) V^T, the elastic stretches g and the hidden variable q, which is the plastic volume ratio J_p,

    g_i = min(max(s_i, 1 - theta_c), 1 + theta_s)     q' = q prod(s)/prod(g)     F' = U diag(g) V^T
    tau = U diag(h) U^T,   h_i = z (2 mu (g_i - 1) g_i + lambda (J - 1) J)  [Pa],   z = exp(xi (1 - q')),   J = prod(g)

mu, lambda Lame's constants [Pa] of undeformed snow, xi hardening, theta_c, theta_s critical compression and stretch.
det(F) q = det(F') q'. Adjoint, for G = adj_g, H = adj_h and w = H.h:

    adj_mu = 2 z H.(g - 1) g     adj_lambda = z (J - 1) J tr(H)     adj_xi = (1 - q') w     p = adj_q' - xi w
    a_i = G_i + z (2 mu (2 g_i - 1) H_i + lambda (2 J - 1) tr(H) J/g_i) - p q'/g_i     adj_q = p prod(s)/prod(g)

where p is the total adjoint of q', and a that of g. adj_theta_c is the sum of -a_i over the axes below their range,
adj_theta_s the sum of a_i over those above. The derivatives by the stretches, with f_j = 1 for an axis within its
range, else 0, are

    dg_i/ds_j = delta_ij f_j     dq'/ds_j = (1 - f_j) q'/s_j
    dh_i/ds_j = f_j z (2 mu (2 g_i - 1) delta_ij + lambda (2 J - 1) J/g_j) - xi h_i dq'/ds_j

Convention: at a bound the derivative is elastic. A stretch below STRETCH_FLOOR of hencky.py counts as STRETCH_FLOOR, so
that q' > 0 and z < exp(xi); the derivative by such a stretch is 0.
Source: Stomakhin et al. 2013, A material point method for snow simulation, sections 5 and 7.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from . import lame, principal
from .hencky import STRETCH_FLOOR

PARAMETERS = (*lame.PARAMETERS, "hardening", "critical_compression", "critical_stretch")
COEFFICIENTS = (*lame.COEFFICIENTS, "hardening", "critical_compression", "critical_stretch")
HIDDEN, REST = True, 1.0


def coefficients(E: Array, nu: Array, *others: Array) -> tuple[Array, ...]:
    """Compute mu and lambda [Pa]; the other parameters are coefficients themselves."""
    return *lame.coefficients(E, nu), *others


def adj_coefficients(parameters: tuple[Array, ...], adj: tuple[Array, ...]) -> tuple[Array, ...]:
    """Compute the adjoints of the parameters from those of the coefficients."""
    return *lame.adj_coefficients(parameters[:2], adj[:2]), *adj[2:]


def jvp_coefficients(parameters: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, ...]:
    """Compute the tangents of the coefficients from those of the parameters."""
    return *lame.jvp_coefficients(parameters[:2], tangents[:2]), *tangents[2:]


@ti.func
def product(a):
    result = a[0]
    for i in ti.static(range(1, a.n)):
        result *= a[i]
    return result


@ti.func
def parts(s, q, c):
    """Return the stretches clamped to the floor, the elastic stretches, q', J and z."""
    t = ti.max(s, STRETCH_FLOOR)
    g = ti.min(ti.max(t, 1 - c[3]), 1 + c[4])
    q_new = q * product(t / g)  # in this form q' = q exactly if all axes are elastic
    return t, g, q_new, product(g), ti.exp(c[2] * (1 - q_new))


def principal_response(real: Any, dim: int) -> SimpleNamespace:
    """Return the response to stretches, its adjoint, and its tangent at constant stretches; see principal.py."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def stretches(s, q, c):
        _, g, q_new, J, z = parts(s, q, c)
        return g, q_new, z * (2 * c[0] * (g - 1) * g + c[1] * (J - 1) * J)

    @ti.func
    def adj_stretches(s, q, c, adj_g, adj_q_new, adj_h):
        t, g, q_new, J, z = parts(s, q, c)
        trace = adj_h.sum()
        adj_c = principal.zero(c)
        adj_c[0] = 2 * z * adj_h.dot((g - 1) * g)
        adj_c[1] = z * (J - 1) * J * trace
        w = c[0] * adj_c[0] + c[1] * adj_c[1]
        adj_c[2] = (1 - q_new) * w
        p = adj_q_new - c[2] * w
        a = adj_g + z * (2 * c[0] * (2 * g - 1) * adj_h + c[1] * (2 * J - 1) * J * trace / g) - p * q_new / g
        for i in ti.static(range(dim)):
            if t[i] < 1 - c[3]:
                adj_c[3] -= a[i]
            elif t[i] > 1 + c[4]:
                adj_c[4] += a[i]
        return p * product(t / g), adj_c

    @ti.func
    def jvp_stretches(s, q, c, dq, dc):
        t, g, q_new, J, z = parts(s, q, c)
        dg = vec(0.0)
        for i in ti.static(range(dim)):
            if t[i] < 1 - c[3]:
                dg[i] = -dc[3]
            elif t[i] > 1 + c[4]:
                dg[i] = dc[4]
        relative = (dg / g).sum()
        dq_new = dq * product(t / g) - q_new * relative
        h = 2 * c[0] * (g - 1) * g + c[1] * (J - 1) * J  # over z
        dh = 2 * (dc[0] * (g - 1) * g + c[0] * (2 * g - 1) * dg)
        dh += dc[1] * (J - 1) * J + c[1] * (2 * J - 1) * J * relative
        return dg, dq_new, z * (dh + (dc[2] * (1 - q_new) - c[2] * dq_new) * h)

    return SimpleNamespace(respond=stretches, adj=adj_stretches, jvp=jvp_stretches)


def derivatives(real: Any, dim: int) -> Any:
    """Return the function of the derivatives by the stretches; see principal.py."""
    mat, vec = ti.types.matrix(dim, dim, real), ti.types.vector(dim, real)

    @ti.func
    def jacobian(s, q, c):
        t, g, q_new, J, z = parts(s, q, c)
        h = z * (2 * c[0] * (g - 1) * g + c[1] * (J - 1) * J)
        g_s, q_s, h_s = mat(0.0), vec(0.0), mat(0.0)
        for j in ti.static(range(dim)):
            above = 0.0 if s[j] < STRETCH_FLOOR else 1.0
            elastic = 0.0 if t[j] < 1 - c[3] or t[j] > 1 + c[4] else above
            g_s[j, j] = elastic
            q_s[j] = (above - elastic) * q_new / t[j]
            shared = elastic * z * c[1] * (2 * J - 1) * J / g[j]
            for i in ti.static(range(dim)):
                h_s[i, j] = shared - c[2] * q_s[j] * h[i]
            h_s[j, j] += elastic * z * 2 * c[0] * (2 * g[j] - 1)
        return g_s, q_s, h_s

    return jacobian


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The response of a particle, its adjoint and its tangent; see laws/__init__.py."""
    law = SimpleNamespace(jacobian=derivatives(real, dim), **vars(principal_response(real, dim)))
    return principal.functions(real, dim, law)
