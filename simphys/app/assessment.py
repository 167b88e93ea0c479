"""The job `assess`: a fit with everything that decides whether one can believe it, within a budget of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from simphys import optimize
from simphys.assess import Criterion, estimate_noise, heed_failure, worst
from simphys.assess.before import judge_cheaply, judge_start, refuse_start, settle_starts
from simphys.assess.doubles import judge_mirrors
from simphys.assess.holdout import judge_holdout, predict_holdout
from simphys.assess.laplace import approximate_posterior, judge_laplace
from simphys.assess.omitted import explain_misfit, is_short
from simphys.assess.recovery import Recovery, judge_recovery, recover
from simphys.assess.starts import Starts, judge_starts, try_starts
from simphys.assess.uncertainty import LARGEST
from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.experiment.hold_out import hold_out
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene, build_scene, load_scene, require_scene
from simphys.experiment.several import map_measurements
from simphys.optimize.mapping import Map
from simphys.record import Recording, RunRecorder, damage_as_errors
from simphys.runs.estimates import make_estimates
from simphys.runs.judgement import write_judgement
from simphys.runs.run_files import open_recorder, require_same_run, write_unknowns
from simphys.scenefile import ValidationSection, from_dict

from .identification import Identification
from .workflow import identify, prepare_search, require_sound_start, write_measurements

SECONDS = 60.0
"""Budget of time [s]."""


def load_scene_or_run(path: Path, overrides: tuple[str, ...] = ()) -> Scene:
    """Load a scene file, or the scene of a recorded fit. Errors: InputError, ConfigError."""
    if not (path.is_dir() or path.suffix == ".h5"):
        return load_scene(path, overrides)
    recording = Recording(path)
    if overrides:
        remedy = "Assess the scene file with these overrides."
        raise InputError(f"run {path}", "the scene of a run takes no overrides", overrides[0], remedy)
    with damage_as_errors(str(path), "assessment"):
        return build_scene(from_dict(recording.scene, source=str(path)))


def assess(
    scene: Scene,
    *,
    folder: str | Path,
    overwrite: bool = False,
    resume: bool = False,
    seconds: float = SECONDS,
    on_progress: Callable[[str, float | None], None] | None = None,
    on_iteration: Callable[[optimize.IterationRecord], None] | None = None,
    each: Map = map,
) -> Identification:
    """Check a scene, fit it, and judge the fit: before, after, on held-out samples, from other starts, by recovery.

    More than 200 unknowns, such as a field, have no Jacobian: after the checks and the fit, `seconds` go into the map
    of their standard deviations (assess/laplace.py).

    Further starts and recovery share the time that is left of `seconds`, with a few of each in any case. After a misfit
    that failed, or a better optimum from another start, there is no recovery. `resume` continues the fit of an
    interrupted assessment. Returns the fit with all criteria. If the checks before fail, there is no fit, and the
    unknowns are those of the start; if the search fails, the later ones are left out. `on_progress` is called with each
    part and its end by `time.monotonic()`, None if that is not known; `on_iteration` in the fit. `each` computes the
    further fits, see `mapping.map_on`.
    Errors: InputError for a scene without a measurement; those of `identify`, but a start that blows up, and unknowns
    that the data do not determine, are criteria that fail.
    """
    require_scene("assess", scene)
    until = time.monotonic() + seconds
    tell = on_progress or (lambda part, until: None)
    objective = scene.objective()
    _require_errors(scene, len(objective.labels))
    tell("checks before the fit", None)
    before = _judge_before(objective)
    if worst(before) == "failed":
        return _conclude_before(objective, folder, before, overwrite=overwrite, resume=resume)
    tell("the fit", None)
    scene = estimate_noise(scene)
    objective = scene.objective()
    fit = identify(scene, folder=folder, overwrite=overwrite, resume=resume, on_iteration=on_iteration)
    criteria = [*_settle(before, fit), *_explain(objective, fit)]
    if len(objective.labels) > LARGEST and fit.result.status in ("converged", "iteration limit"):
        return _assess_field(objective, fit, criteria, folder, seconds, tell)
    if fit.uncertainty is None:
        return replace(fit, criteria=tuple(criteria))
    criteria, tried, recovery = _judge_by_fits(objective, fit, criteria, until=until, tell=tell, each=each)
    with open_recorder(scene, folder, kind="optimize", overwrite=False, resume=True) as recorder:
        write_judgement(recorder, criteria, fit.uncertainty)
        _write(recorder, fit, tried, recovery)
    return replace(fit, criteria=tuple(criteria), recording=recorder.recording)


def _judge_by_fits(
    objective: SceneObjective[Scene],
    fit: Identification,
    criteria: list[Criterion],
    *,
    until: float,
    tell: Callable[[str, float | None], None],
    each: Map,
) -> tuple[list[Criterion], Starts, Recovery | None]:
    """Judge a fit by further ones: without the last quarter, from other starts, and to simulated recordings.

    Nothing is simulated after a misfit that failed, or where another start ends better.
    """
    assert fit.uncertainty is not None
    errors = np.fmax(fit.uncertainty.standard.values, fit.uncertainty.robust)
    near = partial(search_again, horizon="full")
    if fit.uncertainty.holdout is None:
        tell("a fit without the last quarter", None)
        criteria = [*criteria, *_hold_out(objective, fit, near)]
    described = next(each for each in criteria if each.name == "misfit").verdict != "failed"
    halfway = time.monotonic() + (0.5 if described else 1.0) * (until - time.monotonic())
    tell("other starts", halfway)
    tried = try_starts(objective, fit.result, errors, search_again, until=halfway, each=each)
    criteria, recovery = [*criteria, judge_starts(tried, fit.result, fit.uncertainty)], None
    if described and criteria[-1].verdict != "failed":
        tell("recovery", until)
        recovery = recover(objective, fit.uncertainty, near, until=until, each=each)
        criteria.append(judge_recovery(recovery, fit.uncertainty.labels))
    return heed_failure(criteria), tried, recovery


def _settle(before: list[Criterion], fit: Identification) -> list[Criterion]:
    """Settle what the fit has answered: a search that converges inside all bounds did not stall at one."""
    found = fit.uncertainty
    inside = fit.result.success and found is not None and not (found.at_lower | found.at_upper).any()
    described = all(each.verdict == "passed" for each in fit.criteria if each.name == "misfit")
    return settle_starts(before, described=described) if inside else before


def _explain(objective: SceneObjective[Scene], fit: Identification) -> list[Criterion]:
    """Explain the misfit of a long motion, and seek its mirror image, which a fit does not do by itself."""
    if fit.uncertainty is None or is_short(objective):
        return list(fit.criteria)
    explained = explain_misfit(objective, fit.uncertainty, fit.criteria)
    return [*explained, *judge_mirrors(objective, fit.uncertainty, explained)]


def _require_errors(scene: Scene, unknowns: int) -> None:
    """Raise InputError for a scene whose fit has no standard errors."""
    if not scene.measured:
        remedy = "Add [observations]; simphys optimize fits scenes without."
        raise InputError("assess", "needs a measurement to compare with", "no [observations]", remedy)
    if scene.config.optimizer.smoothing is not None:
        raise InputError("assess", "needs standard errors", "a smoothed loss", "Fit it by simphys optimize.")
    if unknowns > LARGEST and scene.lowpass is not None:
        remedy = "End loss.lowpass with 0, which is no filter."
        raise InputError("assess", "needs independent residuals at the end", "filtered misfits", remedy)


def _judge_before(objective: SceneObjective[Scene]) -> list[Criterion]:
    """Judge a fit before it is made; a start without a sound motion fails, and leaves out what needs its motion."""
    try:
        require_sound_start(objective)
        return judge_start(objective)
    except UnphysicalValue:
        raise
    except InputError as error:
        refusal = error
    except optimize.FailedTrial as error:
        refusal = refuse_start(error)
    found = f"{refusal.constraint}; found {refusal.found}"
    return [*judge_cheaply(objective), Criterion("sound start", np.nan, "failed", found, refusal.remedy)]


def _conclude_before(
    objective: SceneObjective[Scene], folder: str | Path, criteria: list[Criterion], *, overwrite: bool, resume: bool
) -> Identification:
    """Record an assessment that ends before the fit, with the unknowns at their start."""
    scene, start = objective.scene_at(objective.start), objective.start
    if resume:
        require_same_run(objective.scene, Path(folder))
    message = "there is no fit, as a check before it failed"
    result = optimize.Result(start, np.nan, 1.0, "failed", message, 0, 0, 0, ())
    table = make_estimates(objective, result, None, "no fit")
    with open_recorder(objective.scene, folder, kind="optimize", overwrite=overwrite, resume=resume) as recorder:
        write_measurements(recorder, objective.scene)
        write_unknowns(recorder, table, result, ())
        write_judgement(recorder, criteria, None)
    return Identification(recorder.recording, scene, table, result, {}, criteria=tuple(criteria))


def _assess_field(
    objective: SceneObjective[Scene],
    fit: Identification,
    criteria: list[Criterion],
    folder: str | Path,
    seconds: float,
    tell: Callable[[str, float | None], None],
) -> Identification:
    """Map the standard deviations of many unknowns, for so many seconds; recorded as `laplace`."""
    until = time.monotonic() + seconds
    found = approximate_posterior(
        objective,
        fit.result.theta,
        until=until,
        on_product=lambda count: tell(f"map of standard deviations, product {count}", until),
    )
    criteria = [*criteria, *judge_laplace(objective.scene, found)]
    with open_recorder(objective.scene, folder, kind="optimize", overwrite=False, resume=True) as recorder:
        write_judgement(recorder, criteria, None)
        about = {"sigma": found.sigma, "products": found.products, "determined": found.determined}
        numbers: dict[str, Any] = {"prior": found.prior, "eigenvalues": found.eigenvalues}
        recorder.write("laplace", attrs=about, standard_deviation=found.deviation, **numbers)
    return replace(fit, criteria=tuple(criteria), recording=recorder.recording)


def search_again(objective: SceneObjective[Any], *, horizon: str | None = None) -> optimize.Result:
    """Search as the scene says, or on another horizon."""
    chosen, lowpass = objective.scene.config.optimizer, objective.scene.config.loss.lowpass
    rate = chosen.learning_rate if chosen.method in ("adam", "gradient_descent") else None
    objective, stages = prepare_search(objective, horizon or chosen.horizon)
    return optimize.minimize(
        objective,
        method=chosen.method,
        iterations=chosen.iterations,
        tolerance=max(chosen.tolerance, 1e-8),
        learning_rate=rate,
        horizon=stages,
        lowpass=lowpass or (),
    )


def _hold_out(
    objective: SceneObjective[Any], fit: Identification, search: Callable[[SceneObjective[Any]], optimize.Result]
) -> list[Criterion]:
    """Fit again without the last quarter of the recording, and predict it; no criterion if that leaves too little."""
    try:
        shorter = map_measurements(objective.scene, lambda seen: hold_out(seen, ValidationSection()))
    except InputError:
        return []
    part = SceneObjective(shorter, objective.unknowns)
    theta = search(part.with_start(fit.result.theta)).theta
    residuals, jacobian = part.residuals(theta), part.jacobian(theta)
    standard = optimize.standard_errors(jacobian, residuals)
    found = predict_holdout(part, theta, standard.covariance, (standard.sigma, standard.freedom))
    return [] if found is None else [judge_holdout(found)]


def _write(recorder: RunRecorder, fit: Identification, tried: Starts, recovery: Recovery | None) -> None:
    labels = [row.label for row in fit.unknowns]
    recorder.write(
        "assessment/starts",
        attrs={"labels": labels, "loss_of_the_fit": fit.result.loss},
        start=tried.start,
        theta=tried.theta,
        loss=tried.loss,
        same=tried.same,
    )
    if recovery is not None:
        recorder.write("assessment/recovery", attrs={"labels": labels}, error=recovery.error)
