"""A smoothed loss: both estimates of its gradient are right by closed forms, and the mixture takes the better one."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.optimize import (
    FailedTrial,
    Interrupted,
    MemoryLog,
    RandomizedSmoothing,
    Result,
    minimize,
)
from simphys.optimize.randomized import Estimate, estimate

Loss = Callable[[np.ndarray], tuple[float, Any]]
NORMAL = NormalDist()
MANY = 4000


class Toy:
    """Loss with the gradient that a simulator would give: that of the branch taken. Evaluation `interrupt_at`
    is a Ctrl-C."""

    def __init__(self, loss: Loss, start: Any, lower: float = -np.inf, upper: float = np.inf) -> None:
        self.loss = loss
        self.start = np.array(start, float)
        self.lower, self.upper = np.full(self.start.size, lower), np.full(self.start.size, upper)
        self.labels = [f"unknown {i}" for i in range(self.start.size)]
        self.interrupt_at: int | None = None
        self.asked = 0

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        self.asked += 1
        if self.asked == self.interrupt_at:
            raise KeyboardInterrupt
        assert np.all(self.lower <= theta) and np.all(theta <= self.upper)
        loss, gradient = self.loss(theta)
        return loss, np.broadcast_to(np.asarray(gradient, float), theta.shape).copy()


def toy(*arguments: Any) -> Any:
    """Make a Toy, for searches that need only value and gradient."""
    return Toy(*arguments)


def smoothed(loss: Loss, at: Any, radius: float = 0.3, lower: float = -np.inf, **settings: Any) -> Estimate:
    settings = {"samples": MANY, **settings}
    with np.errstate(all="ignore"):
        objective = toy(loss, at, lower)
        return estimate(objective, objective.start, RandomizedSmoothing(radius=radius, **settings))


def zeroth_order(loss: Loss, at: Any, **settings: Any) -> Estimate:
    found = smoothed(loss, at, accuracy=1.0, **settings)
    assert found.mixture.alpha == 0
    return found


def step(theta: np.ndarray) -> tuple[float, float]:
    """Step: 0 below 0, 1 above; its gradient is 0 almost everywhere."""
    return float(theta[0] > 0), 0.0


def wall(theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Loss that drops by 1 when the ball clears the wall at 1; the gradient before it points away from the wall."""
    return float(0.05 * theta[0] ** 2 + (theta[0] < 1)), 0.1 * theta


def wave(theta: np.ndarray) -> tuple[float, np.ndarray]:
    return float(np.sin(4 * theta[0])), 4 * np.cos(4 * theta)


CURVATURE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 3.0]])


def bowl(theta: np.ndarray) -> tuple[float, np.ndarray]:
    return float(0.5 * theta @ CURVATURE @ theta), CURVATURE @ theta


def test_for_a_quadratic_the_first_order_is_exact_and_chosen() -> None:
    theta, radius = np.array([0.5, -1.0, 0.2]), 0.3
    found = smoothed(bowl, theta, radius, samples=32)
    np.testing.assert_allclose(found.gradient, CURVATURE @ theta, rtol=1e-12)  # odd terms cancel in each pair
    assert found.mixture.alpha > 1 - 1e-12 and not found.mixture.limited
    assert found.mixture.variance_first < 1e-20 < found.mixture.variance_zeroth
    assert found.mixture.plain_loss == bowl(theta)[0]
    whole = smoothed(bowl, theta, radius)
    raised = 0.5 * radius**2 * np.trace(CURVATURE)
    assert whole.loss == pytest.approx(bowl(theta)[0] + raised, abs=4 * raised / math.sqrt(MANY / 2))


@pytest.mark.parametrize("at", [-0.4, 0.0, 0.2])
def test_for_a_jump_the_zeroth_order_is_the_density_and_the_first_is_zero(at: float) -> None:
    found, radius = smoothed(step, [at]), 0.3
    exact = math.exp(-0.5 * (at / radius) ** 2) / (radius * math.sqrt(2 * math.pi))
    assert abs(found.gradient[0] - exact) < 3 * math.sqrt(found.mixture.variance_zeroth) < 0.2 * exact
    assert found.mixture.alpha == 0 and found.mixture.limited
    assert found.mixture.variance_first == 0  # so the variances alone would give alpha = 1
    assert found.loss == pytest.approx(NORMAL.cdf(at / radius), abs=0.02)


def test_standard_errors_are_those_of_the_estimates() -> None:
    exact = 4 * math.cos(4 * 0.1) * math.exp(-0.5 * (4 * 0.3) ** 2)  # sin(4 x), damped by the Gaussian
    each = [zeroth_order(wave, [0.1], samples=64, seed=seed) for seed in range(100)]
    errors = np.array([(found.gradient[0] - exact) / math.sqrt(found.mixture.variance_zeroth) for found in each])
    assert abs(errors.mean()) < 3 / math.sqrt(100)
    assert 0.8 < errors.std() < 1.25
    mixed = np.array([smoothed(wave, [0.1], samples=64, seed=seed).gradient[0] for seed in range(100)])
    assert abs(mixed.mean() - exact) < 3 * mixed.std() / math.sqrt(100)


