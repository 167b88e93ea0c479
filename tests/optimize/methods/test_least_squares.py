"""Least squares survives a Jacobian that blows up, which scipy's trf alone does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.optimize import MemoryLog, minimize


def with_jacobian_lost(objective: Any, lost: Any) -> Any:
    """Make the objective's Jacobian NaN if lost(theta), while the residuals stay finite."""
    plain = objective.jacobian
    objective.jacobian = lambda theta: plain(theta) * (np.nan if lost(theta) else 1.0)
    return objective


def test_a_jacobian_that_blows_up_at_an_accepted_point_is_survived(from_residuals: Any, rosenbrock: Any) -> None:
    # trf evaluates the Jacobian only at points that it has accepted.
    taken = minimize(from_residuals(rosenbrock, [-1.2, 1.0])).history[2].theta
    objective = from_residuals(rosenbrock, [-1.2, 1.0])
    found = minimize(with_jacobian_lost(objective, lambda theta: np.linalg.norm(theta - taken) < 0.05))
    assert found.failed_trials > 0
    assert found.success
    np.testing.assert_allclose(found.theta, [1, 1], atol=1e-6)


def test_a_jacobian_that_is_lost_around_the_minimum_is_a_failure(from_residuals: Any, bowl: Any) -> None:
    objective = with_jacobian_lost(from_residuals(bowl, [0.0, 0.0]), lambda theta: theta[0] > 1)
    log = MemoryLog()
    found = minimize(objective, log=log)
    assert not found.success and found.theta[0] <= 1 and np.isfinite(found.loss)
    assert minimize(objective, log=log).theta.tobytes() == found.theta.tobytes()


def test_a_jacobian_that_blows_up_at_the_start_is_an_input_error(from_residuals: Any, bowl: Any) -> None:
    with pytest.raises(InputError, match="finite at the start"):
        minimize(with_jacobian_lost(from_residuals(bowl, [0.0, 0.0]), lambda theta: True))


def test_an_exact_fit_converges(from_residuals: Any) -> None:
    time = np.linspace(0, 3, 20)
    found = minimize(from_residuals(lambda theta: theta[0] * (np.exp(-theta[1] * time)) - np.exp(-time), [1.3, 0.7]))
    assert found.success
    np.testing.assert_allclose(found.theta, [1, 1], rtol=1e-12)
