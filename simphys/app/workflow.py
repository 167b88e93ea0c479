"""The two jobs of simphys: `simulate` computes a motion, `identify` fits unknowns to a measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from simphys import optimize
from simphys.assess import Uncertainty, estimate_noise, heed_failure, judge, judge_search
from simphys.assess.bands import predict_bands
from simphys.assess.doubles import judge_mirrors
from simphys.assess.omitted import explain_misfit, is_short
from simphys.autograd.errors import InputError
from simphys.diagnose.device import verify_device
from simphys.diagnose.faults import blow_ups_as_input_errors
from simphys.experiment import batches
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene, require_scene
from simphys.experiment.shooting import close_gaps
from simphys.optimize.mapping import Map
from simphys.record import Recording, RunRecorder, require_no_run
from simphys.rollout import BlowUp
from simphys.rollout.run import Progress
from simphys.runs.achieved import find_achievements, write_achievements
from simphys.runs.adjoint import record_adjoint
from simphys.runs.cost import Cost
from simphys.runs.estimates import (
    Estimate,
    find_uncertainty,
    judge_determined,
    make_estimates,
    require_determined,
    require_feasible_jacobians,
)
from simphys.runs.judgement import write_judgement
from simphys.runs.motion import count_block_steps, record_motions, record_motions_together
from simphys.runs.old_files import list_old_files, remove
from simphys.runs.results import write_results
from simphys.runs.run_files import (
    RecorderLog,
    make_iteration_writer,
    open_recorder,
    recorders_of_parts,
    require_same_run,
    write_observations,
    write_unknowns,
)
from simphys.runs.truths import TruthError, compute_truth_errors, write_truths
from simphys.runs.used_values import find_departures, write_departures

from .bars import bar_of_iterations, bar_of_steps, end_bar
from .identification import Identification, IdentificationInterrupted


def simulate(
    scene: Scene,
    *,
    folder: str | Path | None = None,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> Recording:
    """Simulate the scene's horizon; returns the recorded motion, with every `output.every`-th step.

    Without `folder` the recording is held in memory, and nothing is written. In a folder, states go to disk while they
    are computed: memory does not grow with the horizon, and an interrupted or failed simulation stays readable up to
    there. `overwrite` replaces a simulation that the folder holds, with its results and pictures, but no fit.
    `on_progress(step, steps)` is called now and then.
    Errors: InputError for what is no scene, the measurement of one member beside a batch, a motion that blows up, or a
    folder that cannot be used; StorageError for a full disk.
    """
    require_scene("simulate", scene)
    _require_folder("simulate", folder, overwrite=overwrite)
    verify_device(scene)
    cost = Cost()
    old_files = list_old_files(folder if overwrite else None)
    hint = "" if folder is None else f"The motion before is recorded: `simphys plot {folder}` draws it."
    with (
        blow_ups_as_input_errors("simulation", hint),
        open_recorder(scene, folder, kind="run", overwrite=overwrite) as recorder,
    ):
        _begin(recorder, scene, old_files)
        record_motions(recorder, scene, on_progress=on_progress or bar_of_steps())
        cost.write(recorder)
    return recorder.recording


def simulate_together(
    scenes: Sequence[Scene], folders: Sequence[str | Path], *, on_progress: Progress | None = None
) -> list[Recording]:
    """Simulate scenes of one shape in one launch, each recorded in its folder, in place of a run that is there.

    A scene that cannot share a launch is given alone; see `experiment.batches`. Errors: those of `simulate`.
    """
    if len(scenes) == 1 and not batches.is_batchable(scenes[0]):
        return [simulate(scenes[0], folder=folders[0], overwrite=True, on_progress=on_progress)]
    cost = Cost()
    with ExitStack() as stack:
        recorders: list[RunRecorder] = []
        for scene, folder in zip(scenes, folders, strict=True):
            recorder = open_recorder(scene, folder, kind="run", overwrite=True)
            stack.enter_context(recorder)
            recorders.append(recorder)
            write_measurements(recorder, scene)
        with blow_ups_as_input_errors("simulation", ""):
            record_motions_together(recorders, scenes, on_progress=on_progress)
        for recorder in recorders:
            cost.write(recorder)
    return [recorder.recording for recorder in recorders]


def identify(
    scene: Scene,
    *,
    folder: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_iteration: Callable[[optimize.IterationRecord], None] | None = None,
    start: np.ndarray[Any, Any] | None = None,
    each: Map = map,
) -> Identification:
    """Fit the scene's unknowns to its measurement, or to the terms of its loss.

    `start` [p], in optimizer coordinates, is another start than that of the scene. `each` computes the samples of a
    smoothed loss, see `mapping.map_on`.

    The run is recorded: iterations, the fitted motion and the gradient along time; without `folder` in memory, and
    nothing is written. In a folder evaluations are recorded, too: `resume` continues an interrupted run there and ends
    with the result of an uninterrupted one. `overwrite` replaces the folder's run and what was made of it. A fit fails
    if it ends beyond the stability limit of the time step, or at an infeasible start state.
    Errors: InputError for unknowns that the data do not determine, a start that blows up, or a folder that cannot be
    used; StorageError for a full disk; IdentificationInterrupted on Ctrl-C.
    """
    require_scene("identify", scene)
    if resume and overwrite:
        raise InputError("identify", "a run is either resumed or overwritten", "both", "Drop one of them.")
    _require_folder("identify", folder, overwrite=overwrite, resume=resume)
    if folder is not None and not (overwrite or resume):
        require_no_run(Path(folder))  # before the work of the checks below
    verify_device(scene)
    cost = Cost()
    old_files = list_old_files(folder if overwrite else None)
    objective, determined = _prepare_objective(scene, start)
    scene = objective.scene
    if resume and folder is not None:
        require_same_run(scene, Path(folder))
    chosen = scene.config.optimizer
    with open_recorder(scene, folder, kind="optimize", overwrite=overwrite, resume=resume) as recorder:
        _begin(recorder, scene, old_files)
        tell = on_iteration or bar_of_iterations(chosen.iterations)
        try:
            search, horizon = prepare_search(objective, chosen.horizon)
            result = optimize.minimize(
                search,
                method=chosen.method,
                iterations=chosen.iterations,
                tolerance=chosen.tolerance,
                learning_rate=chosen.learning_rate if chosen.method in ("adam", "gradient_descent") else None,
                smoothing=_smoothing(scene),
                horizon=horizon,
                lowpass=scene.config.loss.lowpass or (),
                log=None if folder is None else RecorderLog(recorder),
                on_iteration=make_iteration_writer(recorder, tell),
                each=each,
            )
        except optimize.Interrupted as stop:
            raise IdentificationInterrupted(_conclude_early(recorder, objective, stop.result)) from None
        end_bar(tell, result)
        found = _conclude_or_stop(recorder, objective, result if determined else judge_determined(objective, result))
        cost.write(recorder)
        return found


def _prepare_objective(scene: Scene, start: np.ndarray[Any, Any] | None) -> tuple[SceneObjective[Scene], bool]:
    """Make the objective of a fit, with the noise estimated where the scene states none; False if it is doubtful.

    It is doubtful if the data do not determine all unknowns at the start. Errors: InputError.
    """
    objective = scene.objective() if start is None else scene.objective().with_start(start)
    require_feasible_jacobians(objective)
    require_sound_start(objective)
    determined = require_determined(objective)
    weighted = estimate_noise(scene)
    if weighted is not scene:
        objective = weighted.objective().with_start(objective.start)
    return objective, determined


def fit_with_errors(
    job: str, scene: Scene, *, folder: str | Path, overwrite: bool
) -> tuple[Identification, Uncertainty]:
    """Fit a scene for a job that builds on standard errors.

    Errors: those of `identify`; InputError for a fit without standard errors.
    """
    fit = identify(scene, folder=folder, overwrite=overwrite)
    if fit.uncertainty is None:
        remedy = "Mend the fit first; a smoothed loss or filtered misfits have none."
        raise InputError(job, "needs a fit with standard errors", fit.result.message, remedy)
    return fit, fit.uncertainty


def prepare_search(objective: SceneObjective[Scene], horizon: str) -> tuple[SceneObjective[Scene], optimize.Horizon]:
    """Return the objective to minimize, and on which horizon: multiple shooting is another start of the full one."""
    if horizon == "shooting":
        return objective.with_start(close_gaps(objective)), "full"
    return objective, "growing" if horizon == "growing" else "full"


def _require_folder(source: str, folder: str | Path | None, **flags: bool) -> None:
    """Raise InputError if there is no folder for a flag that is about one."""
    for name, given in flags.items():
        if given and folder is None:
            remedy = f"Pass folder=PATH, or leave {name} out: without a folder nothing is written."
            raise InputError(source, f"{name} needs the folder of a run", "folder=None", remedy)


def _begin(recorder: RunRecorder, scene: Scene, old_files: list[Path]) -> None:
    """Begin a run: remove what was made of the one before; record measurements, and values that no table tells."""
    remove(old_files)
    write_measurements(recorder, scene)
    write_departures(recorder, scene, find_departures(scene))


def write_measurements(recorder: RunRecorder, scene: Scene) -> None:
    """Record the measurement of each experiment."""
    for own, part in recorders_of_parts(recorder, scene):
        if part.observations is not None:
            write_observations(own, part)


def _smoothing(scene: Scene) -> optimize.RandomizedSmoothing | None:
    chosen = scene.config.optimizer.smoothing
    if chosen is None:
        return None
    return optimize.RandomizedSmoothing(
        radius=chosen.radius, samples=chosen.samples, accuracy=chosen.accuracy, seed=scene.config.runtime.seed
    )


def require_samples(scene: Scene) -> None:
    """Raise InputError unless a fit has evaluations that workers can share: samples of a smoothed loss."""
    if scene.config.optimizer.smoothing is None:
        remedy = "Leave it out, or use simphys multistart, or a sweep of fits."
        raise InputError("--workers", "a fit shares the samples of optimizer.smoothing", "no smoothing", remedy)


def require_sound_start(objective: SceneObjective) -> None:
    """Raise InputError if the motion from the unknowns' start values is beyond the stability limit or blows up."""
    begin = objective.scene_at(objective.start)
    for part in begin.parts:
        part.require_stable()
    with blow_ups_as_input_errors("start of the unknowns", "Other start values may help, too."):
        for part in begin.parts:
            for _ in part.stream(block=count_block_steps(part)):
                pass


