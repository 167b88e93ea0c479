"""An interrupted run that is started again ends bitwise like one that was never interrupted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.optimize import METHODS, Interrupted, MemoryLog, Result, minimize

ALL = sorted(METHODS)


def bits(result: Result) -> list[bytes]:
    """All numbers of a result, as bytes."""
    numbers = [result.theta, result.loss, result.iterations, result.evaluations, result.failed_trials]
    for record in result.history:
        numbers += [record.stage, record.index, record.loss, record.gradient_norm, record.step_length, record.theta]
    return [np.asarray(number).tobytes() for number in numbers] + [result.status.encode(), result.message.encode()]


@pytest.mark.parametrize("horizon", ["full", "growing"])
@pytest.mark.parametrize("method", ALL)
def test_interrupted_and_resumed_equals_uninterrupted(
    method: Any, horizon: Any, from_residuals: Any, oscillation: Any
) -> None:
    def objective(interrupt_at: int | None = None) -> Any:
        return from_residuals(
            oscillation, [1.3, 0.7, 1.3], blows_up=lambda theta: theta[1] < 0.6, interrupt_at=interrupt_at
        )

    settings: dict[str, Any] = {"method": method, "horizon": horizon, "iterations": 6}
    whole = objective()
    expected = minimize(whole, **settings)
    total = len(whole.asked)
    for number in sorted({1, 2, 3, total // 2, total - 1, total}):
        log = MemoryLog()
        with pytest.raises(Interrupted):
            minimize(objective(interrupt_at=number), log=log, **settings)
        rest = objective()
        assert bits(minimize(rest, log=log, **settings)) == bits(expected)
        assert len(rest.asked) == total - (number - 1)  # recorded evaluations are not repeated
        again = objective()
        assert bits(minimize(again, log=log, **settings)) == bits(expected)
        assert not again.asked


def test_a_run_may_be_interrupted_again_and_again(from_residuals: Any, rosenbrock: Any) -> None:
    expected = minimize(from_residuals(rosenbrock, [-1.2, 1.0]), method="lbfgs")
    log = MemoryLog()
    for _ in range(5):
        with pytest.raises(Interrupted):
            minimize(from_residuals(rosenbrock, [-1.2, 1.0], interrupt_at=4), method="lbfgs", log=log)
    assert bits(minimize(from_residuals(rosenbrock, [-1.2, 1.0]), method="lbfgs", log=log)) == bits(expected)


def test_a_finished_run_goes_on_with_more_iterations(from_residuals: Any, rosenbrock: Any) -> None:
    log = MemoryLog()
    objective = from_residuals(rosenbrock, [-1.2, 1.0])
    assert minimize(objective, iterations=3, log=log).status == "iteration limit"
    assert minimize(objective, iterations=100, log=log).success


def test_an_interruption_carries_the_best_so_far(from_residuals: Any, rosenbrock: Any) -> None:
    with pytest.raises(Interrupted) as caught:
        minimize(from_residuals(rosenbrock, [-1.2, 1.0], interrupt_at=12), method="gradient_descent")
    result = caught.value.result
    assert result.status == "interrupted" and not result.success
    assert result.iterations == 10
    assert result.loss == min(record.loss for record in result.history) < result.history[0].loss
    assert isinstance(caught.value, KeyboardInterrupt)


def test_an_interruption_before_the_first_evaluation_carries_the_start(from_residuals: Any, bowl: Any) -> None:
    with pytest.raises(Interrupted) as caught:
        minimize(from_residuals(bowl, [0.0, 0.0], interrupt_at=1))
    np.testing.assert_array_equal(caught.value.result.theta, [0, 0])
    assert np.isnan(caught.value.result.loss)


def test_a_log_of_another_start_is_refused(from_residuals: Any, bowl: Any) -> None:
    log = MemoryLog()
    minimize(from_residuals(bowl, [0.0, 0.0]), log=log)
    with pytest.raises(InputError, match=r"resume: .*theta = \[0.1, 0.0\] where \[0.0, 0.0\] was recorded.*changed"):
        minimize(from_residuals(bowl, [0.1, 0.0]), log=log)


def test_tables_have_rows_of_one_shape(from_residuals: Any, oscillation: Any) -> None:
    log = MemoryLog()
    minimize(from_residuals(oscillation, [1.3, 0.7, 1.3]), horizon="growing", iterations=5, log=log)
    assert "evaluations/horizon_1/jacobian" in log.tables and "evaluations/horizon_0.03125/residuals" in log.tables
    for rows in log.tables.values():
        assert len({tuple((name, array.shape) for name, array in row.items()) for row in rows}) == 1


def test_the_objective_cannot_change_what_is_recorded(from_residuals: Any, bowl: Any) -> None:
    def careless(theta: np.ndarray) -> np.ndarray:
        rows = bowl(theta)
        theta[:] = 77
        return rows

    objective = from_residuals(careless, [0.0, 0.0])
    objective._derivative = from_residuals(bowl, [0.0, 0.0])._derivative
    log = MemoryLog()
    minimize(objective, log=log)
    assert not any((row["theta"] == 77).any() for rows in log.tables.values() for row in rows)
