"""Recovery: the found values, simulated with noise and fitted again, many times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd import no_grad
from simphys.experiment import misfits
from simphys.experiment.memory_noise import colour
from simphys.experiment.objective import SceneObjective
from simphys.experiment.setup import Setup
from simphys.experiment.several import map_measurements
from simphys.experiment.trajectory import compute_trajectory
from simphys.optimize.mapping import Carried, Map

from .criteria import Criterion
from .quality import LEAST_P, whiteness_of_channels
from .series import Series, list_channels
from .starts import Fit
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

TIMES, FEWEST = 20, 5
NOMINAL, LEVEL = 1.96, 0.95
"""Half width of a confidence interval in standard errors, and its level."""
LEAST_COVERAGE = 0.8
"""Part of the intervals that must hold the truth; 95 % are expected."""
LEAST_P_OF_CHANCE = 1e-3
"""Probability below which missed intervals, or a mean error, are not taken for chance: few fits tell little."""


@dataclass(frozen=True)
class Recovery:
    """Fits to simulated recordings whose true values are known."""

    error: Array
    """Found minus true values in standard errors [n, p]; NaN for unknowns without one."""

    @property
    def coverage(self) -> float:
        """Part of all intervals of 95 % that hold the truth."""
        known = self.error[np.isfinite(self.error)]
        return float(np.mean(np.abs(known) <= NOMINAL)) if known.size else np.nan

    @property
    def bias(self) -> Array:
        """Mean error of each unknown in units of the error of this mean [p]."""
        return self.error.mean(axis=0) / np.maximum(self.error.std(axis=0, ddof=1) / np.sqrt(len(self.error)), 1e-12)


def make_noise(series: Series, tests: dict[str, optimize.Whiteness], random: np.random.Generator) -> Array:
    """Draw noise of variance 1 / weight in the shape of the measured values, correlated in time as the residuals."""
    from scipy.signal import lfilter

    seen = series.seen
    axis = getattr(seen, "axis", 0)
    weights = seen.weights if seen.validation is None else seen.weights + seen.validation
    noise = np.moveaxis(random.standard_normal(seen.values.shape), axis, 0)
    for label, _, columns in list_channels([series]):
        if tests[label].p_value < LEAST_P:
            memory = float(np.clip(tests[label].first, -0.99, 0.99))
            place: Any = (slice(None), columns) if noise.ndim > 1 else slice(None)
            noise[place] = lfilter([np.sqrt(1 - memory**2)], [1, -memory], noise[place], axis=0)
    if (memories := misfits.memories_of(replace(seen, weights=weights))) is not None:
        noise = colour(memories, noise)
    scale = np.where(weights > 0, 1 / np.sqrt(np.where(weights > 0, weights, 1.0)), 0.0)
    return np.asarray(scale * np.moveaxis(noise, 0, axis))


def simulate_recordings(found: Setup, uncertainty: Uncertainty) -> Callable[[np.random.Generator], list[Array]]:
    """Return a function that makes the values of all measurements anew: the found motion with other noise."""
    parts = [part for part in found.parts if part.observations is not None]
    with no_grad():
        motions = compute_trajectory(found, only_seen=True)
        pairs = zip(found.parts, motions if found.experiments else [motions], strict=True)
        predicted = [
            np.asarray(misfits.predict(part, motion).data, np.float64)
            for part, motion in pairs
            if part.observations is not None
        ]
    tests = whiteness_of_channels(uncertainty)

    def make(random: np.random.Generator) -> list[Array]:
        noises = [uncertainty.standard.sigma * make_noise(series, tests, random) for series in uncertainty.series]
        return [p + noise for p, noise in zip(predicted, noises, strict=True)]

    assert len(parts) == len(uncertainty.series)
    return make


def recover(
    objective: SceneObjective[Any],
    uncertainty: Uncertainty,
    fit: Fit,
    *,
    until: float,
    times: int = TIMES,
    each: Map = map,
    on_fit: Callable[[int], None] | None = None,
) -> Recovery:
    """Simulate with the found values, add noise, fit from there: `times` times, or until the clock is past `until`.

    `each` computes the fits; `on_fit` is called with the number of those that are done.
    Errors: optimize.FailedTrial if the found motion is not finite.
    """
    random = np.random.default_rng(objective.scene.config.runtime.seed)
    errors = np.fmax(uncertainty.standard.values, uncertainty.robust)
    make = simulate_recordings(objective.scene_at(uncertainty.theta), uncertainty)

    def draws() -> Iterator[list[Array]]:
        for count in range(times):
            if count >= FEWEST and time.monotonic() >= until:
                return
            yield make(random)

    missed: list[Array] = []
    for theta in each(partial(_fit_again, Carried(objective.with_start(uncertainty.theta)), fit), draws()):
        with np.errstate(invalid="ignore", divide="ignore"):
            missed.append((theta - uncertainty.theta) / errors)
        if on_fit is not None:
            on_fit(len(missed))
    return Recovery(np.array(missed))


def _fit_again(objective: Carried[SceneObjective[Any]], fit: Fit, measured: list[Array]) -> Array:
    """Fit to other measured values; return theta [p]."""
    values = iter(measured)
    again = map_measurements(objective.value.scene, lambda seen: replace(seen, values=next(values)))
    return fit(SceneObjective(again, objective.value.unknowns).with_start(objective.value.start)).theta


def judge_recovery(found: Recovery, labels: tuple[str, ...]) -> Criterion:
    """Judge bias and coverage of the fits to simulated recordings."""
    from scipy.stats import binom, t

    count, coverage = len(found.error), found.coverage
    known = np.isfinite(found.error)
    bias = np.nan_to_num(found.bias)
    place = int(np.argmax(np.abs(bias)))
    held = int(np.count_nonzero(np.abs(found.error[known]) <= NOMINAL))
    by_chance = binom.cdf(held, int(known.sum()), LEVEL)
    words = f"{100 * coverage:.0f} % of the intervals of 95 % hold the truth in {count} simulated fits"
    if coverage < LEAST_COVERAGE and by_chance < LEAST_P_OF_CHANCE:
        remedy = "The errors are too small, or the search goes astray: do not trust the errors."
        return Criterion("recovery", coverage, "doubtful", words, remedy)
    if 2 * t.sf(abs(bias[place]), count - 1) * len(labels) < LEAST_P_OF_CHANCE:
        words += f"; {labels[place]} is biased by {found.error[:, place].mean():+.2g} standard errors"
        remedy = "Correct it by this bias, or give the data more weight where it comes from."
        return Criterion("recovery", coverage, "doubtful", words, remedy)
    return Criterion("recovery", coverage, "passed", words)