def test_the_first_order_of_a_smooth_loss_is_unbiased_with_less_variance() -> None:
    found = smoothed(wave, [0.1], radius=0.05, samples=400)
    exact = 4 * math.cos(4 * 0.1) * math.exp(-0.5 * (4 * 0.05) ** 2)
    assert found.mixture.alpha > 0.99
    assert found.mixture.variance_first < 0.01 * found.mixture.variance_zeroth
    assert abs(found.gradient[0] - exact) < 3 * math.sqrt(found.mixture.variance_first)


def test_near_a_wall_the_mixture_turns_to_the_zeroth_order_which_points_over_it() -> None:
    far, near = smoothed(wall, [-1.0], samples=32), smoothed(wall, [0.9], samples=32)
    assert far.mixture.alpha > 0.99 and far.gradient[0] == pytest.approx(-0.1)
    assert near.mixture.alpha == 0 and near.mixture.limited
    assert wall(np.array([0.9]))[1][0] > 0 > near.gradient[0]


def test_a_jump_that_few_pairs_straddle_is_not_taken_for_noise() -> None:
    hits = [smoothed(wall, [0.4], samples=16, seed=seed) for seed in range(20)]  # the wall is two radii away
    seen = [found.loss < 0.97 for found in hits]
    assert 1 < sum(seen) < 15
    assert all((found.mixture.alpha == 0) == hit for found, hit in zip(hits, seen, strict=True))


def test_the_accuracy_bounds_the_share_of_a_first_order_that_contradicts_the_zeroth() -> None:
    def slope_with_a_step(theta: np.ndarray) -> tuple[float, float]:
        return float(3 * theta[0] - 2 * (theta[0] > 0)), 3.0

    exact = 3 - 2 / math.sqrt(2 * math.pi)  # at the step, with the radius 1
    shares = []
    for accuracy in (1.5, 2.0, 3.0):
        found = smoothed(slope_with_a_step, [0.0], radius=1.0, accuracy=accuracy)
        epsilon = 2 * math.sqrt(found.mixture.variance_zeroth)
        assert abs(found.gradient[0] - exact) < accuracy * epsilon
        assert found.mixture.limited and found.mixture.alpha_by_variance > 0.99
        shares.append(found.mixture.alpha)
    np.testing.assert_allclose(shares, shares[0] * np.array([1, 2, 4]))  # alpha |g1 - g0| = (accuracy - 1) epsilon


def test_for_a_stiff_contact_the_first_order_is_right_but_too_noisy() -> None:
    width = 1e-3

    def ramp(theta: np.ndarray) -> tuple[float, float]:
        return float(np.clip(theta[0] / width, 0, 1)), float(0 < theta[0] < width) / width

    exact = (NORMAL.cdf(0.05 / 0.1) - NORMAL.cdf((0.05 - width) / 0.1)) / width
    found = smoothed(ramp, [0.05], radius=0.1)
    assert found.mixture.variance_first > 20 * found.mixture.variance_zeroth
    assert found.mixture.alpha < 0.05
    assert abs(found.gradient[0] - exact) < 3 * math.sqrt(found.mixture.variance_zeroth)


def test_if_only_the_gradient_overflows_the_zeroth_order_is_used() -> None:
    found = smoothed(lambda theta: (float(theta[0] ** 2), np.inf if theta[0] > 1 else 2 * theta), [1.0])
    assert found.mixture.alpha == 0 and found.mixture.variance_first == np.inf
    assert abs(found.gradient[0] - 2) < 3 * math.sqrt(found.mixture.variance_zeroth)


def test_beyond_bounds_the_loss_is_that_at_the_bound_in_both_orders() -> None:
    exact = NORMAL.cdf(0.1 / 0.3)  # derivative of E max(0.1 + w, 0)

    def height(theta: np.ndarray) -> tuple[float, float]:
        return float(theta[0]), 1.0  # a Toy is never evaluated beyond its bounds

    first = smoothed(height, [0.1], lower=0.0, accuracy=1e9)
    zeroth = zeroth_order(height, [0.1], lower=0.0)
    assert first.mixture.alpha > 0.5
    for found in (first, zeroth):
        assert abs(found.gradient[0] - exact) < 3 * math.sqrt(found.mixture.variance_zeroth)


def test_samples_follow_from_the_seed_and_theta() -> None:
    smoothing = RandomizedSmoothing(radius=0.1, samples=6)
    theta = np.array([1.0, 2.0])
    shifts = smoothing.perturbations(theta)
    assert shifts.shape == (3, 2)
    np.testing.assert_array_equal(shifts, smoothing.perturbations(theta.copy()))
    assert not np.isclose(shifts, smoothing.perturbations(theta + 1e-15)).any()
    assert not np.isclose(shifts, RandomizedSmoothing(radius=0.1, samples=6, seed=1).perturbations(theta)).any()


