"""L-BFGS-B backs off from NaN and infinity in its line search, which scipy alone does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from simphys.optimize import minimize


class Parabola:
    """Objective theta^2 / 2 from -0.5; the first step, of length 1, leads past a wall at 0.3."""

    labels = ["x"]
    start, lower, upper = np.array([-0.5]), np.array([-np.inf]), np.array([np.inf])

    def __init__(self, beyond: float) -> None:
        self.beyond = beyond
        self.farthest = 0.0

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        self.farthest = max(self.farthest, abs(theta[0]))
        if theta[0] > 0.3:
            return self.beyond, np.array([self.beyond])
        return 0.5 * float(theta @ theta), theta


@pytest.mark.parametrize("beyond", [np.nan, np.inf])
def test_scipy_alone_is_lost(beyond: float) -> None:
    """Show the reason for the wall: with NaN scipy diverges, with infinity it reports success at the start."""
    lost = scipy_minimize(Parabola(beyond).value_and_gradient, [-0.5], jac=True, method="L-BFGS-B")
    assert abs(lost.x[0]) > 0.4


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_the_line_search_backs_off_from_a_wall(beyond: float) -> None:
    objective = Parabola(beyond)
    found = minimize(objective, method="lbfgs")  # type: ignore[arg-type]  # the other half of the protocol is not used
    assert found.success and found.failed_trials >= 1
    assert found.theta[0] == pytest.approx(0, abs=1e-6)
    assert objective.farthest <= 0.5


def test_a_blow_up_late_in_the_search_is_survived_too(from_residuals: Any, rosenbrock: Any) -> None:
    walled = from_residuals(rosenbrock, [-1.2, 1.0], blows_up=lambda theta: theta[1] < -0.05 or theta[0] > 1.01)
    found = minimize(walled, method="lbfgs", iterations=200)
    assert found.failed_trials > 0
    assert found.success
    np.testing.assert_allclose(found.theta, [1, 1], atol=1e-4)


def test_a_second_search_from_the_minimum_agrees_that_it_is_one(from_residuals: Any, oscillation: Any) -> None:
    first = minimize(from_residuals(oscillation, [1.01, 1.0, 1.001]), method="lbfgs")
    second = minimize(from_residuals(oscillation, first.theta), method="lbfgs")
    assert first.success and second.success
    np.testing.assert_allclose(second.theta, first.theta, atol=1e-7)


def test_a_bound_that_is_near_in_theta_is_no_minimum() -> None:
    """Show that the step to the bound does not count as the gradient, as it does in scipy's own test."""
    objective = Parabola(np.nan)
    objective.lower, objective.upper = np.array([-1.0]), np.array([0.2])
    found = minimize(objective, method="lbfgs", tolerance=1e-3)  # type: ignore[arg-type]
    assert found.status == "converged" and abs(found.theta[0]) < 1e-2


def test_a_minimum_on_a_bound_is_one() -> None:
    objective = Parabola(np.nan)
    objective.lower, objective.upper = np.array([-1.0]), np.array([-0.25])
    found = minimize(objective, method="lbfgs")  # type: ignore[arg-type]
    assert found.status == "converged" and found.theta[0] == -0.25
