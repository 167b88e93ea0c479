"""The jobs, from a scene to a run folder: `simulate` records a motion, `identify` fits unknowns to a measurement."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError
from simphys.diagnose.soundness import blow_up_told
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene
from simphys.record import Recorder
from simphys.rollout import BlowUp
from simphys.rollout.run import Progress
from simphys.runs.comparison import Comparison, compare, write_truths
from simphys.runs.motion import block_of, record_motion
from simphys.runs.run_files import (
    RecorderLog,
    iteration_writer,
    open_recorder,
    output_folder,
    require_same_run,
    write_observations,
    write_unknowns,
)
from simphys.simulator import Record

RANK_CHECK_UNKNOWNS = 200
"""Up to so many unknowns their Jacobian is made before the start, to see whether the data tell them apart."""
LEAST_SQUARES_UNKNOWNS = 2000
"""Up to so many unknowns least_squares may make Jacobians."""
ADJOINT_BYTES = 1 << 30
"""The gradient along time is recorded where it takes at most so much memory."""


@dataclass(frozen=True)
class Unknown:
    """A row of the table of identified parameters, in its own unit."""

    label: str
    unit: str
    start: float
    value: float
    standard_error: float
    """NaN where there is none."""
    note: str
    """Why there is none."""


@dataclass(frozen=True)
class Identification:
    """What a fit found and where it is recorded."""

    folder: Path
    scene: Scene
    """The scene with the identified values."""
    unknowns: tuple[Unknown, ...]
    result: optimize.Result
    rmse: dict[str, float]
    """Root mean square residual of each channel in its unit, and of all together where they share one; or of the
    measured field."""
    comparisons: tuple[Comparison, ...] = ()
    """With known values, of the unknowns that have some."""


class Interrupted(optimize.Interrupted):
    """Ctrl-C during a fit: `identification` holds the best so far, without standard errors; the run can be resumed."""

    def __init__(self, identification: Identification) -> None:
        super().__init__(identification.result)
        self.identification = identification


def simulate(
    scene: Scene,
    *,
    folder: str | Path | None = None,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> Path:
    """Run the scene's horizon and record every `output.every`-th step. Returns the run folder.

    States go to disk as they are made, so that memory does not grow with the horizon. `on_progress(step, steps)` is
    called now and then. Whatever ends it, Ctrl-C too, what was simulated before is recorded.
    Errors: InputError where the motion blows up.
    """
    chosen = folder or scene.config.output.folder
    remedy = f"What was before is recorded: `simphys plot {chosen}` draws it."
    with blow_up_told("simulation", remedy), open_recorder(scene, folder, kind="run", overwrite=overwrite) as recorder:
        if scene.observations is not None:
            write_observations(recorder, scene.observations)
        record_motion(recorder, scene, on_progress=on_progress)
    return recorder.folder


def identify(
    scene: Scene,
    *,
    folder: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_iteration: Callable[[optimize.IterationRecord], None] | None = None,
) -> Identification:
    """Fit the scene's unknowns and record evaluations, iterations, the fitted motion and the gradient along time.

    `resume` continues an interrupted run in the same folder, to the result of an uninterrupted one.
    A fit that leads beyond the stability limit of the time step, or to a start that cannot be, has failed, whatever the
    optimizer says.
    Errors: InputError for unknowns that the data cannot tell apart or whose start blows up; Interrupted at Ctrl-C.
    """
    if resume and overwrite:
        remedy = "Drop one of them."
        raise InputError("identify", "a run is either resumed or overwritten", "resume and overwrite", remedy)
    objective = scene.objective()
    _check_count(scene, objective)
    _check_start(objective)
    smoothing = _smoothing(scene)
    if scene.observations is not None and _can_judge(objective) and smoothing is None:
        precision: Any = scene.config.runtime.precision
        optimize.rank_report(objective.jacobian(objective.start), objective.labels, precision=precision).require_full()
    if resume:
        require_same_run(scene, Path(folder or scene.config.output.folder))
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
                smoothing=smoothing,
                horizon=chosen.horizon,
                lowpass=scene.config.loss.lowpass or (),
                log=RecorderLog(recorder),
                on_iteration=iteration_writer(recorder, on_iteration),
            )
        except optimize.Interrupted as stop:
            table = _table(objective, stop.result)
            compared = compare(objective.unknowns, stop.result.theta)
            write_unknowns(recorder, table, stop.result, compared)
            best = objective.scene_at(stop.result.theta)
            raise Interrupted(Identification(recorder.folder, best, table, stop.result, {}, compared)) from None
        return _conclude(recorder, objective, result)


def _smoothing(scene: Scene) -> optimize.RandomizedSmoothing | None:
    """As the scene asks for it: what a linearization at one point tells is then no judge of the unknowns."""
    chosen = scene.config.optimizer.smoothing
    if chosen is None:
        return None
    return optimize.RandomizedSmoothing(
        radius=chosen.radius, samples=chosen.samples, accuracy=chosen.accuracy, seed=scene.config.runtime.seed
    )


def _check_start(objective: SceneObjective) -> None:
    """Raise InputError where the motion with the unknowns' start values is beyond the stability limit or blows up."""
    begin = objective.scene_at(objective.start)
    begin.require_stable()
    with blow_up_told("start of the unknowns", "Other start values may do, too."):
        for _ in begin.stream(block=block_of(begin)):
            pass


def _check_count(scene: Scene, objective: SceneObjective) -> None:
    count = len(objective.labels)
    if scene.config.optimizer.method == "least_squares" and count > LEAST_SQUARES_UNKNOWNS:
        constraint = f"least_squares makes Jacobians, of at most {LEAST_SQUARES_UNKNOWNS} unknowns"
        raise InputError("optimizer.method", constraint, f"{count} unknowns", 'Use method = "lbfgs".')


