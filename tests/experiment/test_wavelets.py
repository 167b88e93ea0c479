"""Signals of sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.experiment.wavelets import PERIODS, WAVELETS, gaussian, ricker, sine_burst

FREQUENCY = 12.0


@pytest.mark.parametrize("name", WAVELETS)
def test_a_wavelet_is_at_most_1_and_comes_and_goes(name: str) -> None:
    t = np.arange(0, 2, 1e-4)
    found = WAVELETS[name](t, FREQUENCY)
    assert np.abs(found).max() < 1 + 1e-12
    assert np.abs(found).max() == pytest.approx(1, abs=0.03)
    np.testing.assert_allclose(found[[0, -1]], 0, atol=1e-8)
    np.testing.assert_allclose(WAVELETS[name](t + 0.3, FREQUENCY, 0.3)[0], WAVELETS[name](0.0, FREQUENCY, 0.0))


@pytest.mark.parametrize("wavelet", [ricker, sine_burst])
def test_its_spectrum_is_largest_at_its_frequency_and_has_no_mean(wavelet: Any) -> None:
    dt, steps = 1e-3, 8000
    spectrum = np.abs(np.fft.rfft(wavelet(dt * np.arange(steps), FREQUENCY)))
    assert np.fft.rfftfreq(steps, dt)[np.argmax(spectrum)] == pytest.approx(FREQUENCY, abs=1 / (steps * dt))
    assert spectrum[0] < 1e-6 * spectrum.max()


def test_a_ricker_wavelet_is_the_negative_second_derivative_of_a_gaussian() -> None:
    t, eps = np.linspace(0, 0.3, 50), 1e-4
    second = (gaussian(t + eps, FREQUENCY) - 2 * gaussian(t, FREQUENCY) + gaussian(t - eps, FREQUENCY)) / eps**2
    np.testing.assert_allclose(ricker(t, FREQUENCY), -second / (2 * (np.pi * FREQUENCY) ** 2), atol=1e-5)


def test_a_burst_is_over_after_its_periods() -> None:
    t = np.linspace(-0.1, 1.0, 2000)
    found = sine_burst(t, FREQUENCY)
    assert not found[(t < 0) | (t > PERIODS / FREQUENCY)].any()
    np.testing.assert_allclose(np.count_nonzero(np.diff(np.sign(found[found != 0]))), 2 * PERIODS - 1)
