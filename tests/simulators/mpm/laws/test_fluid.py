"""The weakly compressible fluid."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.simulators.mpm.laws import fluid as law

from ....helpers.rounding import assert_equal_but_for_rounding
from .elastic import STRETCHES, deformations, require_elasticity, require_right_derivatives
from .responses import Array, diagonal, gradient, prove_coefficients, respond

BULK = 3.0
GAMMA = law.GAMMA


def energy(F: Array) -> Array:
    """Compute the energy of compression, minus the integral of p by J."""
    J = np.linalg.det(F)
    return BULK / GAMMA * (J ** (1.0 - GAMMA) / (GAMMA - 1) + J - GAMMA / (GAMMA - 1))


@pytest.mark.parametrize("dim", [2, 3])
def test_the_stress_derives_from_the_energy_of_compression(dim: int) -> None:
    require_elasticity(law, energy, dim, BULK)


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    require_right_derivatives(law, dim, BULK)


def test_the_bulk_modulus_is_differentiated() -> None:
    prove_coefficients(law, BULK)


def test_the_bulk_modulus_is_the_pressure_of_a_relative_loss_of_volume() -> None:
    J = 1 - 1e-7
    tau = respond(law, diagonal(J, 1.0), 0.0, BULK)[2][0]
    np.testing.assert_allclose(-np.diag(tau), BULK * 1e-7, rtol=1e-5)


@pytest.mark.parametrize("dim", [2, 3])
def test_only_the_volume_of_the_deformation_is_kept(dim: int) -> None:
    F = deformations(dim)
    F_new, _, tau = respond(law, F, 0.0, BULK)
    J = np.linalg.det(F)
    assert_equal_but_for_rounding(F_new, J[:, None, None] ** (1 / dim) * np.eye(dim), ulps=64)
    again, _, same = respond(law, F_new, 0.0, BULK)
    assert_equal_but_for_rounding(again, F_new, ulps=64)
    np.testing.assert_allclose(same, tau, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("stretched", [(1.0, -1.0), (0.0, 0.0), (0.2, 0.2, 0.2)])
def test_below_the_least_volume_nothing_changes(stretched: tuple[float, ...]) -> None:
    dim, F = len(stretched), diagonal(*stretched)
    F_new, _, tau = respond(law, F, 0.0, BULK)
    least = law.LEAST_J
    np.testing.assert_allclose(F_new[0], least ** (1 / dim) * np.eye(dim))
    np.testing.assert_allclose(tau[0], BULK / GAMMA * (1 - least**-GAMMA) * least * np.eye(dim))
    for output in (0, 2):
        np.testing.assert_array_equal(gradient(law, F[0], 0.0, BULK, of=output)[0], 0)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_the_stress_of_stretches_along_the_axes(dim: int) -> None:
    s = np.array(STRETCHES[dim][0])
    tau = respond(law, diagonal(*s), 0.0, BULK)[2][0]
    J = s.prod()
    p = BULK / GAMMA * (J**-GAMMA - 1)
    eps = float(np.finfo(runtime.real_dtype()).eps)
    np.testing.assert_allclose(tau, -p * J * np.eye(dim), rtol=0, atol=50 * eps * BULK)