def _write_result(
    recorder: RunRecorder, objective: SceneObjective, result: optimize.Result
) -> tuple[tuple[Estimate, ...], tuple[TruthError, ...], Uncertainty | None]:
    uncertainty, reason = find_uncertainty(objective, result)
    table = make_estimates(objective, result, uncertainty, reason)
    errors = compute_truth_errors(objective.unknowns, result.theta)
    write_unknowns(recorder, table, result, errors)
    return table, errors, uncertainty


def _conclude_early(recorder: RunRecorder, objective: SceneObjective, result: optimize.Result) -> Identification:
    """Record the best values of an interrupted fit."""
    table, errors, _ = _write_result(recorder, objective, result)
    best = objective.scene_at(result.theta)
    return Identification(recorder.recording, best, table, result, {}, errors, (judge_search(result),))


def _conclude_or_stop(recorder: RunRecorder, objective: SceneObjective, result: optimize.Result) -> Identification:
    """Record the result. Errors: IdentificationInterrupted on Ctrl-C, with the values that were found."""
    try:
        return _conclude(recorder, objective, result)
    except KeyboardInterrupt:
        stopped = replace(result, status="interrupted", message=f"{result.message}; there is no verdict yet")
        raise IdentificationInterrupted(_conclude_early(recorder, objective, stopped)) from None


