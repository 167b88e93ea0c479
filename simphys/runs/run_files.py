"""Contents of a recorded run: measurement, prediction, the tables of a fit; and the conditions for its resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from simphys import optimize
from simphys._version import __version__
from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.experiment import sensors
from simphys.experiment.observe_field import FieldObservations
from simphys.experiment.scene import Scene
from simphys.experiment.setup import Measurement
from simphys.record import (
    AnyRecorder,
    MemoryRecorder,
    PartRecorder,
    Recorder,
    Recording,
    RunRecorder,
    damage_as_errors,
    name_group,
    require_no_fit,
)
from simphys.scenefile import from_dict, to_dict
from simphys.simulator.declare import declarations

from .estimates import Estimate
from .truths import TruthError
from .used_values import describe_departures, find_departures, read_departures

CERTIFICATE = "certificate.txt"
"""File in the folder of a run that holds the text of its scene's certificate, if one was saved."""
OBSERVED_FIELD = "field_observations"
"""Group in which a measured field is recorded."""


def open_recorder(
    scene: Scene, folder: str | Path | None, *, kind: str, overwrite: bool, resume: bool = False
) -> RunRecorder:
    """Open a recorder for a run of this scene, in memory if there is no folder. Errors: those of Recorder."""
    import scipy

    scene.start_runtime()
    provenance = {
        "seed": scene.config.runtime.seed,
        **runtime.info(),
        "scipy": scipy.__version__,
        "simphys": __version__,
    }
    tables = to_dict(scene.config)
    if folder is not None and kind == "run" and overwrite:
        require_no_fit(Path(folder))
    if folder is None:
        return MemoryRecorder(kind=kind, provenance=provenance, scene=tables)
    return Recorder(folder, kind=kind, provenance=provenance, scene=tables, overwrite=overwrite, resume=resume)


def require_same_run(scene: Scene, folder: Path) -> None:
    """Raise InputError unless a resumed run is of the same scene; only its folder and length may differ."""
    if not (folder / "run.h5").exists():
        return
    with damage_as_errors(str(folder), "resume"):
        _compare(scene, folder, Recording(folder))


def _compare(scene: Scene, folder: Path, recording: Recording) -> None:
    recorded, present = to_dict(from_dict(recording.scene)), to_dict(scene.config)  # with the present defaults
    for section in sorted({*recorded, *present} - {"output"}):
        one, other = recorded.get(section), present.get(section)
        if section == "optimizer":
            one, other = _without("iterations", one, other)
        if section == "runtime":
            one, other = _without("memory", one, other)  # it changes no result
        if one != other:
            raise InputError(
                f"resume of {folder}",
                "the scene must be that of the interrupted run",
                f"[{section}] {other}, recorded was {one}",
                "Undo that change, or begin a new run with --overwrite or another output.folder.",
            )
    others, before = describe_departures(scene, find_departures(scene)), read_departures(recording)
    if others != before:
        none = "no values in place of those of the tables"
        raise InputError(
            f"resume of {folder}",
            "the values must be those of the interrupted run",
            f"{others or none}, recorded was {before or none}",
            "Give the scene these values, or begin a new run with overwrite=True or another folder.",
        )
    for part in scene.parts:
        if part.observations is not None:
            prefix = f"{name_group(part.name)}/" if part.name else ""
            _require_same_measurement(recording, prefix, part.observations, folder)


def _require_same_measurement(recording: Recording, prefix: str, seen: Measurement, folder: Path) -> None:
    seen, group = seen.rows_first(), OBSERVED_FIELD if isinstance(seen, FieldObservations) else "observations"
    group = prefix + group
    if group in recording:
        for name, values in (("time", seen.times), ("value", seen.values), ("weight", seen.weights)):
            if not np.array_equal(recording[f"{group}/{name}"], values):
                raise InputError(
                    f"resume of {folder}",
                    "the measurement must be that of the interrupted run",
                    f"another {name} in {seen.file}",
                    "Restore the file, or begin a new run with --overwrite or another output.folder.",
                )


def _without(key: str, *sections: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in section.items() if name != key} for section in sections]


