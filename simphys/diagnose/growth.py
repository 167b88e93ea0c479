"""How a quantity grows along time: one size for all fields of a state, and the rate of exponential growth.

Sizes are kept as natural logarithms, since what grows exponentially leaves the range of floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simphys.simulator import Array, Arrays

SKIPPED = 0.25
"""The first part of the way, which is left out of a fit: there the fastest direction has not yet prevailed."""
FEWEST = 8
"""Values that a fit takes at least."""
E_FOLDS = 3.0
"""Growth by less than exp(3) may be algebraic: a sum over equal terms grows like time itself."""


@dataclass(frozen=True)
class Rate:
    """A finite-time Lyapunov exponent: the slope of log|.|, fitted by least squares.

    Time runs the way the quantity is propagated: forward for tangents, back from the end for adjoints.
    """

    value: float
    """d log|.| / dt [1/s]; growth is positive, decay negative."""
    spread: float
    """Half of the difference between the slopes of the first and the second half of the range [1/s]."""
    begin: float
    """Where the fitted range begins [s]."""
    end: float
    """Where it ends [s]."""

    @property
    def exponential(self) -> bool:
        """Whether this is exponential growth without doubt."""
        return self.value > self.spread and self.value * (self.end - self.begin) > E_FOLDS


def log_norms(values: Array) -> Array:
    """log of the Euclidean norm of each row of values [T, ...]: -inf where it is 0, NaN where a value is not finite."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(flat).max(axis=1, initial=0.0)
        scaled = flat / np.where(size > 0, size, 1.0)[:, None]  # squares of the values themselves may overflow
        return np.log(size) + np.log(np.where(size > 0, np.linalg.norm(scaled, axis=1), 1.0))


def balance(logs: Arrays) -> dict[str, float]:
    """The mean log of each field [T]: its typical size, by which fields of different units are made comparable.

    Of an oscillation it is the amplitude; the phase, in which position and velocity take turns, drops out of their
    combined size. A field that is 0 throughout is left out.
    """
    return {name: float(np.mean(log[np.isfinite(log)])) for name, log in logs.items() if np.isfinite(log).any()}


def combine(logs: Arrays, typical: Mapping[str, float]) -> Array:
    """log of the norm over all fields, each in units of its typical size, [T]; NaN where one of them is."""
    total = np.where(np.any([np.isnan(log) for log in logs.values()], axis=0), np.nan, -np.inf)
    for name, mean in typical.items():
        with np.errstate(invalid="ignore"):
            total = np.logaddexp(total, 2 * (logs[name] - mean))
    return total / 2


def fit_rate(time: Array, log_size: Array) -> Rate | None:
    """The rate at which log_size [T] rises over ascending times [T, s], without the first quarter of the way.

    Values that are not finite do not count. None where too few are left.
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
