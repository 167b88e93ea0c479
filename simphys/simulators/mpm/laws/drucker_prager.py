"""Dry sand: the friction cone of Drucker and Prager, without cohesion; under pressure it slides at constant volume.

The elasticity is that of hencky.py. The hidden variable q >= 0 is the logarithm of the volume ratio that loose sand has
gained; sand bears no pressure until this gain is lost again. With the strains b = e + q/dim, their trace t, the
deviator d = b - t/dim and n = d/|d|, and the cone |dev tau| <= -alpha tr(tau), which is |d| <= r,

    r = -k t,   k = alpha (dim lambda + 2 mu) / (2 mu),   alpha = sqrt(2/3) 2 sin(phi) / (3 - sin(phi))

    t > 0, loose:     e' = 0              q' = t
    |d| <= r, stuck:  e' = b              q' = 0
    else, sliding:    e' = t/dim + r n    q' = 0

phi friction angle [rad]. In all cases log det F' + q' = log det F + q. With this alpha the cone meets the Mohr-Coulomb
law in triaxial compression. In 2-D, with two principal strains, the effective friction angle is arcsin(sqrt(2) alpha):
27.5 degrees for a phi of 30 degrees.

Derivatives, for A = adj_e', its mean M = tr(A)/dim and a = A.n:

    loose:    de'_i/de_j = 0                                                            adj_q = adj_q',  dq'/de_j = 1
    stuck:    de'_i/de_j = delta_ij                                                     adj_q = M
    sliding:  de'_i/de_j = 1/dim + r/|d| (delta_ij - 1/dim - n_i n_j) - k n_i           adj_q = M - k a,  adj_k = -t a

Convention where cases meet: on the cone, |d| = r, the derivative is that of stuck sand, and at t = 0 that of t < 0, so
it is elastic at rest. Source: Klar et al. 2016, Drucker-Prager elastoplasticity for sand animation (the return
mapping); Tampubolon et al. 2017, Multi-species simulation of porous sand and water mixtures (the volume correction).
"""

import functools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from . import hencky, lame, principal

PARAMETERS = (*lame.PARAMETERS, "friction_angle")
COEFFICIENTS = (*lame.COEFFICIENTS, "alpha")
HIDDEN, REST = True, 0.0

_SCALE = 2 * math.sqrt(2 / 3)


def coefficients(E: Array, nu: Array, friction_angle: Array) -> tuple[Array, ...]:
    """Compute mu, lambda [Pa] and alpha."""
    sin = np.sin(friction_angle)
    return *lame.coefficients(E, nu), _SCALE * sin / (3 - sin)


def adj_coefficients(parameters: tuple[Array, ...], adj: tuple[Array, ...]) -> tuple[Array, ...]:
    """Compute the adjoints of the parameters from those of the coefficients."""
    return *lame.adj_coefficients(parameters[:2], adj[:2]), _angle_derivative(parameters[2]) * adj[2]


def jvp_coefficients(parameters: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, ...]:
    """Compute the tangents of the coefficients from those of the parameters."""
    return *lame.jvp_coefficients(parameters[:2], tangents[:2]), _angle_derivative(parameters[2]) * tangents[2]


def _angle_derivative(phi: Array) -> Array:
    """Compute d alpha / d phi."""
    return 3 * _SCALE * np.cos(phi) / (3 - np.sin(phi)) ** 2


@ti.func
def parts(e, q, c):
    """Return b, its trace t and deviator d, and k."""
    b = e + q / e.n
    t = b.sum()
    return b, t, b - t / e.n, c[2] * (0.5 * e.n * c[1] / c[0] + 1)


def return_mapping(real: Any, dim: int) -> SimpleNamespace:
    """Return the mapping of strains, its adjoint, and its tangent at constant strains; see `hencky.plastic`."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def return_map(e, q, c):
        b, t, d, k = parts(e, q, c)
        size, r = d.norm(), -k * t
        e_new, q_new = b, real(0.0)
        if t > 0:
            e_new, q_new = vec(0.0), t
        elif size > r:
            e_new = t / dim + (r / size) * d
        return e_new, q_new

    @ti.func
    def adj_return_map(e, q, c, adj_e_new, adj_q_new):
        _, t, d, k = parts(e, q, c)
        size, r = d.norm(), -k * t
        adj_q, adj_c = adj_e_new.sum() / dim, principal.zero(c)
        if t > 0:
            adj_q = adj_q_new
        elif size > r:
            adj_size = adj_e_new.dot(d) / size
            adj_k = -t * adj_size
            adj_ratio = adj_k * c[2] * 0.5 * dim / c[0]  # the adjoint of lambda/mu, over mu
            adj_q -= k * adj_size
            adj_c[0] = -adj_ratio * c[1] / c[0]
            adj_c[1] = adj_ratio
            adj_c[2] = adj_k * (0.5 * dim * c[1] / c[0] + 1)
        return adj_q, adj_c

    @ti.func
    def jvp_return_map(e, q, c, dq, dc):
        _, t, d, k = parts(e, q, c)
        size, r = d.norm(), -k * t
        de, dq_new = vec(dq / dim), real(0.0)
        if t > 0:
            de, dq_new = vec(0.0), dq
        elif size > r:
            dk = dc[2] * (0.5 * dim * c[1] / c[0] + 1) + c[2] * 0.5 * dim * (dc[1] - c[1] * dc[0] / c[0]) / c[0]
            de = dq / dim - (k * dq + dk * t) / size * d
        return de, dq_new

    return SimpleNamespace(return_map=return_map, adj=adj_return_map, jvp=jvp_return_map)


def derivatives(real: Any, dim: int) -> Any:
    """Return the function of the derivatives by the strains; see `hencky.plastic`."""
    mat, vec = ti.types.matrix(dim, dim, real), ti.types.vector(dim, real)

    @ti.func
    def jacobian(e, q, c):
        _, t, d, k = parts(e, q, c)
        size, r = d.norm(), -k * t
        kept, across, loose = real(1.0), real(0.0), real(0.0)
        if t > 0:
            loose = 1.0
        elif size > r:
            kept, across = r / size, 1 / size
        n = across * d
        e_e = mat(0.0)
        for i, j in ti.static(ti.ndrange(dim, dim)):
            e_e[i, j] = (1 - kept) / dim - kept * n[i] * n[j] - k * n[i]
            if ti.static(i == j):
                e_e[i, i] += kept
        return (1 - loose) * e_e, vec(loose)

    return jacobian


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The response of a particle, its adjoint and its tangent; see laws/__init__.py."""
    mapping = SimpleNamespace(jacobian=derivatives(real, dim), **vars(return_mapping(real, dim)))
    return hencky.plastic(real, dim, mapping)
