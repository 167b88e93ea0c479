"""Every method finds minima, respects bounds, reports its final status honestly, and keeps the best iterate."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.optimize import METHODS, FailedTrial, IterationRecord, minimize

Settings = dict[str, Any]
ALL = sorted(METHODS)
QUICK: dict[str, Settings] = {
    "least_squares": {},
    "lbfgs": {},
    "adam": {"learning_rate": 0.1, "iterations": 2000},
    "gradient_descent": {"learning_rate": 0.3, "iterations": 400},
}


@pytest.mark.parametrize("method", ALL)
def test_the_minimum_of_a_bowl_is_found(method: Any, from_residuals: Any, bowl: Any) -> None:
    found = minimize(from_residuals(bowl, [0.0, 0.0]), method=method, **QUICK[method])
    assert found.success and found.status == "converged"
    np.testing.assert_allclose(found.theta, [2, -1], atol=1e-4)
    assert found.loss == pytest.approx(0.5)


@pytest.mark.parametrize("method", ALL)
def test_bounds_hold_in_every_trial_and_the_minimum_within_them_is_found(
    method: Any, from_residuals: Any, bowl: Any
) -> None:
    objective = from_residuals(bowl, [0.5, 0.0], lower=[0.0, -np.inf], upper=[1.5, 3.0])  # asserts on every trial
    found = minimize(objective, method=method, **QUICK[method])
    assert found.success
    np.testing.assert_allclose(found.theta, [1.5, -1], atol=1e-4)


@pytest.mark.parametrize("method", ALL)
def test_a_start_on_a_bound_may_leave_it(method: Any, from_residuals: Any, bowl: Any) -> None:
    found = minimize(from_residuals(bowl, [0.0, 3.0], lower=[0, -2], upper=[5, 3]), method=method, **QUICK[method])
    np.testing.assert_allclose(found.theta, [2, -1], atol=1e-4)


@pytest.mark.parametrize("method", ["least_squares", "lbfgs"])
def test_the_valley_of_rosenbrock_is_followed_to_its_end(method: Any, from_residuals: Any, rosenbrock: Any) -> None:
    found = minimize(from_residuals(rosenbrock, [-1.2, 1.0]), method=method, iterations=100)
    assert found.success
    np.testing.assert_allclose(found.theta, [1, 1], atol=1e-4)


@pytest.mark.parametrize(("method", "rate", "steps"), [("adam", 0.05, 3000), ("gradient_descent", 4e-3, 8000)])
def test_first_order_methods_follow_it_with_patience(
    method: Any, rate: float, steps: int, from_residuals: Any, rosenbrock: Any
) -> None:
    objective = from_residuals(rosenbrock, [-1.2, 1.0])
    found = minimize(objective, method=method, learning_rate=rate, iterations=steps, tolerance=1e-6)
    np.testing.assert_allclose(found.theta, [1, 1], atol=0.05)


@pytest.mark.parametrize("method", ["least_squares", "lbfgs"])
def test_rosenbrock_within_bounds_ends_where_the_valley_leaves_them(
    method: Any, from_residuals: Any, rosenbrock: Any
) -> None:
    objective = from_residuals(rosenbrock, [-1.2, 1.0], lower=[-2, -2], upper=[0.8, 2])
    found = minimize(objective, method=method, iterations=100)
    assert found.success
    np.testing.assert_allclose(found.theta, [0.8, 0.64], atol=1e-4)


@pytest.mark.parametrize("method", ALL)
def test_running_out_of_iterations_is_not_a_success(method: Any, from_residuals: Any, rosenbrock: Any) -> None:
    found = minimize(from_residuals(rosenbrock, [-1.2, 1.0]), method=method, iterations=3)
    assert found.status == "iteration limit" and not found.success
    assert found.iterations == 3


@pytest.mark.parametrize("method", ALL)
def test_a_start_at_the_minimum_is_converged(method: Any, from_residuals: Any, bowl: Any) -> None:
    found = minimize(from_residuals(bowl, [2.0, -1.0]), method=method)
    assert found.success
    np.testing.assert_array_equal(found.theta, [2, -1])


@pytest.mark.parametrize("method", ALL)
def test_a_tiny_unit_of_the_loss_changes_nothing(method: Any, from_residuals: Any, bowl: Any) -> None:
    settings = {**QUICK[method]}
    if method == "gradient_descent":
        settings["learning_rate"] *= 2.0**80
    small = minimize(from_residuals(lambda t: 2.0**-40 * bowl(t), [0.0, 0.0]), method=method, **settings)
    assert small.success
    np.testing.assert_allclose(small.theta, [2, -1], atol=1e-4)


@pytest.mark.parametrize("method", ALL)
def test_a_wall_of_nan_in_the_way_of_the_first_steps_is_survived(method: Any, from_residuals: Any, bowl: Any) -> None:
    walled = from_residuals(bowl, [0.0, 0.0], blows_up=lambda theta: theta[0] > 2.05 or theta[1] < -1.1)
    found = minimize(walled, method=method, **QUICK[method])
    np.testing.assert_allclose(found.theta, [2, -1], atol=1e-4)
    assert found.success


@pytest.mark.parametrize("method", ALL)
def test_a_minimum_beyond_a_wall_is_never_reported_as_found(method: Any, from_residuals: Any, bowl: Any) -> None:
    walled = from_residuals(bowl, [0.0, 0.0], blows_up=lambda theta: theta[0] > 1)
    found = minimize(walled, method=method, **QUICK[method])
    assert not found.success
    assert found.failed_trials > 0 and f"{found.failed_trials} failed trial" in found.message
    assert np.isfinite(found.loss) and found.theta[0] <= 1
    assert found.loss < 0.5 * 5 + 0.5  # lower than at the start: the best so far


@pytest.mark.parametrize("failure", [FailedTrial("left the finite numbers"), FloatingPointError(), OverflowError()])
@pytest.mark.parametrize("method", ALL)
def test_an_objective_may_raise_in_a_trial(method: Any, failure: Exception, from_residuals: Any, bowl: Any) -> None:
    def beyond_a_wall(theta: np.ndarray) -> np.ndarray:
        if theta[0].real > 1:
            raise failure
        return bowl(theta)

    found = minimize(from_residuals(beyond_a_wall, [0.0, 0.0]), method=method, **QUICK[method])
    assert found.failed_trials > 0 and not found.success and np.isfinite(found.loss)


@pytest.mark.parametrize("method", ALL)
def test_a_start_that_blows_up_is_an_input_error(method: Any, from_residuals: Any, bowl: Any) -> None:
    with pytest.raises(InputError, match=r"finite at the start.*smaller time step"):
        minimize(from_residuals(bowl, [0.0, 0.0], blows_up=lambda theta: True), method=method)


@pytest.mark.parametrize("method", ALL)
def test_every_iterate_is_in_the_history_once_and_reported_at_once(
    method: Any, from_residuals: Any, rosenbrock: Any
) -> None:
    delivered: list[IterationRecord] = []
    objective = from_residuals(rosenbrock, [-1.2, 1.0])
    found = minimize(objective, method=method, iterations=8, on_iteration=delivered.append)
    assert tuple(delivered) == found.history
    assert [record.index for record in delivered] == list(range(9))
    np.testing.assert_array_equal(delivered[0].theta, objective.start)
    assert delivered[0].step_length == 0
    for before, now in pairwise(delivered):
        loss, gradient = objective.value_and_gradient(now.theta)
        assert now.loss == pytest.approx(loss, rel=1e-12)
        assert now.gradient_norm == pytest.approx(np.linalg.norm(gradient), rel=1e-9)
        assert now.step_length == pytest.approx(np.linalg.norm(now.theta - before.theta))
    assert found.loss == min(record.loss for record in delivered)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "newton"}, "method must be one of least_squares, lbfgs, adam, gradient_descent; found newton"),
        ({"horizon": "long"}, "horizon must be full or growing; found long"),
        ({"iterations": 0}, "iterations must be at least 1; found 0"),
        ({"tolerance": 0.0}, "tolerance must be from 1e-15"),
        ({"learning_rate": 0.1}, "least_squares has no learning rate"),
        ({"method": "adam", "learning_rate": -1.0}, "learning_rate must be positive"),
    ],
)
def test_wrong_settings_are_refused(wrong: Settings, message: str, from_residuals: Any, bowl: Any) -> None:
    with pytest.raises(InputError, match=message):
        minimize(from_residuals(bowl, [0.0, 0.0]), **wrong)


def test_bounds_that_exclude_the_start_name_the_unknown(from_residuals: Any, bowl: Any) -> None:
    with pytest.raises(InputError, match="the bounds of unknown 1 must hold its start; found 1 to 2 with the start 0"):
        minimize(from_residuals(bowl, [0.0, 0.0], lower=[-1, 1], upper=[1, 2]))


def test_bounds_without_room_are_refused(from_residuals: Any, bowl: Any) -> None:
    with pytest.raises(InputError, match="the bounds of unknown 0 must be in order and apart"):
        minimize(from_residuals(bowl, [0.0, 0.0], lower=[0, -1], upper=[0, 1]))
