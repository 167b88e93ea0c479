"""Intervals end where the profile of the loss has risen by that of one standard error."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.optimize import FailedTrial
from simphys.optimize.likelihood import profile_intervals


class Curve:
    """Loss of residuals that are functions of theta [2]: (exp(a) - 1)/0.3 and (a + b)/0.1; a wall beyond a = 1."""

    labels = ["a", "b"]
    start = np.array([0.1, 0.2])
    lower = np.array([-np.inf, -np.inf])
    upper = np.array([np.inf, np.inf])

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        if theta[0] > 1:
            raise FailedTrial("beyond the wall")
        one, other = (np.exp(theta[0]) - 1) / 0.3, (theta[0] + theta[1]) / 0.1
        gradient = np.array([one * np.exp(theta[0]) / 0.3 + other / 0.1, other / 0.1])
        return 0.5 * (one**2 + other**2), gradient

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    jacobian = residuals

    def until(self, fraction: float) -> Curve:
        raise NotImplementedError


@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_the_interval_of_a_curved_profile_has_its_two_sides(sigma: float) -> None:
    found = profile_intervals(Curve(), np.zeros(2), np.array([0.3, 0.32]), sigma)
    # The profile of a is 0.5 ((exp(a) - 1) / 0.3)^2.
    assert found.below[0] == pytest.approx(np.log(1 - 0.3 * sigma), rel=2e-3)
    assert found.above[0] == pytest.approx(np.log(1 + 0.3 * sigma), rel=2e-3)
    assert found.below[1] < 0 < found.above[1] and -found.below[1] < found.above[1]
    np.testing.assert_allclose(found.theta, 0, atol=1e-3)


def test_a_bound_ends_no_interval() -> None:
    bounded = Curve()
    bounded.upper = np.array([0.1, np.inf])
    found = profile_intervals(bounded, np.zeros(2), np.array([0.3, 0.32]), 1.0)
    assert np.isnan(found.above[0]) and found.below[0] == pytest.approx(np.log(0.7), rel=5e-3)
