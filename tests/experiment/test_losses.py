"""Losses as residuals: their half squares are what they say, and they are smooth where they must be."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment import losses
from simphys.optimize.robust import RobustKind, RobustLoss


def values(*shape: int, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=True)


def half_square(residuals: Tensor) -> float:
    return 0.5 * float((residuals.data**2).sum())


def test_a_misfit_is_weighted_by_the_noise_and_without_weight_where_a_sample_is_missing() -> None:
    predicted = tensor([[1.0, 5.0], [2.0, 7.0]])
    found = losses.misfit(predicted, [[0.5, 5.0], [0.0, 4.0]], [[1 / 0.1**2, 1.0], [0.0, 4.0]])
    np.testing.assert_allclose(found.data, [[5.0, 0.0], [0.0, 6.0]])


def test_huber_squares_small_residuals_and_is_linear_in_large_ones() -> None:
    found = losses.huber(tensor([0.5, -1.5, 1.5, 4.0, -10.0]), 1.5)
    expected = [0.5 * 0.25, 0.5 * 2.25, 0.5 * 2.25, 1.5 * (4 - 0.75), 1.5 * (10 - 0.75)]  # Huber 1964
    np.testing.assert_allclose(0.5 * found.data**2, expected, rtol=1e-13)
    np.testing.assert_array_equal(np.sign(found.data), [1, -1, 1, 1, -1])


def test_hubers_gradient_is_that_of_squares_inside_and_constant_outside() -> None:
    r = tensor([0.0, 0.5, -1.4, 4.0, -100.0], requires_grad=True)
    losses.total([losses.huber(r, 1.5)]).backward()
    assert r.grad is not None
    np.testing.assert_allclose(r.grad.data, [0.0, 0.5, -1.4, 1.5, -1.5], rtol=1e-12)


@pytest.mark.parametrize("target", [[1.0, -2.0], np.arange(8.0).reshape(4, 2)])
def test_a_mean_square_is_weight_times_mean_over_nodes(target: np.ndarray) -> None:
    states = values(4, 2)
    expected = 3.0 * np.mean(np.sum((states.data - target) ** 2, axis=1))
    assert half_square(losses.mean_square(states, target, 3.0)) == pytest.approx(expected, rel=1e-13)


def test_a_square_of_the_mean_is_weight_times_the_squared_distance_of_the_mean() -> None:
    states = values(4, 2)
    expected = 3.0 * np.sum((states.data.mean(axis=0) - [1.0, -2.0]) ** 2)
    assert half_square(losses.square_of_mean(states, [1.0, -2.0], 3.0)) == pytest.approx(expected, rel=1e-13)
    gradcheck(lambda x: losses.total([losses.square_of_mean(x, [1.0, -2.0], 3.0)]), (states,))


def test_the_target_may_depend_on_unknowns() -> None:
    gradcheck(lambda x, y: losses.total([losses.mean_square(x, y, 2.0)]), (values(3, 2), values(3, 2, seed=1)))


def test_a_running_sum_integrates_over_time() -> None:
    states = values(5, 4, 2)
    expected = 3.0 * 0.1 * np.sum(np.mean(np.sum((states.data - [1, 2]) ** 2, axis=2), axis=1))
    assert half_square(losses.running_sum(states, [1, 2], 3.0, 0.1)) == pytest.approx(expected, rel=1e-13)


def test_regularization_is_weight_times_squared_distance() -> None:
    assert half_square(losses.regularization(tensor([1.0, 4.0]), [0.0, 2.0], 0.7)) == pytest.approx(0.7 * 5.0)


def test_the_total_of_several_terms_is_half_the_sum_of_all_squares_and_differentiable() -> None:
    first, second = values(3), values(2, 2, seed=1)
    total = losses.total([first, second])
    assert float(total) == pytest.approx(half_square(first) + half_square(second), rel=1e-13)
    gradcheck(lambda a, b: losses.total([losses.huber(a, 0.4), losses.misfit(b, 1.0, 2.0)]), (first, second))


@pytest.mark.parametrize("kind", ["huber", "soft_l1", "cauchy", "student_t"])
def test_robust_losses_have_the_right_derivatives(kind: RobustKind) -> None:
    loss = RobustLoss(kind, 1.7)
    r = np.array([-30.0, -2.0, -0.4, 1e-9, 0.3, 1.2, 5.0])
    step = 1e-6
    slope = (loss.rho(r + step) - loss.rho(r - step)) / (2 * step)
    np.testing.assert_allclose(loss.psi(r), slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(loss.dpsi(r), (loss.psi(r + step) - loss.psi(r - step)) / (2 * step), atol=1e-8)
    x = tensor(r, requires_grad=True)
    found = losses.robust(x, loss)
    np.testing.assert_allclose(0.5 * found.data**2, loss.rho(r), rtol=1e-13)
    gradcheck(lambda x: losses.robust(x, loss), (tensor(r[[0, 1, 2, 5, 6]], requires_grad=True),))
    zero = tensor([0.0], requires_grad=True)
    losses.robust(zero, loss).backward()
    assert zero.grad is not None and zero.grad.data[0] == pytest.approx(np.sqrt(loss.dpsi(np.zeros(1))[0]))
