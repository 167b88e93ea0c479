"""Predictions between steps: exact for straight lines, second order for curves, differentiable, and within the run."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.experiment.sampling import Sample, plan

from ..helpers.rounding import assert_equal_but_for_rounding

POSITION, VELOCITY = 0, 1


def series(steps: int = 8, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed).normal(size=(steps + 1, 3, 2)), requires_grad=True)


def test_at_steps_the_states_themselves_are_given() -> None:
    x, v = series(), series(seed=1)
    made = plan(np.array([0.0, 0.5, 4.0]), [(POSITION, (2, 1)), (VELOCITY, (0, 0))], dt=0.5, steps=8)
    expected = np.stack([x.data[[0, 1, 8], 2, 1], v.data[[0, 1, 8], 0, 0]], axis=1)
    assert_equal_but_for_rounding(Sample.apply(made, x, v).data, expected)


def test_a_straight_line_is_met() -> None:
    grid = np.arange(9) * 0.25
    line = tensor(np.broadcast_to((3.0 - 2.0 * grid)[:, None, None], (9, 1, 1)).copy())
    times = np.array([0.1, 0.33, 1.999])
    found = Sample.apply(plan(times, [(POSITION, (0, 0))], dt=0.25, steps=8), line, line)
    assert_equal_but_for_rounding(found.data[:, 0], 3.0 - 2.0 * times, size=3.0)


def test_the_error_is_within_an_eighth_of_the_step_squared_times_the_acceleration() -> None:
    times = np.linspace(0, 0.99, 57)
    for steps in (10, 100):
        dt = 1 / steps
        wave = tensor(np.sin(np.arange(steps + 1) * dt).reshape(-1, 1, 1))
        found = Sample.apply(plan(times, [(POSITION, (0, 0))], dt=dt, steps=steps), wave, wave).data[:, 0]
        assert 0.5 * dt**2 / 8 * 0.84 < np.abs(found - np.sin(times)).max() <= dt**2 / 8


def test_the_derivative_is_right_also_for_several_samples_in_one_interval() -> None:
    made = plan(
        np.array([0.1, 0.2, 0.3, 2.7, 4.0]),
        [(POSITION, (1, 0)), (VELOCITY, (2, 1)), (POSITION, (0, 1))],
        dt=0.5,
        steps=8,
    )
    gradcheck(lambda x, v: Sample.apply(made, x, v), (series(), series(seed=1)))
    dot_product_test(lambda x, v: Sample.apply(made, x, v), (series(), series(seed=1)), tolerance=1e-12)


def test_a_field_that_no_channel_sees_gets_no_gradient() -> None:
    x, v = series(), series(seed=1)
    Sample.apply(plan(np.array([0.7]), [(POSITION, (1, 0))], dt=0.5, steps=8), x, v).sum().backward()
    assert x.grad is not None and v.grad is None
    assert np.flatnonzero(x.grad.data.sum(axis=(1, 2))).tolist() == [1, 2]


def test_an_observation_behind_the_last_step_is_refused() -> None:
    with pytest.raises(InputError, match=r"8 steps of 0.5 for an observation at 4.01.*time\.duration"):
        plan(np.array([1.0, 4.01]), [(POSITION, (0, 0))], dt=0.5, steps=8)


def test_a_last_observation_that_misses_the_last_step_by_rounding_is_met() -> None:
    made = plan(np.array([4.0 * (1 + 1e-10)]), [(POSITION, (0, 0))], dt=0.5, steps=8)
    x = series()
    np.testing.assert_allclose(Sample.apply(made, x, x).data, [[x.data[8, 0, 0]]], rtol=1e-8)


def test_no_times_give_no_samples() -> None:
    made = plan(np.zeros(0), [(POSITION, (0, 0))], dt=0.5, steps=8)
    assert Sample.apply(made, series(), series()).shape == (0, 1)
