"""Fits from several starts: do they agree?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective
from simphys.optimize.mapping import Carried, Map

from .chi_square import unit_of_chi_square
from .criteria import Criterion
from .draws import draw_starts
from .optimum import describe_values
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]
Fit = Callable[[SceneObjective[Any]], optimize.Result]

STARTS = 8
SAME_LOSS, SAME_VALUE = 0.5, 1.0
"""Differences of the loss (half of chi^2) in its unit, and of values in standard errors, up to which optima are one."""


@dataclass(frozen=True)
class Starts:
    """Fits from several starts; those that could not begin have a loss of infinity."""

    start: Array
    """Starts [n, p]."""
    theta: Array
    """Ends [n, p]."""
    loss: Array
    """Losses at the ends [n]."""
    same: Array
    """True for those that ended where the fit did [n]."""
    unit: float = 1.0
    """Divisor of differences of losses, see chi_square.py."""


def try_starts(
    objective: SceneObjective[Any],
    found: optimize.Result,
    errors: Array,
    fit: Fit,
    *,
    until: float,
    each: Map = map,
) -> Starts:
    """Fit from up to STARTS starts, as long as the clock, `time.monotonic()`, is before `until`; at least from two.

    errors [p]: standard errors of theta, by which ends are compared. `each` computes the fits.
    """
    starts: list[Array] = []

    def draws() -> Iterator[Array]:
        for start in draw_starts(objective, STARTS, objective.scene.config.runtime.seed):
            if len(starts) >= 2 and time.monotonic() > until:
                return
            starts.append(start)
            yield start

    ends, losses = zip(*each(partial(_fit_from, Carried(objective), fit), draws()), strict=True)
    theta, reached = np.array(ends), np.array(losses)
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.nanmax(np.abs(theta - found.theta) / np.where(errors > 0, errors, np.nan), axis=1, initial=0)
    best = min(found.loss, float(reached.min()))
    unit = unit_of_chi_square(objective.scene, best, found.theta.size)
    same = (np.abs(reached - found.loss) < SAME_LOSS * unit) & (away < SAME_VALUE)
    return Starts(np.array(starts), theta, reached, same, unit)


def _fit_from(objective: Carried[SceneObjective[Any]], fit: Fit, start: Array) -> tuple[Array, float]:
    """Fit from a start [p]; return the end [p] and its loss, infinity for a start that blows up."""
    try:
        result = fit(objective.value.with_start(start))
    except InputError:
        return start, np.inf
    return result.theta, result.loss if result.horizon == 1 else np.inf


def judge_starts(tried: Starts, found: optimize.Result, uncertainty: Uncertainty) -> Criterion:
    """Judge the agreement of fits from several starts with the fit that was found, of this uncertainty."""
    count, same = len(tried.loss), int(tried.same.sum())
    worse = (tried.loss - found.loss) / tried.unit
    better = -float(worse.min())
    words = f"{same} of {count} starts end at the fit"
    if better > SAME_LOSS:
        values = describe_values(uncertainty, tried.theta[int(np.argmin(tried.loss))])
        remedy = f"Start [unknowns] from the better one: {values}. All of its values are in assessment/starts."
        words += f"; one ends better, by {2 * better:.3g} in chi^2"
        return Criterion("starts tried", same, "failed", words, remedy)
    rivals = int(np.sum(~tried.same & (np.abs(worse) < SAME_LOSS)))
    if rivals:
        remedy = "Other values fit as well: observe more, or fix an unknown."
        return Criterion("starts tried", same, "doubtful", f"{words}, {rivals} as well with other values", remedy)
    if 2 * same < count:
        remedy = 'The search depends on its start: try optimizer.horizon = "growing", or closer bounds.'
        return Criterion("starts tried", same, "doubtful", f"{words}, the others at worse optima", remedy)
    return Criterion("starts tried", same, "passed", words)
