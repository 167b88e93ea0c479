"""Lame's constants from Young's modulus E [Pa] and Poisson's ratio nu, in 3-D and in plane strain:

    mu = E / (2 (1 + nu))     lambda = E nu / ((1 + nu) (1 - 2 nu))        [Pa]

Derivatives, with a = 1 + nu and b = 1 - 2 nu:

    dmu/dE = mu/E     dmu/dnu = -mu/a     dlambda/dE = lambda/E     dlambda/dnu = E (1 + 2 nu^2) / (a b)^2

Source: Landau and Lifshitz, Theory of Elasticity, section 5. Elastic laws take these as their `coefficients`.
"""

from __future__ import annotations

from simphys.simulator import Array

PARAMETERS = ("young_modulus", "poisson_ratio")
COEFFICIENTS = ("mu", "lambda")


def coefficients(E: Array, nu: Array) -> tuple[Array, Array]:
    """Compute mu and lambda."""
    return E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))


def adj_coefficients(parameters: tuple[Array, ...], adj: tuple[Array, ...]) -> tuple[Array, Array]:
    """Compute the adjoints of E and nu from those of mu and lambda."""
    (mu_E, mu_nu), (la_E, la_nu) = _derivatives(*parameters)
    adj_mu, adj_la = adj
    return mu_E * adj_mu + la_E * adj_la, mu_nu * adj_mu + la_nu * adj_la


def jvp_coefficients(parameters: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    """Compute the tangents of mu and lambda from those of E and nu."""
    (mu_E, mu_nu), (la_E, la_nu) = _derivatives(*parameters)
    dE, dnu = tangents
    return mu_E * dE + mu_nu * dnu, la_E * dE + la_nu * dnu


def _derivatives(E: Array, nu: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    a, b = 1 + nu, 1 - 2 * nu
    return (0.5 / a, -0.5 * E / (a * a)), (nu / (a * b), E * (1 + 2 * nu * nu) / (a * b) ** 2)
