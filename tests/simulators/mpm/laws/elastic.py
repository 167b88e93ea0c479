"""Helpers for tests of elastic laws: stress as the derivative of the energy density, and common properties."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ....helpers.rounding import assert_equal_but_for_rounding
from .responses import Array, deformed, prove, respond, rotations

STRETCHES: dict[int, list[list[float]]] = {
    2: [[1.3, 0.8], [1.05, 0.98], [0.7, 0.7], [1.2, 0.45]],
    3: [[1.3, 0.9, 0.8], [1.05, 1.0, 0.98], [0.7, 0.7, 0.7], [1.2, 1.2, 0.45]],
}
"""Principal stretches for each dimension, including equal ones."""


def deformations(dim: int) -> Array:
    """Build a deformation for each of STRETCHES."""
    return deformed(STRETCHES[dim])


def stress_of_energy(energy: Callable[[Array], Array], F: Array, h: float = 1e-4) -> Array:
    """Compute tau = dpsi/dF F^T, [n, dim, dim], by finite differences of fourth order of psi(F) [n]."""
    P = np.empty_like(F)
    for i, j in np.ndindex(*F.shape[1:]):
        d = np.zeros(F.shape[1:])
        d[i, j] = h
        near = energy(F + d) - energy(F - d)
        P[:, i, j] = (8 * near - (energy(F + 2 * d) - energy(F - 2 * d))) / (12 * h)
    return P @ F.transpose(0, 2, 1)


def require_elasticity(law: Any, energy: Callable[[Array], Array], dim: int, *parameters: float) -> None:
    """Require that the stress derives from the energy, is symmetric, rotates with the material and is 0 at rest."""
    F = deformations(dim)
    _, q, tau = respond(law, F, 0.0, *parameters)
    np.testing.assert_allclose(tau, stress_of_energy(energy, F), rtol=0, atol=1e-9 * np.abs(tau).max())
    assert_equal_but_for_rounding(tau, tau.transpose(0, 2, 1), ulps=64)
    np.testing.assert_array_equal(q, 0)
    Q = rotations(*F.shape[:2], seed=5)
    turned, same = (respond(law, G, 0.0, *parameters)[2] for G in (Q @ F, F @ Q))
    close = {"rtol": 0, "atol": 1e-13 * np.abs(tau).max()}
    np.testing.assert_allclose(turned, Q @ tau @ Q.transpose(0, 2, 1), **close)
    np.testing.assert_allclose(same, tau, **close)
    at_rest = respond(law, np.eye(dim)[None], 0.0, *parameters)[2]
    assert_equal_but_for_rounding(at_rest, np.zeros_like(at_rest), size=parameters[0])


def require_right_derivatives(law: Any, dim: int, *parameters: float) -> None:
    """Check every element of the Jacobian, away from special states."""
    prove(law, deformed(STRETCHES[dim][::3]), 0.3, *parameters, tolerance=1e-8)
