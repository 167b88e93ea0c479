"""A weakly compressible, inviscid fluid. Tait's equation of state gives the pressure from J = det F, and the energy
density per volume at rest:

    p = K / gamma (J^-gamma - 1)     tau = -p J I                           [Pa]
    psi = K / gamma (J^(1 - gamma) / (gamma - 1) + J - gamma / (gamma - 1))  [J/m^3]
    F' = J^(1/dim) I

K bulk modulus [Pa]. F' keeps only the volume ratio J, so that shear cannot accumulate in it. Adjoint, with
t = tr adj_tau and dp/dJ = -K J^(-gamma - 1):

    adj_J = -(p + J dp/dJ) t + J^(1/dim - 1) / dim tr adj_F'     adj_F = adj_J cof F     adj_K = -(p/K) J t

Convention at J <= LEAST_J, which no finite energy reaches: J is held at LEAST_J, with zero derivative.
Source: Monaghan 1994, Simulating free surface flows with SPH (gamma = 7 for water); in the material-point method
Tampubolon et al. 2017, Multi-species simulation of porous sand and water mixtures.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.cofactor import cofactor
from simphys.simulator import Array

PARAMETERS = ("bulk_modulus",)
COEFFICIENTS = ("bulk",)
HIDDEN, REST = False, 0.0
GAMMA = 7
"""Exponent of the equation of state, for water (Monaghan 1994)."""
LEAST_J = 0.05
"""Least J, at which J^-GAMMA is 1e9."""


def coefficients(bulk: Array) -> tuple[Array]:
    """Return the bulk modulus itself."""
    return (bulk,)


def adj_coefficients(parameters: tuple[Array, ...], adj: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the adjoint of the coefficient, which is that of the bulk modulus."""
    return adj


def jvp_coefficients(parameters: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the tangent of the bulk modulus, which is that of the coefficient."""
    return tangents


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The response of a particle, its adjoint and its tangent; see laws/__init__.py."""
    mat = ti.types.matrix(dim, dim, real)

    @ti.func
    def isotropic(x):
        result = mat(0.0)
        for i in ti.static(range(dim)):
            result[i, i] = x
        return result

    @ti.func
    def volume(F):
        return ti.max(F.determinant(), LEAST_J)

    @ti.func
    def power(J):
        return (1 / J) ** GAMMA

    @ti.func
    def root(J):
        return ti.sqrt(J) if ti.static(dim == 2) else J ** (1 / 3)

    @ti.func
    def slopes(F, J, K):
        """Return the derivatives by J of the diagonals of tau, -(p + J dp/dJ), and of F'; both 0 where J is held."""
        stress, stretch = 0.0, 0.0
        if F.determinant() > LEAST_J:
            stress = K * (power(J) * (1 - 1 / GAMMA) + 1 / GAMMA)
            stretch = root(J) / (dim * J)
        return stress, stretch

    @ti.func
    def respond(F, q, c):
        J = volume(F)
        return isotropic(root(J)), q, isotropic(c[0] / GAMMA * (1 - power(J)) * J)

    @ti.func
    def adj(F, q, c, adj_F_new, adj_q_new, adj_tau):
        J = volume(F)
        stress, stretch = slopes(F, J, c[0])
        trace = adj_tau.trace()
        adj_c = c
        for k in ti.static(range(1, c.n)):
            adj_c[k] = 0.0
        adj_c[0] = (1 - power(J)) * J * trace / GAMMA
        return (stress * trace + stretch * adj_F_new.trace()) * cofactor(F), adj_q_new, adj_c

    @ti.func
    def jvp(F, q, c, dF, dq, dc):
        J = volume(F)
        stress, stretch = slopes(F, J, c[0])
        dJ = (cofactor(F) * dF).sum()
        return isotropic(stretch * dJ), dq, isotropic(stress * dJ + dc[0] * (1 - power(J)) * J / GAMMA)

    return SimpleNamespace(respond=respond, adj=adj, jvp=jvp)
