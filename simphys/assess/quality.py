"""Criteria of a fit to a measurement: is it believable, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simphys import optimize
from simphys.experiment.observe import Observations
from simphys.experiment.setup import Setup

from .agreement import judge_agreement
from .bounds import judge_bounds
from .criteria import Criterion, Verdict
from .dissipation import judge_dissipation
from .doubles import judge_aliases
from .holdout import judge_holdout
from .misfit import chi_square_per_freedom, exceeds_noise, is_too_small, judge_freedom, judge_misfit
from .noise import judge_noise
from .series import along_time, list_channels
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

LEAST_P, LEAST_P_OF_EXCESS = 1e-3, 1e-2
"""Probability below which residuals do not count as independent; of such as are larger than the stated noise, too."""
LARGER = 1.1
"""Ratio up to which errors that allow for correlation agree with those of independent residuals."""
ANGLES = {"angle", "orientation"}
"""Fields of states that are angles in rad, where a channel states no unit."""
PART_OF_TURN, FEWEST_WAYS = 0.25, 4
"""Part of a full turn that an angle may move between samples beside its jumps, and the least number of ways."""
LINEAR = 1e-9
"""Relative deviation of a column from a straight line, below which it is no measurement."""
STEP_CHANGE = 1.0
"""Change by half the time step, or by sharper friction, in standard errors, beyond which it matters."""
UNKNOWN, LOST = 1.0, 1e3
"""Standard error, in units of the value and of its scale, beyond which it is hardly determined, or not at all."""
LARGEST_CORRELATION, KNOWN = 0.999, 0.01
"""Correlation of two unknowns beyond which they are doubtful, unless both have a smaller relative error than this."""


def judge_search(result: optimize.Result) -> Criterion:
    """Judge the end of the search."""
    converged = result.status == "converged"
    remedy = "" if converged else "See the message above."
    return Criterion("search", result.loss, "passed" if converged else "failed", result.status, remedy)


def judge(scene: Setup, uncertainty: Uncertainty) -> list[Criterion]:
    """Judge a fit to a measurement by what its residuals and its Jacobian tell."""
    misfit = judge_misfit(scene, uncertainty, white=_judge_whiteness(uncertainty).verdict == "passed")
    doubt = _doubt_both_errors(scene, uncertainty, misfit)
    found = [
        _judge_recording(uncertainty),
        *_judge_turns(uncertainty),
        misfit,
        _judge_whiteness(uncertainty, doubt),
        *judge_freedom(uncertainty),
    ]
    if (noise := judge_noise(scene)) is not None:
        found.append(noise)
    found += [judge_bounds(scene, uncertainty), *_judge_unknowns(uncertainty)]
    found += [*judge_dissipation(uncertainty), *judge_aliases(scene)]
    if (agreement := judge_agreement(scene, uncertainty)) is not None:
        found.append(agreement)
    found.append(_judge_time_step(uncertainty))
    if uncertainty.sharper_friction is not None:
        found.append(_judge_friction(uncertainty.sharper_friction, uncertainty))
    return found if uncertainty.holdout is None else [*found, judge_holdout(uncertainty.holdout)]


def whiteness_of_channels(uncertainty: Uncertainty) -> dict[str, optimize.Whiteness]:
    """Test the residuals of each channel, of each experiment."""
    channels = list_channels(uncertainty.series)
    return {label: optimize.whiteness(series.residuals[:, at], series.there[:, at]) for label, series, at in channels}


def _judge_recording(uncertainty: Uncertainty) -> Criterion:
    """Find columns that hold no measurement: constant ones, and those of time or of row numbers."""
    constant, straight, channels = [], [], list(list_channels(uncertainty.series))
    for label, series, columns in channels:
        seen, some = series.seen, series.there[:, columns]
        values = along_time(seen, seen.values.reshape(-1))
        if np.count_nonzero(some) > 1 and np.ptp(values[:, columns][some]) == 0:
            constant.append(f"{label} is {values[:, columns][some][0]:g} throughout")
        elif isinstance(seen, Observations) and _is_straight(seen.times, values[:, columns][:, 0], some[:, 0]):
            straight.append(f"{label} is a straight line of time or of the row's number")
    count = len(constant) + len(straight)
    if not count:
        return Criterion("recording", 0, "passed", "no channel is constant or a straight line")
    remedy = "Look at the file: observations.channels may name the column of time, of a trial or of nothing."
    verdict: Verdict = "failed" if count == len(channels) else "doubtful"
    return Criterion("recording", count, verdict, "; ".join([*constant, *straight]), remedy)


def _judge_turns(uncertainty: Uncertainty) -> Iterator[Criterion]:
    """Find angles that jump by a full turn, as sensors report them and no motion does, and that are not compared so."""
    for label, series, columns in list_channels(uncertainty.series):
        seen, at = series.seen, columns.start
        if not isinstance(seen, Observations) or seen.channels[at].modulo is not None:
            continue
        turn = {"rad": 2 * np.pi, "deg": 360.0}.get(seen.channels[at].unit)
        turn = 2 * np.pi if turn is None and seen.channels[at].field in ANGLES else turn
        ways = np.abs(np.diff(seen.values[series.there[:, at], at]))
        if turn is None or len(ways) < FEWEST_WAYS:
            continue
        jumps = np.abs(ways - turn) < PART_OF_TURN * turn
        if jumps.any() and np.all(ways[~jumps] < PART_OF_TURN * turn):
            found = f"{label} jumps by a full turn, {np.count_nonzero(jumps)} times"
            remedy = f"Set modulo = {turn:.9g} in its channel, or unwrap the column."
            yield Criterion("turns", int(np.count_nonzero(jumps)), "doubtful", found, remedy)
            return


def _is_straight(times: Array, values: Array, there: Array) -> bool:
    some = np.flatnonzero(there)
    if some.size < 4:
        return False
    for axis in (times[some], some.astype(float)):
        line = np.polynomial.Polynomial.fit(axis, values[some], 1)
        if np.abs(line(axis) - values[some]).max() <= LINEAR * np.ptp(values[some]):
            return True
    return False


def _doubt_both_errors(scene: Setup, uncertainty: Uncertainty, misfit: Criterion) -> str:
    """Say why correlated residuals are no noise, of whatever kind; empty if they may be."""
    if misfit.verdict != "passed" and not is_too_small(scene, misfit):
        return "Residuals are no noise while the misfit is too large: believe neither column of errors."
    memories = [test.first for test in whiteness_of_channels(uncertainty).values()]
    if exceeds_noise(scene, uncertainty, float(np.nan_to_num(memories).max(initial=0.0))):
        size = np.sqrt(chi_square_per_freedom(uncertainty))
        return (
            f"Residuals are {size:.3g} times as large as the stated noise, too: if sigma is right, the model lacks "
            "something, and neither column of errors holds."
        )
    return ""


def _judge_whiteness(uncertainty: Uncertainty, doubt: str = "") -> Criterion:
    """Judge the independence of residuals; `doubt` says why correlated ones are no noise, of whatever kind."""
    tests = whiteness_of_channels(uncertainty)
    known = {label: test for label, test in tests.items() if np.isfinite(test.p_value)}
    if not known:
        return Criterion("white residuals", np.nan, "passed", "too few samples, or no residuals, to test")
    label, test = min(known.items(), key=lambda item: item[1].p_value)
    found = f"Ljung-Box p {test.p_value:.2g}, correlation of neighbours {test.first:.2f} ({label})"
    if test.p_value * len(known) >= (LEAST_P_OF_EXCESS if doubt else LEAST_P):
        return Criterion("white residuals", test.p_value, "passed", found)
    factor = float(_compare_errors(uncertainty).max(initial=1.0))
    remedy = doubt or (
        f"Believe the errors that allow for correlation, up to {factor:.2g} times larger; look for a force that "
        "the model lacks, or a sensor with a memory."
    )
    return Criterion("white residuals", test.p_value, "doubtful", found, remedy)


def _compare_errors(uncertainty: Uncertainty) -> Array:
    """Compute how many times as large errors [p] are that allow for correlation; 1 if they are not larger, or none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = uncertainty.robust / uncertainty.standard.values
    return np.fmax(np.where(np.isfinite(factors), factors, 1.0), 1.0)


