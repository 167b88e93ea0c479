"""A growing horizon fits many oscillations from 30 % off, where a fit of the whole horizon goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.optimize import minimize
from simphys.optimize.evaluations import Evaluations
from simphys.optimize.horizon import HorizonGrowth
from simphys.optimize.problem import StageProblem

STARTS = [[1.3, 0.7, 1.3], [1.3, 1.3, 1.3], [0.7, 0.7, 0.7], [0.7, 1.3, 0.7]]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("method", ["least_squares", "lbfgs"])
def test_it_finds_the_fit_that_the_whole_horizon_misses(
    method: Any, start: list[float], from_residuals: Any, oscillation: Any
) -> None:
    full = minimize(from_residuals(oscillation, start), method=method)
    growing = minimize(from_residuals(oscillation, start), method=method, horizon="growing")
    assert full.loss > 100  # nothing is explained
    assert growing.success and growing.loss < 0.42
    np.testing.assert_allclose(growing.theta, [1, 1, 1], atol=0.01)


def test_adam_finds_it_too(from_residuals: Any, oscillation: Any) -> None:
    objective = from_residuals(oscillation, STARTS[0])
    found = minimize(objective, method="adam", horizon="growing", iterations=3000)
    assert found.success and found.loss < 0.42


def test_stages_grow_as_far_as_the_last_optimum_predicts_and_start_where_it_is(
    from_residuals: Any, oscillation: Any
) -> None:
    found = minimize(from_residuals(oscillation, STARTS[0]), horizon="growing")
    horizons = sorted({record.horizon for record in found.history})
    assert horizons[0] == 1 / 32  # 400 / 64 residuals are less than 3 per unknown
    assert horizons[-1] == found.horizon == 1
    assert 3 <= len(horizons) < 6  # fewer than doubling takes
    stages = {record.stage for record in found.history}
    assert stages == set(range(len(stages))) and found.history[-1].stages == len(stages)
    for stage in range(1, len(stages)):
        before = [record for record in found.history if record.stage == stage - 1]
        now = [record for record in found.history if record.stage == stage]
        np.testing.assert_array_equal(now[0].theta, min(before, key=lambda record: record.loss).theta)


def test_a_stage_that_fails_is_tried_again_on_a_shorter_horizon() -> None:

    class Rugged:
        labels, start = ["x"], np.array([0.5])
        lower, upper = np.array([-9.0]), np.array([9.0])

        def __init__(self, fraction: float = 1.0) -> None:
            self.fraction = fraction

        def residuals(self, theta: np.ndarray) -> np.ndarray:
            count = round(64 * self.fraction)
            late = np.full(count, 100.0 * (0.4 < self.fraction < 1))  # such horizons cannot be fitted
            return np.full(count, theta[0]) + late + 0.01 * (-1.0) ** np.arange(count)

        def jacobian(self, theta: np.ndarray) -> np.ndarray:
            return np.ones((round(64 * self.fraction), 1))

        def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
            raise NotImplementedError

        def until(self, fraction: float) -> Rugged:
            return Rugged(fraction)

    growth = HorizonGrowth(
        lambda fraction, at: StageProblem(
            Rugged(fraction), Evaluations(), start=at, iterations=9, tolerance=1e-8, report=lambda record: None
        ),
        np.array([0.5]),
    )
    assert growth.decide(0.25, np.array([0.0])).accepted
    refused = growth.decide(0.5, np.array([0.0]))
    assert not refused.accepted and refused.farther == 0.375
    assert growth.decide(0.375, np.array([0.0])).accepted


def test_an_unknown_that_the_first_stages_do_not_determine_is_held(from_residuals: Any, oscillation: Any) -> None:
    late = np.arange(400) >= 300

    def residuals(theta: np.ndarray) -> np.ndarray:
        return oscillation(theta[:3]) + late * (theta[3] - 1)

    found = minimize(from_residuals(residuals, [1.3, 0.7, 1.3, 5.0]), horizon="growing")
    assert {float(record.theta[3]) for record in found.history if record.horizon <= 0.5} == {5.0}
    assert found.success
    np.testing.assert_allclose(found.theta, [1, 1, 1, 1], atol=0.02)


def test_only_the_whole_horizon_decides_about_success(from_residuals: Any, oscillation: Any) -> None:
    found = minimize(from_residuals(oscillation, STARTS[0]), horizon="growing", iterations=2)
    assert found.status == "iteration limit"


def test_an_optimum_that_blows_up_on_a_longer_horizon_is_a_failure(from_residuals: Any, oscillation: Any) -> None:
    def fragile(theta: np.ndarray) -> np.ndarray:
        return np.where(np.arange(400) < 150, oscillation(theta), np.nan)

    found = minimize(from_residuals(fragile, STARTS[0]), horizon="growing")
    assert found.status == "failed" and 0.37 < found.horizon < 0.375  # just before sample 150
    assert "the optimum on 0.373 of the horizon blows up" in found.message
    np.testing.assert_allclose(found.theta, [1, 1, 1], atol=0.05)


def test_stages_end_at_the_noise(from_residuals: Any, oscillation: Any) -> None:
    truth = oscillation(np.array([1, 1, 1]))

    def clean(theta: np.ndarray) -> np.ndarray:
        return (oscillation(theta) - truth) / 0.05  # in units of the noise that is stated

    objective = from_residuals(clean, STARTS[0])
    unknown = minimize(objective, horizon="growing")
    objective.is_whitened = True
    stated = minimize(objective, horizon="growing")
    rounding = 1e-6 * np.sqrt(np.mean(clean(np.array(STARTS[0])) ** 2))
    for found, noise in ((unknown, rounding), (stated, 1.0)):
        np.testing.assert_allclose(found.theta, [1, 1, 1], atol=1e-6)
        ends = {record.stage: record for record in found.history}
        again = [end for stage, end in ends.items() if stage + 1 in ends and ends[stage + 1].horizon == end.horizon]
        assert all([np.sqrt(2 * end.loss / round(400 * end.horizon)) > noise for end in again])


def test_a_stage_that_ends_at_the_noise_has_not_failed() -> None:

    class Noisy:
        labels, start, is_whitened = ["x"], np.array([5.0]), True
        lower, upper = np.array([-9.0]), np.array([9.0])

        def __init__(self, fraction: float) -> None:
            self.fraction = fraction

        def residuals(self, theta: np.ndarray) -> np.ndarray:
            late = np.arange(round(64 * self.fraction)) >= 16  # the first quarter shows no noise
            return np.where(late, 1.0, 1e-9) + theta[0]

    def problem_at(fraction: float, at: np.ndarray) -> StageProblem:
        noisy: Any = Noisy(fraction)
        return StageProblem(noisy, Evaluations(), start=at, iterations=9, tolerance=1e-8, report=lambda record: None)

    growth = HorizonGrowth(problem_at, np.array([5.0]))
    assert growth.decide(0.25, np.array([0.0])).accepted
    assert growth.decide(0.5, np.array([0.0])).accepted