def test_a_sample_that_fails_fails_the_estimate() -> None:
    with pytest.raises(FailedTrial, match="the loss of a sample is nan"):
        smoothed(lambda theta: (np.nan if theta[0] > 0.2 else 0.0, 0.0), [0.0])
    with pytest.raises(FailedTrial, match="differ by more than the largest finite number"):
        smoothed(lambda theta: (1e200 * theta[0], 1e200), [0.0])


# --- searches


SMOOTHING = RandomizedSmoothing(radius=0.3, samples=16)


def over_the_wall(method: Any = "adam", smoothing: RandomizedSmoothing | None = SMOOTHING, **settings: Any) -> Result:
    settings = {"iterations": 100, "learning_rate": 0.05, **settings}
    return minimize(settings.pop("objective", toy(wall, [0.5])), method=method, smoothing=smoothing, **settings)


@pytest.mark.parametrize("method", ["adam", "gradient_descent"])
def test_a_wall_that_stops_a_plain_search_is_crossed_by_a_smoothed_one(method: Any) -> None:
    rate = None if method == "gradient_descent" else 0.05
    stuck, found = (over_the_wall(method, how, learning_rate=rate) for how in (None, SMOOTHING))
    assert stuck.theta[0] < 0.5 and stuck.loss >= 1 and stuck.mixture is None
    assert found.theta[0] > 1 and found.loss < 0.2
    assert found.mixture is not None and found.mixture.plain_loss == wall(found.theta)[0] < 0.2


def test_the_history_holds_every_mixture_and_the_best_has_the_lowest_smoothed_loss() -> None:
    found = over_the_wall()
    assert len(found.history) == 101
    best = min(found.history, key=lambda record: record.loss)
    assert found.mixture == best.mixture and found.loss == best.loss
    again = estimate(toy(wall, [0.5]), best.theta, SMOOTHING)
    assert again.loss == best.loss and again.mixture == best.mixture
    shares = [record.mixture.alpha for record in found.history if record.mixture is not None]
    assert min(shares) == 0 and max(shares) > 0.9


@pytest.mark.parametrize("evaluation", [1, 5, 18, 400])
def test_an_interrupted_search_ends_as_if_it_had_not_been(evaluation: int) -> None:
    whole, log = over_the_wall(), MemoryLog()
    interrupted = toy(wall, [0.5])
    interrupted.interrupt_at = evaluation
    with pytest.raises(Interrupted):
        over_the_wall(objective=interrupted, log=log)
    rest = toy(wall, [0.5])
    resumed = over_the_wall(objective=rest, log=log)
    np.testing.assert_array_equal(resumed.theta, whole.theta)
    assert [record.mixture for record in resumed.history] == [record.mixture for record in whole.history]
    assert rest.asked == 17 * (101 - (evaluation - 1) // 17)  # finished estimates are not repeated


def test_more_iterations_go_on_from_the_log() -> None:
    log = MemoryLog()
    over_the_wall(iterations=10, log=log)
    assert over_the_wall(log=log).loss == over_the_wall().loss


def test_a_trial_with_a_failed_sample_is_survived() -> None:
    def steep(theta: np.ndarray) -> tuple[float, np.ndarray]:
        if theta[0] > 2:
            raise FailedTrial("beyond the stability limit")
        return float(-theta[0]), -np.ones(1)

    found = over_the_wall(objective=toy(steep, [0.0]))
    assert found.failed_trials > 0 and "failed trial" in found.message
    assert 0.5 < found.theta[0] < 2 and math.isfinite(found.loss)


def test_a_start_whose_samples_fail_is_an_error_that_names_the_radius() -> None:
    with pytest.raises(InputError, match=r"finite at the start.*or a smaller radius of the smoothing"):
        over_the_wall(objective=toy(lambda theta: (np.nan if theta[0] > 0.6 else 0.0, 0.0), [0.5]))


def test_a_start_around_which_nothing_changes_is_no_success() -> None:
    found = over_the_wall(objective=toy(step, [-9.0]))
    assert found.status == "failed" and "raise the smoothing's radius or samples" in found.message


def test_a_plain_search_that_finds_no_gradient_says_what_may_help() -> None:
    found = over_the_wall(objective=toy(step, [-0.1]), smoothing=None)
    assert "the gradient at the start is zero" in found.message and "smoothing may help" in found.message


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"radius": 0.0}, "radius must be positive; found 0.0"),
        ({"radius": np.inf}, "radius must be positive; found inf"),
        ({"samples": 1}, "samples must be an even number, 4 or more; found 1. Samples come in pairs"),
        ({"samples": 7}, "samples must be an even number, 4 or more; found 7"),
        ({"accuracy": 0.5}, "accuracy must be 1 or more; found 0.5"),
        ({"seed": -1}, "seed must not be negative; found -1"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RandomizedSmoothing(**{"radius": 0.1, **wrong})


@pytest.mark.parametrize("method", ["least_squares", "lbfgs"])
def test_other_methods_take_no_smoothing(method: Any) -> None:
    with pytest.raises(InputError, match=f"smoothing belongs to the methods adam and .*; found {method}"):
        over_the_wall(method, learning_rate=None)
