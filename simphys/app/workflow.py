"""The two jobs of simphys: `simulate` computes a motion, `identify` fits unknowns to a measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.diagnose.faults import blow_ups_as_input_errors
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene
from simphys.record import Recording, RunRecorder, require_no_run
from simphys.rollout import BlowUp
from simphys.rollout.run import Progress
from simphys.runs.adjoint import record_adjoint
from simphys.runs.estimates import Estimate, make_estimates, require_determined, require_feasible_jacobians
from simphys.runs.motion import count_block_steps, record_motion
from simphys.runs.run_files import (
    RecorderLog,
    make_iteration_writer,
    open_recorder,
    require_same_run,
    write_observations,
    write_unknowns,
)
from simphys.runs.truths import TruthError, compute_truth_errors, write_truths


@dataclass(frozen=True)
class Identification:
    """Result of a fit, and the record of how it was found."""

    recording: Recording
    """The recorded run, in memory or in a folder: all that pictures are drawn from."""
    scene: Scene
    """The scene with the identified values."""
    unknowns: tuple[Estimate, ...]
    """Identified values with standard errors, a row for each unknown number."""
    result: optimize.Result
    """The end of the search: status, loss, iterations."""
    rmse: dict[str, float]
    """Root mean square residual of each channel, and of all channels if they share a unit; or of a measured field."""
    truth_errors: tuple[TruthError, ...] = ()
    """Relative errors of those unknowns whose true value the scene states."""

    @property
    def folder(self) -> Path | None:
        """The folder of the run; None if nothing was written."""
        return self.recording.folder


class IdentificationInterrupted(optimize.Interrupted):
    """Ctrl-C during `identify`: `identification` holds the best values so far, without standard errors.

    A run with a folder can be resumed.
    """

    def __init__(self, identification: Identification) -> None:
        super().__init__(identification.result)
        self.identification = identification


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
    there. `overwrite` replaces a run that the folder holds. `on_progress(step, steps)` is called now and then.
    Errors: InputError for a motion that blows up, or a folder that cannot be used; StorageError for a full disk.
    """
    _require_folder("simulate", folder, overwrite=overwrite)
    hint = "" if folder is None else f"The motion before is recorded: `simphys plot {folder}` draws it."
    with (
        blow_ups_as_input_errors("simulation", hint),
        open_recorder(scene, folder, kind="run", overwrite=overwrite) as recorder,
    ):
        if scene.observations is not None:
            write_observations(recorder, scene.observations)
        record_motion(recorder, scene, on_progress=on_progress)
    return recorder.recording


def identify(
    scene: Scene,
    *,
    folder: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_iteration: Callable[[optimize.IterationRecord], None] | None = None,
) -> Identification:
    """Fit the scene's unknowns to its measurement, or to the terms of its loss.

    The run is recorded: iterations, the fitted motion and the gradient along time; without `folder` in memory, and
    nothing is written. In a folder evaluations are recorded, too: `resume` continues an interrupted run there and ends
    with the result of an uninterrupted one. `overwrite` replaces a run that the folder holds.
    A fit fails if it ends beyond the stability limit of the time step, or at an infeasible start state, whatever the
    optimizer reports.
    Errors: InputError for unknowns that the data do not determine, a start that blows up, or a folder that cannot be
    used; StorageError for a full disk; IdentificationInterrupted on Ctrl-C.
    """
    if resume and overwrite:
        remedy = "Drop one of them."
        raise InputError("identify", "a run is either resumed or overwritten", "resume and overwrite", remedy)
    _require_folder("identify", folder, overwrite=overwrite, resume=resume)
    if folder is not None and not (overwrite or resume):
        require_no_run(Path(folder))  # before the work of the checks below
    objective = scene.objective()
    require_feasible_jacobians(objective)
    _require_sound_start(objective)
    require_determined(objective)
    if resume and folder is not None:
        require_same_run(scene, Path(folder))
    chosen = scene.config.optimizer
    rate = chosen.learning_rate if chosen.method in ("adam", "gradient_descent") else None
    with open_recorder(scene, folder, kind="optimize", overwrite=overwrite, resume=resume) as recorder:
        if scene.observations is not None:
            write_observations(recorder, scene.observations)
        try:
            result = optimize.minimize(
                objective,
                method=chosen.method,
                iterations=chosen.iterations,
                tolerance=chosen.tolerance,
                learning_rate=rate,
                smoothing=_smoothing(scene),
                horizon=chosen.horizon,
                lowpass=scene.config.loss.lowpass or (),
                log=None if folder is None else RecorderLog(recorder),
                on_iteration=make_iteration_writer(recorder, on_iteration),
            )
        except optimize.Interrupted as stop:
            table, errors = _write_result(recorder, objective, stop.result)
            best = objective.scene_at(stop.result.theta)
            found = Identification(recorder.recording, best, table, stop.result, {}, errors)
            raise IdentificationInterrupted(found) from None
        return _conclude(recorder, objective, result)


def _require_folder(source: str, folder: str | Path | None, **flags: bool) -> None:
    """Raise InputError if there is no folder for a flag that is about one."""
    for name, given in flags.items():
        if given and folder is None:
            remedy = f"Pass folder=PATH, or leave {name} out: without a folder nothing is written."
            raise InputError(source, f"{name} needs the folder of a run", "folder=None", remedy)


def _smoothing(scene: Scene) -> optimize.RandomizedSmoothing | None:
    chosen = scene.config.optimizer.smoothing
    if chosen is None:
        return None
    return optimize.RandomizedSmoothing(
        radius=chosen.radius, samples=chosen.samples, accuracy=chosen.accuracy, seed=scene.config.runtime.seed
    )


def _require_sound_start(objective: SceneObjective) -> None:
    """Raise InputError if the motion from the unknowns' start values is beyond the stability limit or blows up."""
    begin = objective.scene_at(objective.start)
    begin.require_stable()
    with blow_ups_as_input_errors("start of the unknowns", "Other start values may help, too."):
        for _ in begin.stream(block=count_block_steps(begin)):
            pass


def _write_result(
    recorder: RunRecorder, objective: SceneObjective, result: optimize.Result
) -> tuple[tuple[Estimate, ...], tuple[TruthError, ...]]:
    table, errors = make_estimates(objective, result), compute_truth_errors(objective.unknowns, result.theta)
    write_unknowns(recorder, table, result, errors)
    return table, errors


def _conclude(recorder: RunRecorder, objective: SceneObjective, result: optimize.Result) -> Identification:
    """Record the result: values with standard errors, the fitted motion, and the gradient along time."""
    fitted = objective.scene_at(result.theta)
    try:
        fitted.require_stable()
    except InputError as error:
        message = f"the fit leads to values without a sound motion. {error}"
        result = replace(result, status="failed", message=message)
    table, errors = _write_result(recorder, objective, result)
    write_truths(recorder, objective.unknowns, result.theta)
    try:
        rmse = record_motion(recorder, fitted)
        record_adjoint(recorder, fitted)
    except BlowUp:  # possible after a fit that failed; the motion before is recorded
        rmse = {}
    return Identification(recorder.recording, fitted, table, result, rmse, errors)
