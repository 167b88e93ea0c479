"""The jobs `check-fit`, what one can know about a fit before it, and `recover`, whether it finds what was put in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from simphys import optimize
from simphys.assess import Criterion, estimate_noise, heed_failure
from simphys.assess.before import expect_errors, judge_cheaply, judge_start, refuse_start
from simphys.assess.cost import estimate_cost, judge_cost
from simphys.assess.recovery import NOMINAL, Recovery, judge_recovery, recover
from simphys.assess.resolution import MANY_STEPS
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene
from simphys.optimize.mapping import Map
from simphys.runs.digits import format_estimate
from simphys.runs.estimates import RANK_CHECK_UNKNOWNS
from simphys.runs.judgement import write_judgement
from simphys.runs.run_files import open_recorder

from .assessment import search_again
from .identification import Identification
from .workflow import fit_with_errors


@dataclass(frozen=True)
class Expectation:
    """Standard error that an unknown can be expected to have, by the Jacobian at its start."""

    label: str
    unit: str
    start: float
    error: float
    """In the unit; NaN if the data do not determine it."""


@dataclass(frozen=True)
class FitCheck:
    """Findings about a fit before it is made."""

    criteria: tuple[Criterion, ...]
    expectations: tuple[Expectation, ...]


def check_fit(scene: Scene) -> FitCheck:
    """Check a fit before it is made: starts, resolution, scales, what the data can tell, and the cost.

    Nothing is simulated if the horizon has so many steps that its unit is doubtful.
    Errors: those of `scene.objective`; InputError for a scene without a measurement, or a start that blows up.
    """
    objective = scene.objective()
    if not scene.measured:
        remedy = "Add [observations]; simphys optimize fits scenes without."
        raise InputError("check-fit", "needs a measurement to compare with", "no [observations]", remedy)
    if any(part.steps > MANY_STEPS for part in scene.parts):
        return FitCheck(tuple(judge_cheaply(objective)), ())
    try:
        criteria = judge_start(objective)
        cost = judge_cost(estimate_cost(objective))
        few = len(objective.labels) <= RANK_CHECK_UNKNOWNS and objective.has_residuals
        expected = _expect(objective) if few else ()
    except optimize.FailedTrial as error:
        raise refuse_start(error) from error
    return FitCheck((*criteria, cost), expected)


def _expect(objective: SceneObjective[Any]) -> tuple[Expectation, ...]:
    jacobian, start = objective.jacobian(objective.start), objective.start
    if not np.isfinite(jacobian).all():
        return ()
    report = optimize.rank_report(jacobian, objective.labels, precision=objective.scene.config.runtime.precision)
    lost = {*report.unseen, *[label for group in report.confused for label in group]}
    errors = expect_errors(objective, jacobian) * np.abs(objective.unknowns.natural_derivative(start))
    rows = zip(objective.labels, objective.unknowns.units, objective.unknowns.natural(start), errors, strict=True)
    return tuple(
        [Expectation(label, unit, float(at), math.nan if label in lost else float(e)) for label, unit, at, e in rows]
    )


def recover_scene(
    scene: Scene,
    *,
    folder: str | Path,
    times: int,
    overwrite: bool = False,
    on_progress: Callable[[str, float | None], None] | None = None,
    each: Map = map,
) -> tuple[Identification, Recovery]:
    """Fit a scene, simulate recordings with the found values and noise like the residuals, and fit each of them.

    The fit is recorded in `folder`, with the recovered values. `each` computes the fits, see `mapping.map_on`.
    Errors: those of `identify`; InputError for a fit without standard errors.
    """
    tell = on_progress or (lambda part, until: None)
    tell("the fit", None)
    scene = estimate_noise(scene)
    fit, uncertainty = fit_with_errors("recover", scene, folder=folder, overwrite=overwrite)
    found = recover(
        scene.objective(),
        uncertainty,
        partial(search_again, horizon="full"),
        until=math.inf,
        times=times,
        each=each,
        on_fit=lambda done: tell(f"recovery {done}/{times}", None),
    )
    criteria = tuple(heed_failure([*fit.criteria, judge_recovery(found, uncertainty.labels)]))
    with open_recorder(scene, folder, kind="optimize", overwrite=False, resume=True) as recorder:
        write_judgement(recorder, criteria, uncertainty)
        recorder.write("assessment/recovery", attrs={"labels": list(uncertainty.labels)}, error=found.error)
    return replace(fit, criteria=criteria, recording=recorder.recording), found


def recovery_rows(fit: Identification, found: Recovery) -> list[tuple[str, ...]]:
    """Format the recovery of each unknown: its bias and scatter in standard errors, and the coverage."""
    rows: list[tuple[str, ...]] = []
    for place, row in enumerate(fit.unknowns):
        value, _ = format_estimate(row.value, row.larger_error)
        missed = found.error[:, place]
        if not np.isfinite(missed).all():
            rows.append((row.label, row.unit, value, "-", "-", "-"))
            continue
        mean, scatter = float(missed.mean()), float(missed.std(ddof=1))
        covered = float(np.mean(np.abs(missed) <= NOMINAL))
        bias = f"{mean:+.2f} ± {scatter / math.sqrt(len(missed)):.2f}"
        rows.append((row.label, row.unit, value, bias, f"{scatter:.2f}", f"{100 * covered:.0f} %"))
    return rows