def _conclude(recorder: RunRecorder, objective: SceneObjective, result: optimize.Result) -> Identification:
    """Record the result: values with standard errors, the fitted motion, and the gradient along time."""
    fitted = objective.scene_at(result.theta)
    try:
        for part in fitted.parts:
            part.require_stable()
    except InputError as error:
        message = f"the fit leads to values without a sound motion. {error}"
        result = replace(result, status="failed", message=message)
    table, errors, uncertainty = _write_result(recorder, objective, result)
    criteria = [judge_search(result), *([] if uncertainty is None else judge(fitted, uncertainty))]
    if uncertainty is not None and is_short(objective):
        criteria = explain_misfit(objective, uncertainty, criteria)
        criteria += judge_mirrors(objective, uncertainty, criteria)
    criteria = heed_failure(criteria)
    write_judgement(recorder, criteria, uncertainty)
    if recorder.folder is not None:
        scene, unknowns = objective.scene, objective.unknowns
        write_results(recorder.folder, scene, unknowns, result, table, criteria, uncertainty)
        if result.success and not scene.config.output.matrices:
            RecorderLog(recorder).discard_matrices()
    write_truths(recorder, objective.unknowns, result.theta)
    try:
        rmse = record_motions(recorder, fitted)
        bands = {} if uncertainty is None else predict_bands(objective, uncertainty)
        for own, part in recorders_of_parts(recorder, fitted):
            if part.name in bands:
                own.write("bands", standard_deviation=bands[part.name])
            record_adjoint(own, part)
        achieved = find_achievements(objective.scene_at(objective.start), fitted)
        write_achievements(recorder, achieved)
    except BlowUp:  # possible after a fit that failed; the motion before is recorded
        rmse, achieved = {}, ()
    return Identification(
        recorder.recording, fitted, table, result, rmse, errors, tuple(criteria), uncertainty, achieved
    )
