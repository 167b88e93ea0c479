"""Plasticity of von Mises: the yield surface, conserved quantities, and derivatives on both sides."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simphys.simulators.mpm.laws import hencky, von_mises

from ....helpers.rounding import assert_equal_but_for_rounding
from .responses import (
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

E, NU, YIELD = 3.0, 0.3, 0.2
PARAMETERS = (E, NU, YIELD)
ELASTIC = np.array([[1.02, 1.0, 0.99], [0.5, 0.5, 0.5]])
FLOWING = np.array([[1.3, 0.9, 0.8], [0.6, 1.2, 1.2], [1.1, 0.3, 0.9]])


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_below_the_yield_stress_it_is_elastic(dim: int) -> None:
    F = deformed(ELASTIC[:, :dim])
    F_new, _, tau = respond(von_mises, F, 0.0, *PARAMETERS)
    assert_equal_but_for_rounding(F_new, F.astype(F_new.dtype))
    assert_equal_but_for_rounding(tau, respond(hencky, F, 0.0, E, NU)[2], ulps=64)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_flow_ends_on_the_yield_surface_and_keeps_volume_and_pressure(dim: int) -> None:
    F = deformed(FLOWING[:, :dim])
    F_new, _, tau = respond(von_mises, F, 0.0, *PARAMETERS)
    np.testing.assert_allclose(deviator(tau), math.sqrt(2 / 3) * YIELD, rtol=2e-5 if tau.dtype == np.float32 else 1e-13)
    np.testing.assert_allclose(np.linalg.det(F_new), np.linalg.det(F), rtol=2e-6)
    trial = respond(hencky, F, 0.0, E, NU)[2]
    traces = [np.trace(x, axis1=1, axis2=2) for x in (tau, trial)]
    np.testing.assert_allclose(traces[0], traces[1], rtol=0, atol=1e-5)
    require_isotropy(von_mises, F, 0.0, *PARAMETERS)


def test_a_bar_flows_at_the_yield_stress() -> None:
    def strained(stress: float) -> np.ndarray:
        return diagonal(*np.exp(np.array([1, -NU, -NU]) * stress / E))

    for below in (0.999 * YIELD, -0.999 * YIELD):
        assert_equal_but_for_rounding(respond(von_mises, strained(below), 0.0, *PARAMETERS)[0], strained(below))
    beyond = strained(1.001 * YIELD)
    F_new, _, tau = respond(von_mises, beyond, 0.0, *PARAMETERS)
    assert (np.abs(F_new - beyond).max(axis=(1, 2)) > 1e-6).all()
    assert tau[0, 0, 0] - tau[0, 1, 1] == pytest.approx(YIELD, rel=1e-12)


def test_in_the_plane_stresses_differ_by_2_over_sqrt_3_times_the_yield_stress() -> None:
    _, _, tau = respond(von_mises, diagonal(1.3, 0.9), 0.0, *PARAMETERS)
    assert tau[0, 0, 0] - tau[0, 1, 1] == pytest.approx(2 / math.sqrt(3) * YIELD, rel=1e-12)


def test_shear_beyond_yield_stays_on_the_surface_and_keeps_the_volume() -> None:
    """After simple shear to 4 the shear stress is sigma_y / sqrt(3), up to the square of the elastic strain."""
    F, step, low = np.eye(3)[None], np.eye(3), 0.1 * YIELD
    step[0, 1] = 0.02
    for k in range(200):
        F, _, tau = respond(von_mises, step @ F, 0.0, E, NU, low)
        if k > 20:
            np.testing.assert_allclose(deviator(tau), math.sqrt(2 / 3) * low, rtol=1e-12)
    assert tau[0, 0, 1] == pytest.approx(low / math.sqrt(3), rel=1e-3)
    assert np.linalg.det(F[0]) == pytest.approx(1, abs=1e-12)


def test_every_element_of_the_jacobian_is_right() -> None:
    stretched = np.concatenate((ELASTIC, FLOWING))
    prove(von_mises, deformed(stretched[:, :2]), 0.0, *PARAMETERS)
    prove(in_principal_frame(von_mises), diagonals(stretched), 0.0, *PARAMETERS)


def test_the_derivatives_of_its_coefficients_are_right() -> None:
    prove_coefficients(von_mises, *PARAMETERS)


@pytest.mark.parametrize("dim", [2, 3])
def test_on_the_yield_surface_the_derivative_is_elastic(dim: int) -> None:
    """A yield stress of 0 puts F = I on the yield surface."""
    clay, elastic = (law if dim == 2 else in_principal_frame(law) for law in (von_mises, hencky))
    for of in (0, 2):
        adj_F, _, adj_c = gradient(clay, np.eye(dim), 0.0, E, NU, 0.0, of=of)
        expected = gradient(elastic, np.eye(dim), 0.0, E, NU, of=of)
        assert_equal_but_for_rounding(adj_F, expected[0], ulps=64, size=E)
        np.testing.assert_array_equal(adj_c, [*expected[2], 0.0])


def test_crushed_and_inverted_it_flows_from_the_floor() -> None:
    F = deformed([[1.2, -0.3], [1.0, 0.0]])
    _, _, tau = respond(von_mises, F, 0.0, *PARAMETERS)
    np.testing.assert_allclose(deviator(tau), math.sqrt(2 / 3) * YIELD, rtol=1e-12)
    prove(von_mises, F, 0.0, *PARAMETERS, mode="projected")
