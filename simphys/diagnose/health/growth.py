"""Growth of a quantity along time: one norm for all fields of a state, and the rate of exponential growth.

Norms are stored as natural logarithms, as exponential growth leaves the range of floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simphys.simulator import Array, Arrays

SKIPPED = 0.25
"""Fraction of the time at the beginning that a fit skips: there the fastest direction does not dominate yet."""
FEWEST = 8
"""Smallest number of values for a fit."""
E_FOLDS = 3.0
"""Smallest growth, exp(3), that counts as exponential: less may be algebraic, like a sum over equal terms."""


@dataclass(frozen=True)
class Rate:
    """Finite-time Lyapunov exponent: the slope of log|.|, fitted by least squares.

    Time runs in the direction of propagation: forward for tangents, backward from the end for adjoints.
    """

    value: float
    """Slope d log|.| / dt [1/s]: positive for growth, negative for decay."""
    spread: float
    """Half of the difference between the slopes of the first and the second half of the range [1/s]."""
    begin: float
    """Begin of the fitted range [s]."""
    end: float
    """End of the fitted range [s]."""

    @property
    def exponential(self) -> bool:
        """True if the growth is clearly exponential."""
        return self.value > self.spread and self.value * (self.end - self.begin) > E_FOLDS


def log_norms(values: Array) -> Array:
    """Compute log of the Euclidean norm of each row of values [T, ...]: -inf for 0, NaN if a value is not finite."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(flat).max(axis=1, initial=0.0)
        scaled = flat / np.where(size > 0, size, 1.0)[:, None]  # squares of the values themselves may overflow
        return np.log(size) + np.log(np.where(size > 0, np.linalg.norm(scaled, axis=1), 1.0))


def typical_sizes(logs: Arrays) -> dict[str, float]:
    """Compute the mean log of each field [T]: its typical size, which makes fields of different units comparable.

    For an oscillation it is the amplitude. In the combined norm the phase cancels, in which position and velocity
    alternate. A field that is 0 throughout is left out.
    """
    return {name: float(np.mean(log[np.isfinite(log)])) for name, log in logs.items() if np.isfinite(log).any()}


def combine_norms(logs: Arrays, typical: Mapping[str, float]) -> Array:
    """Compute log of the norm over all fields, each in units of its typical size, [T]; NaN if one of them is."""
    total = np.where(np.any([np.isnan(log) for log in logs.values()], axis=0), np.nan, -np.inf)
    for name, mean in typical.items():
        with np.errstate(invalid="ignore"):
            total = np.logaddexp(total, 2 * (logs[name] - mean))
    return total / 2


def fit_rate(time: Array, log_size: Array) -> Rate | None:
    """Fit the slope of log_size [T] over ascending times [T, s], without the first quarter of the range.

    Values that are not finite are skipped. None if too few are left.
    """
    there = np.isfinite(log_size)
    if not there.any():
        return None
    time, log_size = time[there], log_size[there]
    begin = time[0] + SKIPPED * (time[-1] - time[0])
    time, log_size = time[time >= begin], log_size[time >= begin]
    if time.size < FEWEST:
        return None
    half = time.size // 2
    first, second = _slope(time[:half], log_size[:half]), _slope(time[half:], log_size[half:])
    return Rate(_slope(time, log_size), abs(first - second) / 2, float(time[0]), float(time[-1]))


def _slope(time: Array, values: Array) -> float:
    centred = time - time.mean()
    return float(centred @ values / (centred @ centred))
