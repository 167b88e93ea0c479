"""Whiteness of residuals, and standard errors that allow for residuals correlated in time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from simphys.optimize import correlated_covariance, correlation, standard_errors, whiteness

TIMES = np.linspace(0, 20, 600)
DESIGN = np.stack([np.cos(2 * TIMES), np.exp(-TIMES / 8), np.ones_like(TIMES)], axis=1)


def noise(seed: int, memory: float, count: int = 600) -> np.ndarray:
    """Noise of unit variance whose neighbours have this correlation."""
    white = np.random.default_rng(seed).standard_normal(count + 200)
    return lfilter([np.sqrt(1 - memory**2)], [1, -memory], white)[200:]


def fit_line(noisy: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The estimates, their usual errors, and those that allow for correlation."""
    found = np.linalg.lstsq(DESIGN, noisy, rcond=None)[0]
    residuals = DESIGN @ found - noisy
    usual = standard_errors(DESIGN, residuals)
    there = np.ones((len(noisy), 1), bool)
    robust = correlated_covariance([(DESIGN[:, None], residuals[:, None], there)], np.zeros((0, 3)), usual.spread)
    return found, usual.values, np.sqrt(np.diag(robust))


@pytest.mark.parametrize("memory", [0.0, 0.6, 0.9])
def test_errors_are_the_scatter_of_fits_to_noise_with_a_memory(memory: float) -> None:
    found, usual, robust = (
        np.array(each) for each in zip(*[fit_line(noise(s, memory)) for s in range(300)], strict=True)
    )
    scatter = found.std(axis=0)
    ratio = np.median(robust, axis=0) / scatter
    assert (ratio > 0.75).all() and (ratio < 1.2).all()
    if memory == 0.9:  # a slow decay and a constant take slow noise for their own
        assert (scatter[1:] / np.median(usual, axis=0)[1:] > 3).all()


def test_white_noise_is_found_white_as_often_as_the_probability_says() -> None:
    probabilities = [whiteness(noise(s, 0.0)[:, None], np.ones((600, 1), bool)).p_value for s in range(300)]
    assert np.mean(np.array(probabilities) < 0.1) == pytest.approx(0.1, abs=0.06)


def test_noise_with_a_memory_is_found_out_and_its_autocorrelation_told() -> None:
    test = whiteness(noise(0, 0.5)[:, None], np.ones((600, 1), bool))
    assert test.p_value < 1e-9
    np.testing.assert_allclose(test.autocorrelation[:3], [1, 0.5, 0.25], atol=0.12)


def test_missing_samples_make_no_pairs() -> None:
    residuals, there = noise(0, 0.5)[:, None], np.ones((600, 1), bool)
    there[::7] = False
    spoilt = np.where(there, residuals, 1e6)
    assert whiteness(spoilt, there).first == pytest.approx(0.5, abs=0.1)


def test_few_samples_and_no_residuals_are_not_tested() -> None:
    assert np.isnan(whiteness(np.ones((5, 1)), np.ones((5, 1), bool)).p_value)
    assert np.isnan(whiteness(np.zeros((50, 1)), np.ones((50, 1), bool)).p_value)


def test_many_samples_take_another_way_to_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    residuals, there = noise(0, 0.9)[:, None], np.ones((600, 1), bool)
    there[::7] = False
    residuals = np.where(there, residuals, 0.0)
    jacobian = DESIGN[:, None] * there[..., None]

    def compute() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        covariance = correlated_covariance([(jacobian, residuals, there)], np.zeros((0, 3)), np.eye(3))
        return (*correlation.autocorrelation(residuals, there, 150), covariance)

    direct = compute()
    monkeypatch.setattr(correlation, "MANY_PRODUCTS", 0)
    for one, other in zip(direct, compute(), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


def test_the_errors_of_very_many_samples_take_no_time_that_is_their_square() -> None:
    """Noise that never forgets: each of 25,000 lags would take a pass over 100,000 samples."""
    drift = np.cumsum(np.random.default_rng(0).standard_normal(100_000))[:, None]
    there = np.ones_like(drift, bool)
    jacobian = np.ones((100_000, 1, 1))
    assert correlation.find_bandwidth(drift, there) > 5000
    found = correlated_covariance([(jacobian, drift, there)], np.zeros((0, 1)), np.eye(1) / 100_000)
    assert np.isfinite(found).all()
