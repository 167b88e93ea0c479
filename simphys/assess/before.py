"""Checks before a fit: what the data can tell at the start, and whether steps and samples resolve the motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.experiment.misfits import sigma_is_stated
from simphys.experiment.objective import SceneObjective

from .chi_square import unit_before_fit
from .criteria import Criterion
from .pace import judge_pace
from .resolution import judge_resolution
from .uncertainty import LARGEST

Array = np.ndarray[Any, Any]

UNEVEN = 1e4
"""Ratio of the effects of two unknowns beyond which gradient methods, which do not rescale them, crawl."""
VELOCITIES = {"velocity", "angular_velocity", "rate"}
"""Fields of states that are zero at rest."""
OF_MOTION = {"mass", "drag", "air_drag", "velocity"}
"""Fields with an entry for each node that mean nothing of a fixed one."""
LARGE_ERROR = 1.0
"""Expected standard error in units of the unknown's scale, beyond which the data hardly determine it."""


def judge_start(objective: SceneObjective[Any]) -> list[Criterion]:
    """Judge a fit before it is made. Errors: optimize.FailedTrial for a start that blows up."""
    criteria = [*judge_cheaply(objective), *judge_pace(objective)]
    if len(objective.labels) <= LARGEST and objective.has_residuals:
        criteria += _judge_information(objective)
    return criteria


def refuse_start(error: optimize.FailedTrial) -> InputError:
    """Make the error for unknowns from whose start the motion is not finite."""
    cause = error.__cause__
    found = cause.found if isinstance(cause, InputError) else str(error)
    remedy = "Choose other values for unknowns.NAME.start, or lower time.dt."
    return InputError("start of the unknowns", "the motion must stay finite", found, remedy)


def judge_cheaply(objective: SceneObjective[Any]) -> list[Criterion]:
    """Judge starts, time steps, samples and cells; nothing is simulated."""
    return [*_judge_starts(objective), *judge_resolution(objective.scene)]


def expect_errors(objective: SceneObjective[Any], jacobian: Array) -> Array:
    """Compute the standard errors of theta [p] to expect, by the Jacobian [m, p] at the start.

    Noise that the scene does not state is that of the recording. Errors: optimize.FailedTrial.
    """
    variance = unit_before_fit(objective, jacobian)
    diagonal = np.diag(np.linalg.pinv(jacobian.T @ jacobian))  # below 0 by rounding where nothing is determined
    return np.asarray(np.sqrt(variance * np.maximum(diagonal, 0.0)))


def advise_motion(objective: SceneObjective[Any]) -> str:
    """Advise another start than one at rest, which hides what only a motion shows; empty if something moves.

    Of values of nodes that are fixed, the advice is to leave these out.
    """
    if fixed := _find_fixed(objective):
        label, unknown = fixed
        return f"{label} is of a node that is fixed, such as an anchor: name the others in unknowns.{unknown}.entries."
    found: dict[str, str] = {}
    for part in objective.scene_at(objective.start).parts:
        names = [name for name in part.state.names() if name in VELOCITIES and getattr(part.state, name).size]
        if not names or any(np.any(getattr(part.state, name).data) for name in names):
            return ""
        section = getattr(part.config, "state", None)
        found |= {name: f"state.{name}" if hasattr(section, name) else name for name in names}
    return f"The start is at rest: give {' or '.join(found.values())} another start, which may tell more."


def _find_fixed(objective: SceneObjective[Any]) -> tuple[str, str] | None:
    """Find an unknown value of a node that is fixed, by the labels of the value and of the unknown; None without."""
    scene = objective.scene.parts[0]
    pinned = getattr(scene.model, "pinned", None)
    for block in objective.unknowns.blocks:
        if pinned is None or block.expand is not None or block.parameter not in OF_MOTION:
            continue
        shape = np.shape(objective.unknowns.values[block.parameter])
        fixed = np.flatnonzero(np.asarray(pinned)[block.entries // int(np.prod(shape[1:], dtype=int))])
        if fixed.size:
            return objective.labels[block.where.start + int(fixed[0])], block.unknown
    return None


def _judge_starts(objective: SceneObjective[Any]) -> Iterator[Criterion]:
    at_bound = optimize.active_bounds(objective.start, objective.lower, objective.upper)
    held = [label for label, at in zip(objective.labels, at_bound, strict=True) if at]
    if held:
        remedy = "Give these unknowns another start: a search may stall at a bound."
        yield Criterion("starts", len(held), "doubtful", f"{', '.join(held)} start at a bound", remedy)
    else:
        yield Criterion("starts", 0, "passed", "no unknown starts at a bound")


def settle_starts(criteria: Sequence[Criterion], *, described: bool) -> list[Criterion]:
    """Settle doubts after a search that converged inside all bounds.

    It has left starts at a bound. Where the recording is `described` well, its times and its size are what they seemed.
    """
    settled = {"starts": ", and the fit left it"}
    if described:
        settled |= dict.fromkeys(("size", "first sample"), ", and the fit describes it")
    return [
        replace(each, verdict="passed", found=each.found + settled[each.name], remedy="")
        if each.name in settled and each.verdict == "doubtful"
        else each
        for each in criteria
    ]


def _judge_information(objective: SceneObjective[Any]) -> Iterator[Criterion]:
    jacobian = objective.jacobian(objective.start)
    if not np.isfinite(jacobian).all():
        remedy = "Lower time.dt, see that times are in its unit (observations.time_unit), or choose other starts."
        found_words = "the motion from the start is finite, but its derivatives are not: it is not stable"
        yield Criterion("expected errors", 0, "failed", found_words, remedy)
        return
    precision = objective.scene.config.runtime.precision
    report = optimize.rank_report(jacobian, objective.labels, precision=precision)
    if not report.full:
        found = [f"{', '.join(group)} act together" for group in report.confused]
        found += [f"{label} changes no observation" for label in report.unseen]
        remedy = "Tie some of [unknowns] together, leave one out, or observe more."
        staged = objective.scene.config.optimizer.horizon != "full"  # the way to the whole horizon may tell more
        words = f"{'; '.join(found)}, at the start"
        advice = f"{remedy} {advise_motion(objective)}".rstrip()
        yield Criterion("expected errors", report.rank, "doubtful" if staged else "failed", words, advice)
        return
    lengths = np.linalg.norm(jacobian, axis=0)
    ratio = float(lengths.max() / lengths.min())
    strong, weak = (objective.labels[int(place)] for place in (np.argmax(lengths), np.argmin(lengths)))
    words = f"a step of one scale in {strong} changes the residuals {ratio:.2g} times as much as in {weak}"
    uneven = ratio > UNEVEN and objective.scene.config.optimizer.method != "least_squares"
    remedy = f"Set unknowns.{weak}.scale to how far it may well move." * uneven
    yield Criterion("scales", ratio, "doubtful" if uneven else "passed", words, remedy)
    expected = expect_errors(objective, jacobian)
    place = int(np.argmax(expected))
    found_words = f"largest {expected[place]:.2g} of its scale, of {objective.labels[place]}"
    if not sigma_is_stated(objective.scene):
        found_words += ", with noise as the recording shows it"
    if expected[place] > LARGE_ERROR:
        remedy = "The data hardly determine it: record longer or more, or fix it."
        yield Criterion("expected errors", float(expected[place]), "doubtful", found_words, remedy)
    else:
        yield Criterion("expected errors", float(expected[place]), "passed", found_words)