class RecorderLog:
    """The optimizer's log of evaluations as tables of a run."""

    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder = recorder
        self._recording = recorder.recording

    def rows(self, kind: str) -> Sequence[dict[str, np.ndarray]]:
        columns = {name: self._recording[f"{kind}/{name}"] for name in self._recording.keys(kind)}
        count = min([len(column) for column in columns.values()], default=0)
        return [{name: column[row] for name, column in columns.items()} for row in range(count)]

    def discard_matrices(self) -> None:
        """Delete the residuals and Jacobians of all evaluations, which are large, and of use for a resume only."""
        self._recorder.flush()  # only what is on disk is found by its name
        for stage in self._recording.keys("evaluations"):
            for kind in ("residuals", "jacobian"):
                self._recorder.discard(f"evaluations/{stage}/{kind}")

    def append(self, kind: str, **arrays: np.ndarray) -> None:
        if any([np.size(array) == 0 for array in arrays.values()]):  # the horizon ends before the first observation
            return
        columns: dict[str, Any] = dict(arrays)
        self._recorder.append(kind, **columns)


def make_iteration_writer(
    recorder: RunRecorder, then: Callable[[optimize.IterationRecord], None] | None
) -> Callable[[optimize.IterationRecord], None]:
    """Return a function that records each iteration once, as a resumed run reports the earlier ones again."""
    recording = recorder.recording
    present = len(recording["iterations/index"]) if "iterations/index" in recording else 0
    seen = 0

    def write(record: optimize.IterationRecord) -> None:
        nonlocal seen
        seen += 1
        if seen > present:
            by_frequency: dict[str, Any] = {} if record.lowpass is None else {"lowpass": record.lowpass}
            slope: dict[str, Any] = {} if record.gradient is None else {"gradient": record.gradient}
            recorder.append(
                "iterations",
                index=record.index,
                stage=record.stage,
                horizon=record.horizon,
                loss=record.loss,
                gradient_norm=record.gradient_norm,
                step_length=record.step_length,
                theta=record.theta,
                **slope,
                **by_frequency,
                **({} if record.mixture is None else asdict(record.mixture)),
            )
        if then is not None:
            then(record)

    return write


def write_unknowns(
    recorder: RunRecorder, table: Sequence[Estimate], result: optimize.Result, errors: Sequence[TruthError]
) -> None:
    """Record the identified values, their errors against known ones, and the end of the search."""
    recorder.write(
        "unknowns",
        attrs={
            "status": result.status,
            "message": result.message,
            "loss": result.loss,
            **({} if result.mixture is None else {"plain_loss": result.mixture.plain_loss}),
            "failed_trials": result.failed_trials,
            "evaluations": result.evaluations,
            **{f"{each.label}: relative error of the start": each.start for each in errors},
            **{f"{each.label}: relative error": each.value for each in errors},
        },
        label=[row.label for row in table],
        unit=[row.unit for row in table],
        start=[row.start for row in table],
        value=[row.value for row in table],
        standard_error=[row.standard_error for row in table],
        robust_error=[row.robust_error for row in table],
        half_step_change=[row.half_step_change for row in table],
    )


def find_unit(scene: Scene, field: str) -> str:
    """Find the unit of a state's field: that of the measurement, or else that of the simulator.

    Velocities of bodies have the unit of their positions, per second.
    """
    seen = scene.observations
    if isinstance(seen, FieldObservations):
        found = seen.unit or None if seen.field == field else None
    else:
        channels = [c for c in (seen.channels if seen else ()) if c.kind == "component" and c.field == field]
        found = next((c.unit for c in channels if c.unit), None)
    if found is None and scene.grid is not None:
        found = _convert(scene, scene.grid.fields.get(field))
    if found is None:
        found = _convert(scene, getattr(scene.model, "units", {}).get(field))
    if found is None and scene.bodies is not None and field in ("position", "velocity"):
        length, time = scene.units
        return length if field == "position" else f"{find_unit(scene, 'position')}/{time}"
    if found is None and (about := declarations(scene.model.State).get(field)) is not None:
        found = _convert(scene, about.symbol)
    return found or ""


def _convert(scene: Scene, unit: str | None) -> str | None:
    """Convert a unit that the simulator names, in SI, to those of the scene."""
    return None if unit is None else scene.units.convert(unit)


def find_group(scene: Scene, field: str) -> str:
    """Name the group in which a state's field is recorded: bodies as the particles of H5MD, all else under fields/.

    Bodies of several members are recorded under fields/, too.
    """
    is_of_bodies = scene.bodies is not None and scene.members is None and field in ("position", "velocity")
    return f"particles/nodes/{field}" if is_of_bodies else f"fields/{field}"


