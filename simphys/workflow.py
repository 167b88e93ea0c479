"""The jobs, from a scene to a run folder: `simulate` records a motion, `identify` fits unknowns to a measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__, optimize
from .autograd import no_grad, runtime
from .autograd.errors import InputError
from .config import to_dict
from .objective import SceneObjective
from .observe import Observations
from .record import Recorder, Recording
from .scene import Scene
from .soundness import require_sound, require_stable

RANK_CHECK_UNKNOWNS = 200
"""Up to so many unknowns their Jacobian is made before the start, to see whether the data tell them apart."""


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
    """Root mean square residual of each channel in its unit, and of all together where they share one."""


class Interrupted(optimize.Interrupted):
    """Ctrl-C during a fit: `identification` holds the best so far, without standard errors; the run can be resumed."""

    def __init__(self, identification: Identification) -> None:
        super().__init__(identification.result)
        self.identification = identification


def simulate(scene: Scene, *, folder: str | Path | None = None, overwrite: bool = False) -> Path:
    """Run the scene's horizon and record every `output.every`-th step. Returns the run folder.

    Errors: InputError where the motion blows up, after it was recorded.
    """
    with _recorder(scene, folder, kind="run", overwrite=overwrite) as recorder, no_grad():
        trajectory = scene.rollout()
        _write_motion(recorder, scene, trajectory)
        if scene.observations is not None:
            _write_observations(recorder, scene.observations)
            _write_fit(recorder, scene, trajectory)
    remedy = f"What was before is recorded: `simphys plot {recorder.folder}` draws it."
    require_sound(scene, trajectory, who="simulation", remedy=remedy)
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
    A fit that leads beyond the stability limit of the time step has failed, whatever the optimizer says.
    Errors: InputError for unknowns that the data cannot tell apart or whose start blows up; Interrupted at Ctrl-C.
    """
    if resume and overwrite:
        remedy = "Drop one of them."
        raise InputError("identify", "a run is either resumed or overwritten", "resume and overwrite", remedy)
    objective = scene.objective()
    _check_start(objective)
    if scene.observations is not None and len(objective.labels) <= RANK_CHECK_UNKNOWNS:
        precision: Any = scene.config.runtime.precision
        optimize.rank_report(objective.jacobian(objective.start), objective.labels, precision=precision).require_full()
    if resume:
        _require_same_scene(scene, Path(folder or scene.config.output.folder))
    chosen = scene.config.optimizer
    rate = chosen.learning_rate if chosen.method in ("adam", "gradient_descent") else None
    with _recorder(scene, folder, kind="optimize", overwrite=overwrite, resume=resume) as recorder:
        if scene.observations is not None:
            _write_observations(recorder, scene.observations)
        try:
            result = optimize.minimize(
                objective,
                method=chosen.method,
                iterations=chosen.iterations,
                tolerance=chosen.tolerance,
                learning_rate=rate,
                horizon=chosen.horizon,
                log=RecorderLog(recorder),
                on_iteration=_iteration_writer(recorder, on_iteration),
            )
        except optimize.Interrupted as stop:
            table = _table(objective, stop.result)
            _write_unknowns(recorder, table, stop.result)
            best = objective.scene_at(stop.result.theta)
            raise Interrupted(Identification(recorder.folder, best, table, stop.result, {})) from None
        return _conclude(recorder, objective, result)


class RecorderLog:
    """The optimizer's log of evaluations as tables of a run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._recording = Recording(recorder.folder)

    def rows(self, kind: str) -> Sequence[dict[str, np.ndarray]]:
        """Rows that an interrupted run left."""
        columns = {name: self._recording[f"{kind}/{name}"] for name in self._recording.keys(kind)}
        count = len(next(iter(columns.values()))) if columns else 0
        return [{name: column[row] for name, column in columns.items()} for row in range(count)]

    def append(self, kind: str, **arrays: np.ndarray) -> None:
        """Keep one evaluation."""
        columns: dict[str, Any] = dict(arrays)
        self._recorder.append(kind, **columns)


def _check_start(objective: SceneObjective) -> None:
    """Raise InputError where the motion with the unknowns' start values is beyond the stability limit or blows up."""
    begin = objective.scene_at(objective.start)
    require_stable(begin)
    with no_grad():
        require_sound(begin, begin.rollout(), who="start of the unknowns", remedy="Other start values may do, too.")


