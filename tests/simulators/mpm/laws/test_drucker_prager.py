"""Sand: no tension, the friction angle, the volume correction, and derivatives in each case."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.simulators.mpm.laws import drucker_prager, hencky

from ....helpers.rounding import assert_equal_but_for_rounding
from .responses import (
    coefficients,
    deformed,
    deviator,
    diagonal,
    diagonals,
    gradient,
    in_principal_frame,
    prove,
    prove_coefficients,
    require_isotropy,
    respond,
)

E, NU, PHI = 3.0, 0.3, 0.6
PARAMETERS = (E, NU, PHI)
LOOSE = np.array([[1.3, 0.9, 1.1], [1.0, 1.2, 1.2], [1.1, 1.1, 1.1]])
STUCK = np.array([[0.7, 0.71, 0.73], [0.5, 0.6, 0.6], [0.8, 0.8, 0.8]])
SLIDING = np.array([[1.2, 0.7, 0.9], [0.7, 1.15, 1.15], [0.6, 1.4, 1.1]])
GAINED = np.array([0.02, 0.05, 0.01])
CASES = pytest.mark.parametrize("stretched", [LOOSE, STUCK, SLIDING], ids=["loose", "stuck", "sliding"])
DIMS = pytest.mark.parametrize("dim", [2, 3])


def tolerance() -> float:
    return 1e-12 if runtime.real_dtype() == np.float64 else 2e-5


@pytest.mark.gpu
@DIMS
def test_it_carries_no_tension(dim: int) -> None:
    F = deformed(LOOSE[:, :dim])
    F_new, q_new, tau = respond(drucker_prager, F, 0.0, *PARAMETERS)
    np.testing.assert_allclose(tau, 0, atol=tolerance())
    np.testing.assert_allclose(F_new @ F_new.swapaxes(1, 2), np.broadcast_to(np.eye(dim), F.shape), atol=tolerance())
    np.testing.assert_allclose(q_new, np.log(np.linalg.det(F)), rtol=1e-4)


@pytest.mark.gpu
@DIMS
def test_under_pressure_within_the_cone_it_is_elastic(dim: int) -> None:
    F = deformed(STUCK[:, :dim])
    F_new, q_new, tau = respond(drucker_prager, F, 0.0, *PARAMETERS)
    np.testing.assert_allclose(F_new, F, atol=tolerance())
    np.testing.assert_array_equal(q_new, 0)
    np.testing.assert_allclose(tau, respond(hencky, F, 0.0, E, NU)[2], atol=tolerance())


@pytest.mark.gpu
@DIMS
def test_it_slides_on_the_cone_at_the_same_pressure(dim: int) -> None:
    F = deformed(SLIDING[:, :dim])
    _, q_new, tau = respond(drucker_prager, F, 0.0, *PARAMETERS)
    alpha = coefficients(drucker_prager, 1, *PARAMETERS)[0, 2]
    trace, trial = (np.trace(x, axis1=1, axis2=2) for x in (tau, respond(hencky, F, 0.0, E, NU)[2]))
    assert (trace < 0).all() and (q_new == 0).all()
    np.testing.assert_allclose(deviator(tau), -alpha * trace, atol=tolerance())
    np.testing.assert_allclose(trace, trial, atol=5 * tolerance())


@pytest.mark.gpu
@DIMS
@CASES
def test_no_volume_is_lost_and_turning_changes_nothing(dim: int, stretched: np.ndarray) -> None:
    F = deformed(stretched[:, :dim])
    F_new, q_new, _ = respond(drucker_prager, F, GAINED, *PARAMETERS)
    volumes = [np.log(np.linalg.det(x)) for x in (F_new, F)]
    np.testing.assert_allclose(volumes[0] + q_new, volumes[1] + GAINED, atol=tolerance())
    require_isotropy(drucker_prager, F, GAINED, *PARAMETERS)


def test_sand_that_came_loose_bears_pressure_only_after_its_volume_is_back() -> None:
    F, q, _ = respond(drucker_prager, diagonal(1.1, 1.1), 0.0, *PARAMETERS)
    F, q, tau = respond(drucker_prager, F / 1.05, q, *PARAMETERS)
    assert_equal_but_for_rounding(tau, np.zeros_like(tau), size=E)
    F, q, tau = respond(drucker_prager, F * (1.05 / 1.2), q, *PARAMETERS)
    assert_equal_but_for_rounding(F[0], np.eye(2) * 1.1 / 1.2, ulps=64)
    np.testing.assert_allclose(tau, respond(hencky, F, 0.0, E, NU)[2], rtol=1e-13)
    assert q[0] == 0 and tau[0, 0, 0] < 0


def friction_angle(tau: np.ndarray) -> float:
    """Compute the Mohr-Coulomb friction angle at which these stresses slide."""
    low, *_, high = np.linalg.eigvalsh(tau)
    return float(np.arcsin((high - low) / -(high + low)))


def test_under_triaxial_compression_it_slides_at_the_friction_angle() -> None:
    _, _, tau = respond(drucker_prager, diagonal(1.05, 1.05, 0.8), 0.0, *PARAMETERS)
    assert friction_angle(tau[0]) == pytest.approx(PHI, rel=1e-12)


def test_in_the_plane_the_angle_is_a_little_less() -> None:
    _, _, tau = respond(drucker_prager, diagonal(1.1, 0.8), 0.0, E, NU, np.radians(30))
    assert np.degrees(friction_angle(tau[0])) == pytest.approx(27.5, abs=0.02)


def test_every_element_of_the_jacobian_is_right() -> None:
    stretched = np.concatenate((LOOSE, STUCK, SLIDING))
    prove(drucker_prager, deformed(stretched[:, :2]), np.tile(GAINED, 3), *PARAMETERS)
    prove(in_principal_frame(drucker_prager), diagonals(stretched), np.tile(GAINED, 3), *PARAMETERS)


def test_the_derivatives_of_its_coefficients_are_right() -> None:
    prove_coefficients(drucker_prager, *PARAMETERS)


@DIMS
def test_at_rest_the_derivative_is_elastic(dim: int) -> None:
    """Rest is the tip of the cone, where all cases meet."""
    sand, elastic = (law if dim == 2 else in_principal_frame(law) for law in (drucker_prager, hencky))
    for of in (0, 2):
        adj_F, _, _ = gradient(sand, np.eye(dim), 0.0, *PARAMETERS, of=of)
        assert_equal_but_for_rounding(adj_F, gradient(elastic, np.eye(dim), 0.0, E, NU, of=of)[0], ulps=64)
    adj_F, adj_q, _ = gradient(sand, np.eye(dim), 0.0, *PARAMETERS, of=1)
    assert not adj_F.any() and adj_q == 0


def test_on_the_cone_the_derivative_is_elastic() -> None:
    """Without friction, a pure pressure is on the cone."""
    F = 0.5 * np.eye(2)
    adj_F, _, adj_c = gradient(drucker_prager, F, 0.0, E, NU, 0.0, of=2)
    assert_equal_but_for_rounding(adj_F, gradient(hencky, F, 0.0, E, NU, of=2)[0], ulps=64)
    assert adj_c[2] == 0
