"""Hencky's elasticity, and common properties of all laws in principal stretches."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.simulators.mpm.laws import hencky

from ....helpers.rounding import assert_equal_but_for_rounding
from .responses import deformed, diagonal, gradient, prove, prove_coefficients, require_isotropy, respond, stretches

E, NU = 3.0, 0.3
STRETCHES = np.array([[1.3, 0.9, 0.8], [0.6, 1.2, 1.2], [1.1, 1.1, 1.1], [1.0, 1.0, 1.0]])
"""Different stretches, equal stretches and rest."""


def test_a_bar_under_tension_has_stress_along_its_axis_alone() -> None:
    strain = 0.3
    _, _, tau = respond(hencky, diagonal(*np.exp([strain, -NU * strain, -NU * strain])), 0.0, E, NU)
    assert_equal_but_for_rounding(tau[0], np.diag([E * strain, 0, 0]), ulps=64)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_it_is_elastic_and_isotropic(dim: int) -> None:
    F = deformed(STRETCHES[:, :dim])
    F_new, _, tau = respond(hencky, F, 0.0, E, NU)
    assert_equal_but_for_rounding(F_new, F.astype(F_new.dtype))
    np.testing.assert_allclose(tau[3], 0, atol=1e-6)
    require_isotropy(hencky, F, 0.0, E, NU)


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    prove(hencky, deformed(STRETCHES[:, :dim]), 0.0, E, NU)


def test_the_derivatives_of_its_coefficients_are_right() -> None:
    prove_coefficients(hencky, E, NU)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("least", [-0.5, -0.2, 0.0, 1e-4])
def test_what_is_crushed_or_inverted_counts_as_at_the_floor(dim: int, least: float) -> None:
    s = np.array([[0.7, 1.2, least][3 - dim :]])
    F = deformed(s)
    F_new, _, tau = respond(hencky, F, 0.0, E, NU)
    floored = np.maximum(s, hencky.STRETCH_FLOOR)
    np.testing.assert_allclose(np.sort(stretches(F_new)), np.sort(floored), rtol=1e-12)
    assert np.linalg.det(F_new[0]) > 0
    np.testing.assert_allclose(tau, respond(hencky, deformed(floored), 0.0, E, NU)[2], atol=1e-12)
    prove(hencky, F, 0.0, E, NU, mode="projected")


def test_the_derivative_by_a_stretch_below_the_floor_is_zero_and_at_it_that_of_the_logarithm() -> None:
    floor = hencky.STRETCH_FLOOR
    below, _, _ = gradient(hencky, np.diag([1.0, 0.5 * floor]), 0.0, E, NU, of=2)
    assert below[0, 0] > 1 and below[1, 1] == 0
    at, _, _ = gradient(hencky, floor * np.eye(2), 0.0, E, NU, of=2)
    mu, la = hencky.coefficients(np.array(E), np.array(NU))
    np.testing.assert_allclose(np.diag(at), 2 * (mu + la) / floor)


def test_derivatives_are_finite_where_f_determines_no_axes() -> None:
    """These cases are s_i + s_j = 0, and F = 0."""
    for F in (np.diag([0.4, -0.4]), np.zeros((2, 2)), np.diag([1.0, 0.4, -0.4]), np.zeros((3, 3))):
        assert all(np.isfinite(x).all() for of in (0, 2) for x in gradient(hencky, F, 0.0, E, NU, of=of))