def _require_same_scene(scene: Scene, folder: Path) -> None:
    """A resumed run must be of the same scene; only its length and where it lies may differ."""
    if not (folder / "run.h5").exists():
        return
    recording = Recording(folder)
    recorded, present = recording.scene, to_dict(scene.config)
    for section in sorted({*recorded, *present} - {"output"}):
        one, other = recorded.get(section), present.get(section)
        if section == "optimizer":
            one, other = ({k: v for k, v in part.items() if k != "iterations"} for part in (one, other))  # type: ignore[union-attr]
        if one != other:
            raise InputError(
                f"resume of {folder}",
                "the scene must be that of the interrupted run",
                f"[{section}] {other}, recorded was {one}",
                "Undo that change, or start anew with --overwrite or another output.folder.",
            )
    seen = scene.observations
    if seen is not None and "observations" in recording:
        for name, values in (("time", seen.times), ("value", seen.values), ("weight", seen.weights)):
            if not np.array_equal(recording[f"observations/{name}"], values):
                raise InputError(
                    f"resume of {folder}",
                    "the measurement must be that of the interrupted run",
                    f"another {name} in {seen.file}",
                    "Restore the file, or start anew with --overwrite or another output.folder.",
                )


def _recorder(scene: Scene, folder: str | Path | None, *, kind: str, overwrite: bool, resume: bool = False) -> Recorder:
    import scipy

    provenance = {
        "seed": scene.config.runtime.seed,
        **runtime.info(),
        "scipy": scipy.__version__,
        "simphys": __version__,
    }
    return Recorder(
        folder or scene.config.output.folder,
        kind=kind,
        provenance=provenance,
        scene=to_dict(scene.config),
        overwrite=overwrite,
        resume=resume,
    )


def _iteration_writer(
    recorder: Recorder, then: Callable[[optimize.IterationRecord], None] | None
) -> Callable[[optimize.IterationRecord], None]:
    """Record each iteration once: a resumed run reports the earlier ones again."""
    recording = Recording(recorder.folder)
    present = len(recording["iterations/index"]) if "iterations/index" in recording else 0
    seen = 0

    def write(record: optimize.IterationRecord) -> None:
        nonlocal seen
        seen += 1
        if seen > present:
            recorder.append(
                "iterations",
                index=record.index,
                stage=record.stage,
                horizon=record.horizon,
                loss=record.loss,
                gradient_norm=record.gradient_norm,
                step_length=record.step_length,
                theta=record.theta,
            )
        if then is not None:
            then(record)

    return write


def _conclude(recorder: Recorder, objective: SceneObjective, result: optimize.Result) -> Identification:
    """Record what was found: values with standard errors, the fitted motion, and the gradient along time."""
    fitted = objective.scene_at(result.theta)
    try:
        require_stable(fitted)
    except InputError as error:
        message = f"the fit leads to values with which the simulation is unstable. {error}"
        result = replace(result, status="failed", message=message)
    table = _table(objective, result)
    _write_unknowns(recorder, table, result)
    # The state's gradient needs a recorded graph, so something must require one.
    start = fitted.state.replace(position=fitted.state.position.detach().requires_grad_())
    with np.errstate(all="ignore"):  # a fit that failed may blow up
        trajectory = fitted.rollout(state=start, keep_adjoint=True)
        fitted.loss(trajectory).backward()
        _write_motion(recorder, fitted, trajectory)
        adjoint = trajectory.adjoint
        assert adjoint is not None
        steps = np.arange(fitted.steps + 1)
        moments = {"step": steps, "time": steps * fitted.dt}
        recorder.write("adjoint", **moments, position=adjoint.position, velocity=adjoint.velocity)
        rmse = _write_fit(recorder, fitted, trajectory) if fitted.observations is not None else {}
    return Identification(recorder.folder, fitted, table, result, rmse)


