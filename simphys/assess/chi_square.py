"""The unit of chi^2: the meaning of a difference of 1 in it, also where a scene does not state the noise.

Residuals are divided by sigma. Where it is stated, chi^2 counts in units of the noise, and a difference of 1 is one
standard error. Where it is not, sigma is 1 unit of the column, and chi^2 would depend on that unit. There differences
are divided by the variance s^2 of the residuals that the best fit leaves,

    s^2 = chi^2 / (N - p)                    N samples, p unknowns

Before a fit s^2 is the least of two numbers, which are both too large rather than too small: that of the residuals that
no change of the unknowns removes, to first order, and that of what a sample's neighbours in time do not tell about it.
With a sample y and the value m between its neighbours, interpolated linearly, an oscillation at the frequency w has
m = cos(w dt) y, and a parabola m = y + constant: m - (a + c y) is noise. Source: Gasser, Sroka and Jennen-Steinmetz
1986, Biometrika 73, for c = 1.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from simphys.experiment.misfits import sigma_is_stated
from simphys.experiment.objective import SceneObjective
from simphys.experiment.observe import Observations
from simphys.experiment.setup import Measurement, Setup

from .series import along_time, list_columns

Array = np.ndarray[Any, Any]

LEAST_NOISE = 1e-4
"""Noise, relative to the scatter of the values, below which differences are those of rounding and of searches' ends."""


def unit_of_chi_square(setup: Setup, loss: float, unknowns: int) -> float:
    """Return what differences of chi^2 are to be divided by: 1 if the scene states its noise, else s^2.

    loss: that of the best fit that is known, half of its chi^2; unknowns: their number.
    """
    return 1.0 if sigma_is_stated(setup) else _at_least(setup, _variance(setup, loss, unknowns))


def unit_before_fit(objective: SceneObjective[Any], jacobian: Array) -> float:
    """Return the same before a fit, from the recording and the residuals at the start.

    jacobian [m, p]: that at the start. Errors: optimize.FailedTrial.
    """
    setup: Setup = objective.scene
    if sigma_is_stated(setup):
        return 1.0
    residuals = objective.residuals(objective.start)
    left = residuals - jacobian @ np.linalg.lstsq(jacobian, residuals, rcond=None)[0]
    at_start = _variance(setup, 0.5 * float(left @ left), objective.start.size)
    return _at_least(setup, float(np.fmin(at_start, _variance_of_neighbours(setup))))


def compare_neighbours(times: Array, values: Array, weights: Array) -> tuple[float, int]:
    """Sum the squares that samples leave where their neighbours are known, in units of 1/sqrt(weight).

    times [n] increase; values and weights [n, S], which are 0 where missing. Returns the sum and its degrees of
    freedom, 0 where there are too few samples.
    """
    if len(times) < 3:
        return 0.0, 0
    there = ((weights[:-2] > 0) & (weights[1:-1] > 0) & (weights[2:] > 0)).astype(float)
    count = there.sum(axis=0)
    before = ((times[2:] - times[1:-1]) / (times[2:] - times[:-2]))[:, None]
    own = _about_mean(values[1:-1], there, count)
    between = _about_mean(before * values[:-2] + (1 - before) * values[2:], there, count)
    squares = (own**2).sum(axis=0)
    slope = (own * between).sum(axis=0) / np.where(squares > 0, squares, 1.0)
    each = 1 / np.where(weights > 0, weights, 1.0)
    variance = before**2 * each[:-2] + (1 - before) ** 2 * each[2:] + slope**2 * each[1:-1]
    enough = count > 2  # a mean and a slope are found
    found = ((between - slope * own) ** 2 / variance).sum(axis=0)
    return float(found[enough].sum()), int((count[enough] - 2).sum())


def _about_mean(values: Array, there: Array, count: Array) -> Array:
    """Subtract the mean of each column of values [n, S]; 0 where there is none."""
    return np.asarray(there * (values - (there * values).sum(axis=0) / np.maximum(count, 1)))


def _variance(setup: Setup, loss: float, unknowns: int) -> float:
    """Return chi^2 per degree of freedom; NaN if there are none."""
    freedom = sum([int(np.count_nonzero(seen.weights)) for seen in _list_measurements(setup)]) - unknowns
    return 2 * loss / freedom if freedom > 0 else np.nan


def _variance_of_neighbours(setup: Setup) -> float:
    """Return the variance of the residuals that neighbouring samples tell; NaN if they tell nothing.

    Noise with a memory is alike in neighbours: it does not show there.
    """
    total, count = 0.0, 0
    for seen in _list_measurements(setup):
        if isinstance(seen, Observations) and any(each.has_memory for each in seen.channels):
            return np.nan
        values, weights = (along_time(seen, each.reshape(-1)) for each in (seen.values, seen.weights))
        for _, columns in list_columns(seen):
            rows = (weights[:, columns] > 0).any(axis=1)
            squares, freedom = compare_neighbours(seen.times[rows], values[rows, columns], weights[rows, columns])
            total, count = total + squares, count + freedom
    return total / count if count else np.nan


def _at_least(setup: Setup, variance: float) -> float:
    """Return a variance of residuals, but at least LEAST_NOISE^2 of that of the values; never 0."""
    squares, count = 0.0, 0
    for seen in _list_measurements(setup):
        values, weights = (along_time(seen, each.reshape(-1)) for each in (seen.values, seen.weights))
        for _, columns in list_columns(seen):
            there = weights[:, columns] > 0
            some = values[:, columns][there]
            if some.size:
                squares += float(np.sum(weights[:, columns][there] * (some - some.mean()) ** 2))
                count += some.size
    least = LEAST_NOISE**2 * squares / max(count, 1)
    return float(np.fmax(variance, max(least, sys.float_info.min)))


def _list_measurements(setup: Setup) -> list[Measurement]:
    return [part.observations for part in setup.parts if part.observations is not None]