def write_grid(recorder: AnyRecorder, scene: Scene) -> None:
    """Record the places of the cells of the scene's grid, and the fields on it with their units."""
    if (grid := scene.grid) is None:
        return
    names, of_state = list(grid.fields), scene.state.names()
    attrs: dict[str, Any] = {
        "cells": list(grid.cells),
        "spacing": grid.spacing,
        "offset": grid.offset,
        "depth": grid.depth,
        "fields": names,
        "units": [
            find_unit(scene, name) if name in of_state else scene.units.convert(grid.fields[name]) for name in names
        ],
    }
    members = {} if scene.members is None else {"members": scene.members}
    recorder.write("grid", attrs=attrs | members)


def recorders_of_parts(recorder: RunRecorder, scene: Scene) -> list[tuple[AnyRecorder, Scene]]:
    """Pair each experiment with a recorder below its own group; a single one with the recorder itself."""
    if not scene.experiments:
        return [(recorder, scene)]
    return [(PartRecorder(recorder, name_group(part.name)), part) for part in scene.experiments]


def write_observations(recorder: AnyRecorder, scene: Scene) -> None:
    """Record the scene's measurement; a whole field in the order of recorded states: times first, members second."""
    seen = scene.observations
    assert seen is not None
    if isinstance(seen, FieldObservations):
        moved = seen.rows_first()
        units = {"time": scene.units.time, "value": seen.unit}
        arrays = {"time": moved.times, "value": moved.values, "weight": moved.weights}
        if moved.validation is not None:
            arrays["validation_weight"] = moved.validation
        recorder.write(OBSERVED_FIELD, attrs={"field": seen.field, "unit": seen.unit}, units=units, **arrays)
        return
    attrs = {
        "labels": [c.label for c in seen.channels],
        "units": [c.unit for c in seen.channels],
        "fields": [c.field for c in seen.channels],
        "components": [",".join(map(str, c.component)) for c in seen.channels],
    }
    unseen: dict[str, Any] = {} if seen.validation is None else {"validation_weight": seen.validation}
    recorder.write("observations", attrs=attrs, time=seen.times, value=seen.values, weight=seen.weights, **unseen)


def write_fit(recorder: AnyRecorder, scene: Scene, predicted: np.ndarray) -> dict[str, float]:
    """Record predictions of the channels [N, C], or of a measured field [N, members, *shape].

    Returns the root mean square residual of each channel, and of all channels if they share a unit; or of the field.
    It is NaN for a motion that blew up.
    """
    seen = scene.observations
    assert seen is not None
    if isinstance(seen, FieldObservations):
        moved = seen.rows_first()
        recorder.write("field_fit", time=seen.times, predicted=predicted)
        difference = moved.values - predicted
        rmse = {seen.field: _root_mean_square(difference, moved.weights)}
        if moved.validation is not None:
            rmse[f"{seen.field}, held out"] = _root_mean_square(difference, moved.validation)
        return rmse
    counts = seen.weights > 0
    difference = seen.values - predicted
    residual = np.where(counts, difference, np.nan)
    of_state = [sensors.shows_component(scene, place) for place in range(len(seen.channels))]
    recorder.write("fit", attrs={"of_state": of_state}, time=seen.times, predicted=predicted, residual=residual)
    shown = [c for c in range(len(seen.channels)) if counts[:, c].any()]  # others are held out as a whole
    rmse = {seen.channels[c].label: _root_mean_square(difference[:, c], seen.weights[:, c]) for c in shown}
    if len(rmse) > 1 and len({c.unit for c in seen.channels}) == 1:
        rmse["all channels"] = float(np.sqrt(np.mean(residual**2, where=counts)))
    if seen.validation is not None:
        for c, channel in enumerate(seen.channels):
            rmse[f"{channel.label}, held out"] = _root_mean_square(difference[:, c], seen.validation[:, c])
    return rmse


def _root_mean_square(difference: np.ndarray, weights: np.ndarray) -> float:
    """Root mean square of the samples that have a weight; NaN if there are none."""
    there = weights > 0
    return float(np.sqrt(np.mean(difference[there] ** 2))) if there.any() else float("nan")


def make_output_folder(scene: Scene) -> Path:
    """Make the scene's output folder if it does not exist, and return its path. Errors: InputError."""
    folder = Path(scene.config.output.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "Name another one (output.folder=PATH)."
        raise InputError(
            f"output folder {folder}", "must be a folder that can be created", str(error), remedy
        ) from error
    return folder