def _write_unknowns(recorder: Recorder, table: Sequence[Unknown], result: optimize.Result) -> None:
    recorder.write(
        "unknowns",
        attrs={
            "status": result.status,
            "message": result.message,
            "loss": result.loss,
            "failed_trials": result.failed_trials,
        },
        label=[row.label for row in table],
        unit=[row.unit for row in table],
        start=[row.start for row in table],
        value=[row.value for row in table],
        standard_error=[row.standard_error for row in table],
    )


def _table(objective: SceneObjective, result: optimize.Result) -> tuple[Unknown, ...]:
    unknowns = objective.unknowns
    errors, notes = np.full(result.theta.size, np.nan), [""] * result.theta.size
    if (
        objective.scene.observations is not None
        and len(objective.labels) <= RANK_CHECK_UNKNOWNS
        and result.status in ("converged", "iteration limit")
    ):
        active = optimize.active_bounds(result.theta, objective.lower, objective.upper)
        found = optimize.standard_errors(
            objective.jacobian(result.theta), objective.residuals(result.theta), active=active
        )
        errors, notes = found.values * np.abs(unknowns.natural_derivative(result.theta)), list(found.notes)
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


def _length_unit(scene: Scene) -> str:
    """Scenes are written in SI units unless their measurement sees positions in another one."""
    seen = scene.observations.channels if scene.observations else ()
    return next((c.unit for c in seen if c.field == "position" and c.unit), "m")


def _write_motion(recorder: Recorder, scene: Scene, trajectory: Any) -> None:
    every = scene.config.output.every
    steps = np.arange(0, scene.steps + 1, every)
    unit = _length_unit(scene)
    dim = scene.topology.dim
    recorder.write("particles/nodes/box", attrs={"dimension": dim, "boundary": ["none"] * dim})
    recorder.write("particles/nodes", springs=scene.topology.ends, pinned=scene.topology.pinned)
    for name, of in (("position", unit), ("velocity", f"{unit}/s")):
        value = getattr(trajectory, name).data[::every]
        recorder.write(
            f"particles/nodes/{name}", step=steps, time=steps * scene.dt, value=value, units={"value": of, "time": "s"}
        )


def _write_observations(recorder: Recorder, seen: Observations) -> None:
    attrs = {
        "labels": [c.label for c in seen.channels],
        "units": [c.unit for c in seen.channels],
        "fields": [c.field for c in seen.channels],
        "nodes": [c.node for c in seen.channels],
        "axes": [c.axis for c in seen.channels],
    }
    recorder.write("observations", attrs=attrs, time=seen.times, value=seen.values, weight=seen.weights)


def _write_fit(recorder: Recorder, scene: Scene, trajectory: Any) -> dict[str, float]:
    """Record the prediction; returns the root mean square residual of each channel, NaN for a motion that blew up."""
    seen = scene.observations
    assert seen is not None
    predicted = scene.predict(trajectory).data
    counts = seen.weights > 0
    residual = np.where(counts, seen.values - predicted, np.nan)
    recorder.write("fit", time=seen.times, predicted=predicted, residual=residual)
    rmse = np.sqrt(np.mean(residual**2, axis=0, where=counts))
    return {c.label: float(each) for c, each in zip(seen.channels, rmse, strict=True)}


def draw_step(scene: Scene) -> tuple[str, Path]:
    """The autograd graph of one nested step: as text, and drawn to graph.png in the scene's output folder."""
    from .autograd import draw
    from .mass_spring import step
    from .plot import style

    names = {}
    for part in (scene.params, scene.state):
        for name, value in vars(part).items():
            if value.size:
                names[value.requires_grad_()] = name
    position = step(scene.topology, scene.params, scene.state).position
    folder = Path(scene.config.output.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "Name another one (output.folder=PATH)."
        raise InputError(f"output folder {folder}", "must be one that can be made", str(error), remedy) from error
    style.save(draw.draw(position, names=names), folder / "graph.png")
    return draw.to_text(position, names=names), folder / "graph.png"