def factors_if_correlated(uncertainty: Uncertainty) -> Array:
    """Compute how many times too small the errors [p] for independent residuals are; 1 if residuals pass for such."""
    factors = _compare_errors(uncertainty)
    return np.ones_like(factors) if _judge_whiteness(uncertainty).verdict == "passed" else factors


def doubt_widths(uncertainty: Uncertainty) -> str:
    """Tell that widths found for independent residuals are too small; empty where they are not."""
    largest = float(factors_if_correlated(uncertainty).max(initial=1.0))
    if largest <= LARGER:
        return ""
    return (
        "residuals are correlated: these widths are for independent ones; the errors that allow for it are up to "
        f"{largest:.2g} times as large"
    )


def _judge_unknowns(uncertainty: Uncertainty) -> Iterator[Criterion]:
    """Judge whether the data determine the unknowns at the end."""
    notes = uncertainty.standard.notes
    lost = [
        f"{label} ({note})" for label, note in zip(uncertainty.labels, notes, strict=True) if note[:3] in ("no ", "not")
    ]
    if lost:
        remedy = "Leave one of them out of [unknowns], tie them, or observe more."
        yield Criterion("determined unknowns", len(lost), "failed", ", ".join(lost), remedy)
        return
    if (uncertainty.at_lower | uncertainty.at_upper).all():
        found = "every unknown is at a bound: none has an error"
        yield Criterion("determined unknowns", np.nan, "doubtful", found, "See bounds.")
        return
    errors = np.fmax(uncertainty.standard.values, uncertainty.robust)
    sizes = np.nan_to_num(np.fmin(errors, _relative_errors(uncertainty)))
    place = int(np.argmax(sizes))
    if sizes[place] > UNKNOWN:
        found = f"the error of {uncertainty.labels[place]} is {sizes[place]:.2g} times as large as its value or scale"
        remedy = "The data hardly determine it: leave it out of [unknowns], or observe more."
        verdict: Verdict = "failed" if sizes[place] > LOST else "doubtful"
        yield Criterion("determined unknowns", float(sizes[place]), verdict, found, remedy)
        return
    pairs = np.triu(np.nan_to_num(uncertainty.correlations), 1)
    first, second = np.unravel_index(np.argmax(np.abs(pairs)), pairs.shape)
    largest = float(pairs[first, second])
    found = f"condition {uncertainty.standard.condition:.3g}"
    if largest:
        one, other = uncertainty.labels[int(first)], uncertainty.labels[int(second)]
        found = f"largest correlation {largest:.4g}, of {one} and {other}; {found}"
    linked = abs(largest) > LARGEST_CORRELATION and max(_relative_errors(uncertainty)[[first, second]]) > KNOWN
    remedy = ""
    if linked:
        alone = 1 / np.sqrt(max(1 - largest**2, 1e-16))
        remedy = (
            f"With one of them fixed, the error of the other would be {alone:.2g} times smaller: fix one that is known "
            "otherwise, or observe what tells them apart; until then a small fault of the model moves both."
        )
    yield Criterion("determined unknowns", abs(largest), "doubtful" if linked else "passed", found, remedy)


