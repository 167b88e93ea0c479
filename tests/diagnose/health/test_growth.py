"""Norms along time as logarithms, and their growth rate."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.diagnose.health.growth import combine_norms, fit_rate, log_norms, typical_sizes


def test_norms_work_beyond_the_range_of_squares() -> None:
    sizes = np.array([1e-300, 1.0, 1e300])
    values = sizes[:, None, None] * np.array([[3.0, 0.0], [0.0, -4.0]])
    np.testing.assert_allclose(log_norms(values), np.log(5.0) + np.log(sizes), rtol=1e-13)


def test_zero_gives_minus_infinity_and_a_value_that_is_not_finite_nan() -> None:
    found = log_norms(np.array([[0.0, 0.0], [np.inf, 1.0], [1.0, np.nan]]))
    assert found[0] == -np.inf
    assert np.isnan(found[1:]).all()


def test_the_phase_of_an_oscillation_cancels_in_the_combined_norm() -> None:
    phase = 7.0 * (np.arange(10_000) + 0.5) * 2 * np.pi / 10_000
    logs = {"position": log_norms(np.cos(phase)[:, None]), "velocity": log_norms(250 * np.sin(phase)[:, None])}
    size = combine_norms(logs, typical_sizes(logs))
    assert np.ptp(size) < 1e-3  # the norm of either alone goes down to zero


def test_a_field_that_is_zero_throughout_is_left_out() -> None:
    logs = {"position": log_norms(np.full((5, 1), 3.0)), "velocity": log_norms(np.zeros((5, 1)))}
    assert list(typical_sizes(logs)) == ["position"]
    np.testing.assert_allclose(combine_norms(logs, typical_sizes(logs)), 0, atol=1e-13)


def test_the_rate_ignores_the_transient_of_the_first_quarter() -> None:
    time = np.linspace(0, 8, 801)
    rate = fit_rate(time, np.where(time < 2, -40 * time, 0.3 * time))
    assert rate is not None
    assert rate.value == pytest.approx(0.3, rel=1e-12)
    assert rate.spread < 1e-12
    assert (rate.begin, rate.end) == (2.0, 8.0)


def test_the_spread_measures_the_difference_of_the_halves() -> None:
    time = np.linspace(0, 8, 801)
    rate = fit_rate(time, np.where(time < 5, 0.2 * time, 1 + 0.6 * (time - 5)))
    assert rate is not None
    assert rate.spread == pytest.approx(0.2, rel=0.01)


def test_rows_that_are_zero_or_not_finite_do_not_count() -> None:
    time = np.linspace(0, 8, 801)
    log_size = 0.3 * time
    log_size[::3], log_size[1::7], log_size[:400] = -np.inf, np.nan, -np.inf
    rate = fit_rate(time, log_size)
    assert rate is not None
    assert rate.value == pytest.approx(0.3, rel=1e-12)
    assert rate.begin > 4 + (8 - 4) / 4 - 1e-9


@pytest.mark.parametrize("log_size", [np.full(100, -np.inf), np.where(np.arange(100) < 95, np.nan, 1.0)])
def test_too_little_gives_no_rate(log_size: np.ndarray) -> None:
    assert fit_rate(np.arange(100.0), log_size) is None


def test_linear_growth_does_not_count_as_exponential() -> None:
    time = np.linspace(0.01, 100, 10_000)
    linear, exponential = fit_rate(time, np.log(time)), fit_rate(time, 0.1 * time)
    assert linear is not None and exponential is not None
    assert not linear.exponential
    assert exponential.exponential
