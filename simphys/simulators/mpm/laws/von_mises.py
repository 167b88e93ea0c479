"""Perfect plasticity of von Mises (J2) for metals and clay: the deviatoric stress is bounded.

The elasticity is that of hencky.py. With the strains e, their mean m = tr(e)/dim, the deviator d = e - m and n = d/|d|,

    |dev tau| = 2 mu |d| <= k,   k = sqrt(2/3) sigma_y                      [Pa]
    e' = e if |d| <= r, else m + r n,   r = k / (2 mu)

sigma_y yield stress [Pa]. Plastic flow preserves volume. In 3-D sigma_y is the Kirchhoff stress at which a bar yields
in uniaxial tension. In 2-D the deviator is that of the two in-plane principal strains. Material yields at
|tau_1 - tau_2| = 2 sigma_y / sqrt(3), the yield condition of slip-line theory (plane strain, flow fully developed).

Derivatives during flow, for A = adj_e':

    de'_i/de_j = 1/dim + r/|d| (delta_ij - 1/dim - n_i n_j)     adj_k = A.n / (2 mu)     adj_mu = -A.n r / mu

Convention on the yield surface, |d| = r: the elastic derivative. Equal strains are elastic.
Source: Simo 1992, Algorithms for static and dynamic multiplicative plasticity that preserve the classical return
mapping schemes of the infinitesimal theory.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from . import hencky, lame, principal

PARAMETERS = (*lame.PARAMETERS, "yield_stress")
COEFFICIENTS = (*lame.COEFFICIENTS, "yield")
HIDDEN, REST = False, 0.0

_RADIUS = math.sqrt(2 / 3)  # radius of the yield surface, relative to the yield stress


def coefficients(E: Array, nu: Array, yield_stress: Array) -> tuple[Array, ...]:
    """Compute mu, lambda and k = sqrt(2/3) sigma_y, all in [Pa]."""
    return *lame.coefficients(E, nu), _RADIUS * yield_stress


def adj_coefficients(parameters: tuple[Array, ...], adj: tuple[Array, ...]) -> tuple[Array, ...]:
    """Compute the adjoints of the parameters from those of the coefficients."""
    return *lame.adj_coefficients(parameters[:2], adj[:2]), _RADIUS * adj[2]


def jvp_coefficients(parameters: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, ...]:
    """Compute the tangents of the coefficients from those of the parameters."""
    return *lame.jvp_coefficients(parameters[:2], tangents[:2]), _RADIUS * tangents[2]


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The response of a particle, its adjoint and its tangent; see laws/__init__.py."""
    mat, vec = ti.types.matrix(dim, dim, real), ti.types.vector(dim, real)

    @ti.func
    def return_map(e, q, c):
        mean = e.sum() / dim
        d = e - mean
        size, r = d.norm(), 0.5 * c[2] / c[0]
        e_new = e
        if size > r:
            e_new = mean + (r / size) * d
        return e_new, q

    @ti.func
    def adj_return_map(e, q, c, adj_e_new, adj_q_new):
        d = e - e.sum() / dim
        size, r = d.norm(), 0.5 * c[2] / c[0]
        adj_c = principal.zero(c)
        if size > r:
            adj_size = adj_e_new.dot(d) / size
            adj_c[0] = -adj_size * r / c[0]
            adj_c[2] = 0.5 * adj_size / c[0]
        return adj_q_new, adj_c

    @ti.func
    def jvp_return_map(e, q, c, dq, dc):
        d = e - e.sum() / dim
        size, r = d.norm(), 0.5 * c[2] / c[0]
        de = vec(0.0)
        if size > r:
            de = (0.5 * dc[2] - r * dc[0]) / (c[0] * size) * d
        return de, dq

    @ti.func
    def jacobian(e, q, c):
        d = e - e.sum() / dim
        size, r = d.norm(), 0.5 * c[2] / c[0]
        kept, across = real(1.0), real(0.0)
        if size > r:
            kept, across = r / size, 1 / size
        n = across * d
        e_e = mat(0.0)
        for i, j in ti.static(ti.ndrange(dim, dim)):
            e_e[i, j] = (1 - kept) / dim - kept * n[i] * n[j]
            if ti.static(i == j):
                e_e[i, i] += kept
        return e_e, vec(0.0)

    return hencky.plastic(
        real, dim, SimpleNamespace(return_map=return_map, adj=adj_return_map, jvp=jvp_return_map, jacobian=jacobian)
    )
