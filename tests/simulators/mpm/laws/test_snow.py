"""Snow: its elastic range, the plastic volume ratio J_p, hardening, and derivatives in each case."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.simulators.mpm.laws import fixed_corotated, hencky, snow

from ....helpers.rounding import assert_equal_but_for_rounding
from .responses import deformed, diagonal, gradient, prove, prove_coefficients, require_isotropy, respond, stretches

E, NU, XI, COMPRESSION, STRETCH = 3.0, 0.3, 2.0, 0.04, 0.03
PARAMETERS = (E, NU, XI, COMPRESSION, STRETCH)
ELASTIC = np.array([[1.02, 0.98, 1.0], [0.97, 1.01, 1.01], [1.02, 1.02, 1.02]])
CRUSHED = np.array([[0.9, 1.01, 0.8], [0.7, 0.7, 0.7], [0.6, 0.99, 0.99]])
TORN = np.array([[1.2, 1.1, 1.01], [1.3, 0.9, 0.8], [1.01, 1.15, 1.15]])
RATIO = np.array([0.9, 1.1, 0.7])
CASES = pytest.mark.parametrize("stretched", [ELASTIC, CRUSHED, TORN], ids=["elastic", "crushed", "torn"])
DIMS = pytest.mark.parametrize("dim", [2, 3])


def tolerance() -> float:
    return 1e-12 if runtime.real_dtype() == np.float64 else 1e-5


@pytest.mark.gpu
@DIMS
@CASES
def test_stretches_stay_in_range_and_the_rest_goes_into_the_plastic_volume(dim: int, stretched: np.ndarray) -> None:
    F = deformed(stretched[:, :dim])
    F_new, q_new, _ = respond(snow, F, RATIO, *PARAMETERS)
    expected = np.sort(np.clip(stretched[:, :dim], 1 - COMPRESSION, 1 + STRETCH))
    np.testing.assert_allclose(np.sort(stretches(F_new)), expected, atol=tolerance())
    np.testing.assert_allclose(np.linalg.det(F_new) * q_new, np.linalg.det(F) * RATIO, atol=tolerance())
    require_isotropy(snow, F, RATIO, *PARAMETERS)


@pytest.mark.gpu
def test_fresh_snow_is_fixed_corotated_and_packed_snow_harder() -> None:
    F = deformed(ELASTIC[:, :2])
    expected = respond(fixed_corotated, F, 0.0, E, NU)[2]
    for ratio in (1.0, 0.8, 1.2):
        F_new, q_new, tau = respond(snow, F, ratio, *PARAMETERS)
        np.testing.assert_allclose(tau, np.exp(XI * (1 - ratio)) * expected, atol=tolerance())
        assert_equal_but_for_rounding(F_new, F.astype(F_new.dtype))
        assert_equal_but_for_rounding(q_new, np.full(3, ratio, q_new.dtype))


def test_crushing_in_many_steps_hardens_by_the_volume_that_is_gone() -> None:
    F, q = diagonal(1.0, 1.0, 1.0), np.array([1.0])
    for _ in range(50):
        F, q, tau = respond(snow, np.diag([0.99, 1.0, 1.0]) @ F, q, *PARAMETERS)
    assert q[0] == pytest.approx(0.99**50 / (1 - COMPRESSION), rel=1e-12)
    mu, la = snow.coefficients(*[np.array(p) for p in PARAMETERS])[:2]
    s = 1 - COMPRESSION
    assert tau[0, 0, 0] == pytest.approx(np.exp(XI * (1 - q[0])) * (2 * mu + la) * (s - 1) * s, rel=1e-12)


@DIMS
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    """Check with the principal frame, also in 3-D: of all laws snow uses it most."""
    prove(snow, deformed(np.concatenate((ELASTIC, CRUSHED, TORN))[:, :dim]), np.tile(RATIO, 3), *PARAMETERS)


def test_the_derivatives_of_its_coefficients_are_right() -> None:
    prove_coefficients(snow, *PARAMETERS)


def test_at_a_bound_the_derivative_is_elastic() -> None:
    F = np.diag([1.25, 0.75])
    for of in (0, 1, 2):
        at, *_, adj_c = gradient(snow, F, 0.9, E, NU, XI, 0.25, 0.25, of=of)
        within, *_ = gradient(snow, F, 0.9, E, NU, XI, 0.3, 0.3, of=of)
        np.testing.assert_allclose(at, within, atol=1e-13)
        np.testing.assert_array_equal(adj_c[3:], 0)


@DIMS
def test_crushed_or_inverted_it_has_the_plastic_volume_of_the_floor(dim: int) -> None:
    s = np.array([[1.01, 0.99, -0.3], [1.0, 0.98, 0.001], [1.0, 1.2, 0.9]])[:, 3 - dim :]
    F = deformed(s)
    F_new, q_new, tau = respond(snow, F, 1.0, *PARAMETERS)
    floored = deformed(np.maximum(s, hencky.STRETCH_FLOOR))
    for found, expected in zip((F_new, q_new, tau), respond(snow, floored, 1.0, *PARAMETERS), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (q_new > 0).all() and np.isfinite(tau).all()
    prove(snow, F, 1.0, *PARAMETERS, mode="projected")
