"""Fixed corotated elasticity."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.simulators.mpm.laws import fixed_corotated as law

from .elastic import STRETCHES, require_elasticity, require_right_derivatives
from .responses import Array, deformed, diagonal, gradient, prove, prove_coefficients, respond

E, NU = 3.0, 0.3
MU, LA = law.coefficients(np.array(E), np.array(NU))


def energy(F: Array) -> Array:
    """Compute mu |s - 1|^2 + lambda/2 (J - 1)^2 from the principal stretches."""
    s, J = np.linalg.svd(F, compute_uv=False), np.linalg.det(F)
    return MU * ((s - 1) ** 2).sum(axis=1) + LA / 2 * (J - 1) ** 2


@pytest.mark.parametrize("dim", [2, 3])
def test_the_stress_derives_from_the_energy(dim: int) -> None:
    require_elasticity(law, energy, dim, E, NU)


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    require_right_derivatives(law, dim, E, NU)


def test_it_is_right_at_equal_stretches_and_where_the_matter_is_inverted() -> None:
    prove(law, deformed([[1.2, 1.2, 1.2], [1.1, 0.8, -0.3]]), 0.0, E, NU, tolerance=1e-8)


def test_lame_constants_are_differentiated() -> None:
    prove_coefficients(law, E, NU)


@pytest.mark.parametrize("dim", [2, 3])
def test_of_a_small_strain_the_stress_is_that_of_hooke(dim: int) -> None:
    """Young's modulus and Poisson's ratio are as defined: a uniaxial stress E e strains the sides by -nu e."""
    e = 1e-6
    sides = -NU * e
    if dim == 2:  # plane strain: no strain along the third axis
        sides = -NU / (1 - NU) * e
    tau = respond(law, diagonal(1 + e, *[1 + sides] * (dim - 1)), 0.0, E, NU)[2][0]
    expected = E * e if dim == 3 else E / (1 - NU**2) * e
    np.testing.assert_allclose(tau[0, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(tau[1, 1], 0, atol=1e-5 * expected)


@pytest.mark.parametrize("stretched", [(1.0, -1.0), (0.0, 0.0), (1.0, 1.0, -1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)])
def test_where_no_rotation_is_nearest_stress_and_gradient_are_finite(stretched: tuple[float, ...]) -> None:
    F = diagonal(*stretched)
    assert np.isfinite(respond(law, F, 0.0, E, NU)[2]).all()
    assert all(np.isfinite(adj).all() for adj in gradient(law, F[0], 0.0, E, NU, of=2))


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_the_stress_of_stretches_along_the_axes(dim: int) -> None:
    s = np.array(STRETCHES[dim][0])
    tau = respond(law, diagonal(*s), 0.0, E, NU)[2][0]
    J = s.prod()
    eps = float(np.finfo(runtime.real_dtype()).eps)
    expected = np.diag(2 * MU * (s - 1) * s + LA * (J - 1) * J)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=20 * eps * E)
