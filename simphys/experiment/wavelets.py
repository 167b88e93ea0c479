"""Wavelets: pulses of sources, by their dominant frequency, with a largest magnitude of 1.

    ricker      (1 - 2 a) exp(-a),  a = (pi f s)^2            the negative second derivative of a Gaussian, scaled
    gaussian    exp(-a)
    sine_burst  sin(2 pi f s) sin(pi f s / n)^2, 0 <= s <= n / f       n = 5 periods in a Hann window

s = t - delay [s] is the time from the middle of the first two and from the beginning of the third; f frequency [Hz].
Ricker's spectrum is largest at f and goes to zero on both sides; that of the Gaussian is largest at 0 and has fallen to
1 / e at f. Source: Ricker 1953; Wang 2015, Frequencies of the Ricker wavelet, equation 1; Harris 1978 for the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

PERIODS = 5
"""Number of periods of a sine burst."""
START = 1.5
"""Periods until the middle of a wavelet that has one, by default: there it begins with 2e-10 of its largest value."""


def ricker(t: Array | float, frequency: float, delay: float | None = None) -> Array:
    """Ricker's wavelet at times t [s], 1 at t = delay, which is 1.5 / frequency by default."""
    a = (np.pi * frequency * (np.asarray(t) - (START / frequency if delay is None else delay))) ** 2
    return np.asarray((1 - 2 * a) * np.exp(-a))


def gaussian(t: Array | float, frequency: float, delay: float | None = None) -> Array:
    """A Gaussian at times t [s], 1 at t = delay, which is 1.5 / frequency by default."""
    a = (np.pi * frequency * (np.asarray(t) - (START / frequency if delay is None else delay))) ** 2
    return np.asarray(np.exp(-a))


def sine_burst(t: Array | float, frequency: float, delay: float | None = None) -> Array:
    """Five periods of a sine, swelling and fading, at times t [s]; they begin at t = delay, by default at once."""
    s = np.asarray(t) - (delay or 0.0)
    inside = (s >= 0) & (s <= PERIODS / frequency)
    return np.asarray(
        np.where(inside, np.sin(2 * np.pi * frequency * s) * np.sin(np.pi * frequency * s / PERIODS) ** 2, 0.0)
    )


WAVELETS = {"ricker": ricker, "gaussian": gaussian, "sine_burst": sine_burst}
"""Wavelets by their names in scene files."""
