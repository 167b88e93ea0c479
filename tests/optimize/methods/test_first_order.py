"""Gradient descent and Adam go back from bad steps, and report the best point rather than the last."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.optimize import minimize


def test_gradient_descent_takes_back_a_step_up_and_halves_its_rate(from_residuals: Any, bowl: Any) -> None:
    found = minimize(from_residuals(bowl, [0.0, 0.0]), method="gradient_descent", learning_rate=8.0, iterations=500)
    losses = [record.loss for record in found.history]
    assert found.success and found.failed_trials == 0
    assert np.all(np.diff(losses) <= 1e-9)


def test_the_default_rate_of_gradient_descent_moves_by_a_hundredth_first(from_residuals: Any, bowl: Any) -> None:
    found = minimize(from_residuals(bowl, [0.0, 0.0]), method="gradient_descent", iterations=1)
    np.testing.assert_allclose(found.history[1].theta, [0.005, -0.01])


def test_the_first_step_of_adam_moves_each_unknown_by_its_rate(from_residuals: Any, bowl: Any) -> None:
    found = minimize(from_residuals(bowl, [0.0, 0.0]), method="adam", learning_rate=0.1, iterations=1)
    np.testing.assert_allclose(found.history[1].theta, [0.1, -0.1], rtol=1e-6)


def test_adam_that_settles_higher_than_it_had_been_goes_back(from_residuals: Any, oscillation: Any) -> None:
    # A rate of 0.05 throws the frequency (known to 0.001) into another minimum, where the loss is hundreds.
    found = minimize(from_residuals(oscillation, [1.01, 1.0, 1.001]), method="adam", iterations=3000)
    assert max(record.loss for record in found.history) > 100
    assert found.success and found.loss < 0.42


def test_the_best_iterate_is_returned_where_the_last_is_worse(from_residuals: Any, bowl: Any) -> None:
    found = minimize(from_residuals(bowl, [1.99, -1.0]), method="adam", learning_rate=0.3, iterations=2)
    assert found.loss < found.history[-1].loss
    np.testing.assert_array_equal(found.theta, found.history[0].theta)