def _can_judge(objective: SceneObjective) -> bool:
    """Whether a Jacobian of the residuals can be had that tells unknowns apart and gives standard errors."""
    return len(objective.labels) <= RANK_CHECK_UNKNOWNS and objective.has_residuals


def _conclude(recorder: Recorder, objective: SceneObjective, result: optimize.Result) -> Identification:
    """Record what was found: values with standard errors, the fitted motion, and the gradient along time."""
    fitted = objective.scene_at(result.theta)
    try:
        fitted.require_stable()
    except InputError as error:
        message = f"the fit leads to values without a sound motion. {error}"
        result = replace(result, status="failed", message=message)
    table = _table(objective, result)
    compared = compare(objective.unknowns, result.theta)
    write_unknowns(recorder, table, result, compared)
    write_truths(recorder, objective.unknowns, result.theta)
    try:
        rmse = record_motion(recorder, fitted)
        _record_adjoint(recorder, fitted)
    except BlowUp:  # a fit that failed may; what was before is recorded
        rmse = {}
    return Identification(recorder.folder, fitted, table, result, rmse, compared)


def _record_adjoint(recorder: Recorder, scene: Scene) -> None:
    """Record the gradient of the loss by every `output.every`-th state, unless memory is limited to less or it is
    very large."""
    shapes = scene.moving_shapes()
    number = scene.state.tensors()[0].dtype.itemsize
    if (scene.steps + 1) * number * sum(math.prod(shape) for shape in shapes.values()) > ADJOINT_BYTES:
        return
    # The state's gradient needs a recorded graph, so something must require one.
    start = {
        name: value.detach().requires_grad_()
        for name, value in zip(scene.state.names(), scene.state.tensors(), strict=True)
    }
    try:
        trajectory = scene.rollout(state=scene.state.replace(**start), keep_adjoint=True)
    except BlowUp:
        raise
    except InputError:
        if not scene.config.runtime.limited:
            raise
        return
    scene.loss(trajectory).backward()
    steps = np.arange(0, scene.steps + 1, scene.config.output.every)
    chosen = scene.config.output.fields
    along = {n: getattr(trajectory.adjoint, n) for n, v in start.items() if v.size and (chosen is None or n in chosen)}
    if scene.members is not None:
        along = {name: np.moveaxis(values, 1, 0) for name, values in along.items()}
    adjoint = {name: values[steps] for name, values in along.items()}
    recorder.write("adjoint", step=steps, time=steps * scene.dt, **adjoint)


def _table(objective: SceneObjective, result: optimize.Result) -> tuple[Unknown, ...]:
    unknowns = objective.unknowns
    errors, notes = np.full(result.theta.size, np.nan), [""] * result.theta.size
    if objective.scene.observations is not None and len(objective.labels) > RANK_CHECK_UNKNOWNS:
        notes = ["too many unknowns"] * result.theta.size
    elif objective.scene.lowpass is not None:
        notes = ["filtered misfits"] * result.theta.size  # whose noise is no longer independent
    elif objective.scene.observations is not None and objective.scene.config.optimizer.smoothing is not None:
        notes = ["smoothed loss"] * result.theta.size  # whose minimum is not that of the squares
    if (
        objective.scene.observations is not None
        and _can_judge(objective)
        and objective.scene.lowpass is None
        and objective.scene.config.optimizer.smoothing is None
        and result.status in ("converged", "iteration limit")
    ):
        active = optimize.active_bounds(result.theta, objective.lower, objective.upper)
        found = optimize.standard_errors(
            objective.jacobian(result.theta), objective.residuals(result.theta), active=active
        )
        derivative = unknowns.natural_derivative(result.theta)
        errors = found.values * np.abs(derivative)
        notes = ["smooth" if lost else note for lost, note in zip(np.isnan(derivative), found.notes, strict=True)]
    columns = (
        objective.labels,
        unknowns.units,
        unknowns.natural(objective.start),
        unknowns.natural(result.theta),
        errors,
        notes,
    )
    return tuple(
        Unknown(label, unit, float(start), float(value), float(error), note)
        for label, unit, start, value, error, note in zip(*columns, strict=True)
    )


def draw_step(scene: Scene) -> tuple[str, Path]:
    """The autograd graph of one nested step: as text, and drawn to graph.png in the scene's output folder.

    Its leaves are the state, the control and the unknown parameters, or all parameters where nothing is unknown.
    """
    from simphys.autograd.graph import ancestors
    from simphys.autograd.look.draw import draw, to_text
    from simphys.plot import style

    wanted = {unknown.parameter for unknown in scene.config.unknowns.values()} or set(scene.params.names())
    params, state = _detached(scene.params), _detached(scene.state)
    leaves = {**{name: params[name] for name in params if name in wanted and params[name].size}, **state}
    signal = scene.control()
    control = None if signal is None else leaves.setdefault("control", tensor(signal.data[0]))
    names = {leaf.requires_grad_(): name for name, leaf in leaves.items()}
    after = scene.model.step(scene.params.replace(**params), scene.state.replace(**state), control)
    last = max(after.tensors(), key=lambda field: len(ancestors([field])))  # the field that shows most of the step
    folder = output_folder(scene)
    style.save(draw(last, names=names), folder / "graph.png")
    return to_text(last, names=names), folder / "graph.png"


def _detached(record: Record) -> dict[str, Tensor]:
    """The fields of Params or a State by name, without their graph."""
    return {name: value.detach() for name, value in zip(record.names(), record.tensors(), strict=True)}
