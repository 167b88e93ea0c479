"""A growing horizon fits many oscillations from 30 % off, where a fit of the whole horizon goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.optimize import minimize

STARTS = [[1.3, 0.7, 1.3], [1.3, 1.3, 1.3], [0.7, 0.7, 0.7], [0.7, 1.3, 0.7]]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("method", ["least_squares", "lbfgs"])
def test_it_finds_the_fit_that_the_whole_horizon_misses(
    method: Any, start: list[float], from_residuals: Any, oscillation: Any
) -> None:
    full = minimize(from_residuals(oscillation, start), method=method)
    growing = minimize(from_residuals(oscillation, start), method=method, horizon="growing")
    assert full.loss > 200  # nothing is explained
    assert growing.success and growing.loss < 0.42
    np.testing.assert_allclose(growing.theta, [1, 1, 1], atol=0.01)


def test_adam_finds_it_too(from_residuals: Any, oscillation: Any) -> None:
    objective = from_residuals(oscillation, STARTS[0])
    found = minimize(objective, method="adam", horizon="growing", iterations=1000)
    assert found.success and found.loss < 0.42


def test_stages_double_up_to_the_whole_and_start_where_the_one_before_ended(
    from_residuals: Any, oscillation: Any
) -> None:
    found = minimize(from_residuals(oscillation, STARTS[0]), horizon="growing")
    horizons = sorted({record.horizon for record in found.history})
    assert horizons == [1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1]  # 400 / 64 residuals are less than 3 per unknown
    assert found.horizon == 1 and {record.stages for record in found.history} == {6}
    for stage in range(1, 6):
        before = [record for record in found.history if record.stage == stage - 1]
        now = [record for record in found.history if record.stage == stage]
        np.testing.assert_array_equal(now[0].theta, min(before, key=lambda record: record.loss).theta)


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
    assert found.status == "failed" and found.horizon == 0.25
    assert "the optimum on 0.25 of the horizon blows up" in found.message
    np.testing.assert_allclose(found.theta, [1, 1, 1], atol=0.05)
