"""Neo-Hookean elasticity."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.simulators.mpm.laws import neo_hookean as law

from .elastic import STRETCHES, require_elasticity, require_right_derivatives
from .responses import Array, diagonal, gradient, prove_coefficients, respond

E, NU = 3.0, 0.3
MU, LA = law.coefficients(np.array(E), np.array(NU))


def energy(F: Array) -> Array:
    """Compute mu/2 (|F|^2 - dim) - mu log J + lambda/2 (log J)^2."""
    log_J = np.log(np.linalg.det(F))
    return MU / 2 * ((F * F).sum(axis=(1, 2)) - F.shape[-1]) - MU * log_J + LA / 2 * log_J**2


@pytest.mark.parametrize("dim", [2, 3])
def test_the_stress_derives_from_the_energy(dim: int) -> None:
    require_elasticity(law, energy, dim, E, NU)


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    require_right_derivatives(law, dim, E, NU)


def test_lame_constants_are_differentiated() -> None:
    prove_coefficients(law, E, NU)


@pytest.mark.parametrize("stretched", [(1.0, -1.0), (0.0, 0.0), (1.0, 1.0, -1.0), (1e-3, 1e-4)])
def test_of_inverted_matter_log_j_is_held_and_has_no_derivative(stretched: tuple[float, ...]) -> None:
    F = diagonal(*stretched)
    tau = respond(law, F, 0.0, E, NU)[2]
    expected = MU * (F @ F - np.eye(len(stretched))) + LA * np.log(law.LEAST_J) * np.eye(len(stretched))
    np.testing.assert_allclose(tau, expected, atol=1e-13)
    adj_F, _, adj_c = gradient(law, F[0], 0.0, E, NU, of=2)
    ones = np.ones_like(F[0])
    np.testing.assert_allclose(adj_F, 2 * MU * ones @ F[0], atol=1e-13)
    np.testing.assert_allclose(adj_c[1], np.log(law.LEAST_J) * len(stretched))


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_the_stress_of_stretches_along_the_axes(dim: int) -> None:
    s = np.array(STRETCHES[dim][0])
    tau = respond(law, diagonal(*s), 0.0, E, NU)[2][0]
    eps = float(np.finfo(runtime.real_dtype()).eps)
    np.testing.assert_allclose(tau, np.diag(MU * (s * s - 1) + LA * np.log(s.prod())), rtol=0, atol=20 * eps * E)