def _relative_errors(uncertainty: Uncertainty) -> Array:
    """Compute the larger standard error of each value over the value [p]; infinite for a value of 0."""
    errors = np.fmax(uncertainty.standard.values, uncertainty.robust) * np.abs(uncertainty.natural_derivative)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(errors / np.abs(uncertainty.natural))


def _judge_time_step(uncertainty: Uncertainty) -> Criterion:
    if np.isnan(uncertainty.half_step).any():
        found = "with half of it the motion is not finite"
        remedy = (
            "The motion hangs on the time step: lower time.dt, or choose another integrator, until both are finite."
        )
        return Criterion("time step", np.nan, "doubtful", found, remedy)
    remedy = "Lower time.dt, or choose an integrator of higher order."
    return _judge_change("time step", uncertainty.half_step, uncertainty, remedy)


def _judge_friction(change: Array, uncertainty: Uncertainty) -> Criterion:
    remedy = "State transition_rate, which is 0.1 by default: far below the rates of the motion, or as it is known."
    if np.isnan(change).any():
        found = "with half of the transition rate the motion is not finite"
        return Criterion("sign of friction", np.nan, "doubtful", found, remedy)
    return _judge_change("sign of friction", change, uncertainty, remedy)


def _judge_change(name: str, change: Array, uncertainty: Uncertainty, remedy: str) -> Criterion:
    """Judge a change of theta [p] by a number of the simulation that a fit should not depend on."""
    errors = np.fmax(uncertainty.standard.values, uncertainty.robust)
    with np.errstate(invalid="ignore", divide="ignore"):
        changes = np.abs(change) / errors
    if not np.isfinite(changes).any():
        return Criterion(name, np.nan, "passed", "not compared: no standard errors")
    place = int(np.nanargmax(changes))
    largest = float(changes[place])
    verdict: Verdict = "doubtful" if largest > STEP_CHANGE else "passed"
    other = "half of it" if name == "time step" else "a sign that changes at once"
    found = f"{other} changes {uncertainty.labels[place]} by {largest:.2g} standard errors"
    return Criterion(name, largest, verdict, found, "" if verdict == "passed" else remedy)
