"""Doubles of a fit: other values that fit the samples as well, of which its search knows nothing.

Mirror images: a motion, or what a channel sees of it, may be the same where values change their signs together, as the
forces between charges do.

Aliases: of samples at equal intervals h, an oscillation of frequency f cannot be told from those of k / h - f and
k / h + f (Nyquist 1928). So a motion with fewer than two samples in a period has doubles of other stiffness.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd import no_grad
from simphys.autograd.errors import InputError
from simphys.experiment.misfits import predict
from simphys.experiment.objective import SceneObjective
from simphys.experiment.observe import Observations
from simphys.experiment.setup import Setup
from simphys.experiment.trajectory import compute_trajectory

from .chi_square import unit_of_chi_square
from .criteria import Criterion, worst
from .resolution import FEW_STEPS, find_period
from .starts import SAME_LOSS
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

DISTINCT = 4.0
"""Distance of a mirror image from the fit, in standard errors, from which it is another solution."""
FEW_GROUPS = 4
"""Number of unknowns up to which all sets of them are mirrored; of more, each one, and all."""
UNEVEN, MANY = 0.05, 0.1
"""Departure of an interval from a multiple of the median one, and the part of such intervals, that end an alias."""
MOST_PROBES = 5000
"""Time steps at which the fitted motion is seen, from its first sample on: its beginning swings most."""
MOST_NUMBERS = 10_000_000
"""Numbers of the states at these steps."""


def judge_mirrors(
    objective: SceneObjective[Any], uncertainty: Uncertainty, criteria: Sequence[Criterion]
) -> Iterator[Criterion]:
    """Doubt a fit whose values have a mirror image that fits as well; each trial is a simulation.

    Nothing is said of a fit that the other criteria fail.
    """
    if worst(criteria) == "failed":
        return
    loss = 0.5 * float(uncertainty.residuals @ uncertainty.residuals)
    unit = unit_of_chi_square(objective.scene, loss, len(uncertainty.labels))
    for names, theta in _list_mirrors(objective, uncertainty):
        try:
            residuals = objective.residuals(theta)
        except (InputError, optimize.FailedTrial):
            continue
        if 0.5 * float(residuals @ residuals) - loss < SAME_LOSS * unit:
            found = f"{' and '.join(names)} with the opposite sign fit as well"
            remedy = (
                "The data do not tell the signs, which are those of the start. Where one is known, say so by the "
                f"bounds of an unknown ({names[0]}), or observe what tells it."
            )
            yield Criterion("mirror image", len(names), "doubtful", found, remedy)
            return


def _list_mirrors(objective: SceneObjective[Any], uncertainty: Uncertainty) -> Iterator[tuple[tuple[str, ...], Array]]:
    """List unknowns that change their signs together, and theta [p] with them, within bounds and far from the fit."""
    groups: dict[str, Array] = {}
    for block in objective.unknowns.blocks:
        if not block.log and block.smooth is None:
            own = groups.setdefault(block.unknown or block.label, np.zeros(len(uncertainty.labels), bool))
            own[block.where] = True
    sizes = range(1, len(groups) + 1) if len(groups) <= FEW_GROUPS else sorted({1, len(groups)})
    errors = np.fmax(uncertainty.standard.values, uncertainty.robust)
    for names in [chosen for size in sizes for chosen in combinations(groups, size)]:
        theta = uncertainty.theta.copy()
        mirrored = np.any([groups[name] for name in names], axis=0)
        theta[mirrored] *= -1
        with np.errstate(invalid="ignore", divide="ignore"):
            away = np.abs(theta - uncertainty.theta) / errors
        each_moves = all(np.nan_to_num(away[groups[name]]).max() > DISTINCT for name in names)
        if each_moves and (theta >= objective.lower).all() and (theta <= objective.upper).all():
            yield names, theta


def judge_aliases(scene: Setup) -> Iterator[Criterion]:
    """Doubt a fit whose motion has fewer than two samples in a period; one simulation, if steps are that fine."""
    found = [each for part in scene.parts for each in _find_aliases(part)]
    if found:
        samples, words = min(found)
        remedy = (
            "Samples at equal intervals fit an oscillation of another frequency as well: record more often than twice "
            "a period, or at unequal intervals, or bound [unknowns] to the frequency that is known otherwise."
        )
        yield Criterion("alias", samples, "doubtful", words, remedy)


def _find_aliases(scene: Setup) -> Iterator[tuple[float, str]]:
    """Yield samples in a period, and words, of the channels with fewer than two."""
    seen = scene.observations
    if not isinstance(seen, Observations):
        return
    rows = [np.flatnonzero(seen.weights[:, c] > 0) for c in range(len(seen.channels))]
    apart = [_find_interval(seen.times[some]) for some in rows]
    longest = max([each for each in apart if np.isfinite(each)], default=0.0)
    steps = min(MOST_PROBES, MOST_NUMBERS // max(sum([each.size for each in scene.state.tensors()]), 1))
    if 2 * longest < FEW_STEPS * scene.dt or steps * scene.dt < 4 * longest:
        return  # such an oscillation has too few time steps as well, or cannot be seen
    times, motion = _predict_densely(scene, seen, steps)
    for c, channel in enumerate(seen.channels):
        period = find_period(times, motion[:, c]) if channel.modulo is None else np.inf
        if period < 2 * apart[c]:
            who, unit = f"{scene.name}: " * bool(scene.name), scene.units.time
            words = f"{channel.label} swings in {period:.3g} {unit}, and has a sample every {apart[c]:.3g} {unit}"
            yield float(period / apart[c]), who + words


def _find_interval(times: Array) -> float:
    """Return the interval of which those of the samples are multiples; NaN if they are not."""
    if len(times) < 3:
        return np.nan
    gaps = np.diff(times)
    interval = float(np.median(gaps))
    uneven = np.abs(gaps / interval - np.round(gaps / interval)) > UNEVEN
    return np.nan if np.mean(uneven) > MANY else interval


def _predict_densely(scene: Setup, seen: Observations, steps: int) -> tuple[Array, Array]:
    """Predict the channels [N, C] at each time step from the first sample on, at most at so many."""
    first = min(int(seen.times[0] / scene.dt), max(scene.steps - steps, 0))
    times = scene.dt * np.arange(first, min(first + steps, scene.steps) + 1)
    shape = (len(times), len(seen.channels))
    probe = replace(seen, times=times, values=np.zeros(shape), weights=np.ones(shape), validation=None)
    watched = replace(scene, observations=probe)
    with no_grad():
        return times, np.asarray(predict(watched, compute_trajectory(watched, only_seen=True)).data, float)
