"""A motion, recorded while it is simulated: block by block, in the memory of one block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simphys.autograd import no_grad, tensor
from simphys.experiment import batches, misfits, sampling, sensors
from simphys.experiment.observe_field import FieldObservations
from simphys.experiment.sampling import field_at_times, take_component
from simphys.experiment.scene import Scene
from simphys.record import AnyRecorder, Recording, RunRecorder
from simphys.rollout import BlowUp, Trajectory
from simphys.rollout.run import Progress
from simphys.simulator import Quantity

from .run_files import find_group, find_unit, open_recorder, recorders_of_parts, write_fit, write_grid
from .used_values import write_values

STRESSES = "stresses"
"""Group of what bodies, or the links between them, bear."""
BLOCK_BYTES = 16 << 20
"""Approximate size of a block of states."""


def count_block_steps(scene: Scene) -> int:
    """Count the steps in a block of about BLOCK_BYTES."""
    number = scene.state.tensors()[0].dtype.itemsize
    state = number * sum(math.prod(shape) for shape in scene.moving_shapes().values())
    return int(np.clip(BLOCK_BYTES // state, 1, scene.steps))


def record_motions(recorder: RunRecorder, scene: Scene, *, on_progress: Progress | None = None) -> dict[str, float]:
    """Simulate and record each experiment: see `record_motion`. The name of an experiment is before its channels."""
    rmse: dict[str, float] = {}
    for own, part in recorders_of_parts(recorder, scene):
        found = record_motion(own, part, on_progress=on_progress)
        rmse |= {f"{part.name}: {label}" if part.name else label: value for label, value in found.items()}
    return rmse


def record_motion(recorder: AnyRecorder, scene: Scene, *, on_progress: Progress | None = None) -> dict[str, float]:
    """Simulate the horizon; record every `output.every`-th state, the control, predictions and how the motion ended.

    Returns the root mean square residual of each channel, see `write_fit`. A motion that blows up or is interrupted
    is recorded up to there. Errors: BlowUp.
    """
    motion = _Motion(recorder, scene)
    status, message = "interrupted", "interrupted"
    try:
        for steps, states in scene.stream(block=count_block_steps(scene), on_progress=on_progress):
            motion.add(steps, states)
        status, message = "completed", "completed"
    except BlowUp as error:
        status, message = "blown up", str(error)
        raise
    finally:
        rmse = motion.finish(status, message)
    return rmse


def record_motions_together(
    recorders: Sequence[AnyRecorder], scenes: Sequence[Scene], *, on_progress: Progress | None = None
) -> None:
    """Simulate scenes of one shape in one launch, and record each: see `record_motion`. Errors: BlowUp, of any of them.

    All are then recorded up to there.
    """
    motions = [_Motion(recorder, scene) for recorder, scene in zip(recorders, scenes, strict=True)]
    block = max(1, count_block_steps(scenes[0]) // len(scenes))
    status, message = "interrupted", "interrupted"
    try:
        for steps, states in batches.stream_states(scenes, block=block, on_progress=on_progress):
            for motion, own in zip(motions, states, strict=True):
                motion.add(steps, own)
        status, message = "completed", "completed"
    except BlowUp as error:
        status, message = "blown up", str(error)
        raise
    finally:
        for motion in motions:
            motion.finish(status, message)


def record_trajectory(scene: Scene, trajectory: Trajectory) -> Recording:
    """Record a trajectory of a scene in memory, every state that it holds."""
    output = scene.config.output.model_copy(update={"every": 1})
    config = scene.config.model_copy(update={"output": output})
    scene = replace(scene, config=config, observations=None)
    with open_recorder(scene, None, kind="run", overwrite=False) as recorder:
        _Motion(recorder, scene).add(trajectory.steps, trajectory.states.arrays())
        attrs = {"status": "completed", "message": "completed", "steps": int(trajectory.steps[-1])}
        recorder.write("motion", attrs=attrs)
    return recorder.recording


def _write_box(recorder: AnyRecorder, box: tuple[float, ...]) -> None:
    """Record which axes are periodic, as H5MD has it, and the lengths of all if one is: inf for an open one."""
    kinds = ["none" if length == np.inf else "periodic" for length in box]
    edges: dict[str, Any] = {"edges": np.array(box)} if "periodic" in kinds else {}
    recorder.write("particles/nodes/box", attrs={"dimension": len(box), "boundary": kinds}, **edges)


class _Motion:
    """The part of a motion that is recorded so far."""

    def __init__(self, recorder: AnyRecorder, scene: Scene) -> None:
        self.reached = 0
        """Last recorded step."""
        self._recorder, self._scene = recorder, scene
        arrays = scene.state.arrays()
        self._dtype = scene.state.tensors()[0].dtype
        chosen = scene.config.output.fields
        self._groups = {
            name: find_group(scene, name)
            for name, start in arrays.items()
            if start.size and (chosen is None or name in chosen)
        }
        needed = scene.kept_steps()
        self._needed = np.zeros(0, np.int64) if isinstance(needed, str) else needed
        self._series = [np.full((len(self._needed), *shape), np.nan) for _, _, shape in self._measured()]
        for group in self._groups.values():
            recorder.discard(group)  # rows of the run that is resumed
        recorder.discard(STRESSES)
        if scene.controls is not None:
            steps = np.arange(scene.steps)
            units = {"value": scene.controls.unit, "time": scene.units.time}
            signal = scene.controls.signal(scene.steps).data
            if signal.ndim > len(scene.model.control_shape() or ()) + 1:
                signal = np.moveaxis(signal, 1, 0).reshape(scene.steps, -1)  # a channel for each member
            recorder.write("control", units=units, step=steps, time=steps * scene.dt, value=signal)
        write_grid(recorder, scene)
        write_values(recorder, scene)
        if (bodies := scene.bodies) is not None and scene.members is None:
            _write_box(recorder, bodies.box or (np.inf,) * scene.state.position.shape[1])
            optional = {"group": bodies.group, "radius": bodies.radius}
            pieces: dict[str, Any] = {name: values for name, values in optional.items() if values is not None}
            recorder.write("particles/nodes", springs=bodies.links, pinned=bodies.pinned, **pieces)

    def add(self, steps: np.ndarray[Any, Any], states: dict[str, np.ndarray[Any, Any]]) -> None:
        """Record consecutive steps [rows] with their states [rows, ...], or [members, rows, ...], rows first."""
        if self._scene.members is not None:
            states = {name: np.moveaxis(values, 1, 0) for name, values in states.items()}
        every, first = self._scene.config.output.every, int(steps[0])
        rows = slice(-first % every, None, every)
        moments = {"step": steps[rows], "time": steps[rows] * self._scene.dt}
        found = {group: {**moments, "value": states[name][rows]} for name, group in self._groups.items()}
        moment = self._scene.units.time
        units = {group: {"value": find_unit(self._scene, name), "time": moment} for name, group in self._groups.items()}
        for group, stress in self._find_stresses({name: values[rows] for name, values in states.items()}).items():
            found[group] = {**moments, "value": stress.values.astype(self._dtype)}
            units[group] = {"value": stress.unit, "time": moment}
        self._recorder.extend(found, units=units)  # at once: an interrupt leaves series of one length
        begin, end = np.searchsorted(self._needed, [first, int(steps[-1]) + 1])
        for (field, component, _), series in zip(self._measured(), self._series, strict=True):
            series[begin:end] = take_component(states[field], component)[self._needed[begin:end] - first]
        self.reached = int(steps[-1])

    def _find_stresses(self, states: dict[str, np.ndarray[Any, Any]]) -> dict[str, Quantity]:
        """Find what bodies or their links bear, by group, unless the scene chooses its fields."""
        scene = self._scene
        if scene.bodies is None or scene.members is not None or scene.config.output.fields is not None:
            return {}
        if not all(map(len, states.values())):
            return {}
        found = scene.model.stresses(scene.params.arrays(), states)
        in_metres = find_unit(scene, "position") == "m"  # else the scene has units of its own
        return {f"{STRESSES}/{name}": each if in_metres else each._replace(unit="") for name, each in found.items()}

    def finish(self, status: str, message: str) -> dict[str, float]:
        """Record how the motion ended, and predictions; return the root mean square residual of each channel."""
        attrs = {"status": status, "message": message, "steps": self.reached}
        self._recorder.write("motion", attrs=attrs)
        if self._scene.observations is None:
            return {}
        return write_fit(self._recorder, self._scene, self.predicted())

    def predicted(self) -> np.ndarray[Any, Any]:
        """Predict the channels [N, C], or a measured field [N, *shape]; NaN after the last step."""
        if isinstance(self._scene.observations, FieldObservations):
            return field_at_times(misfits.field_plan(self._scene, 0, self._needed), self._series[0])
        series = [tensor(each.astype(self._dtype)) for each in self._series]
        components: list[sampling.Component] = [(place, ()) for place in range(len(series))]
        with no_grad():
            return misfits.predict_channels(self._scene, series, components, self._needed).data

    def _measured(self) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """List the measured parts of the state: field, index of the part, and its shape."""
        seen = self._scene.observations
        if isinstance(seen, FieldObservations):
            return [(seen.field, (), self._scene.moving_shapes()[seen.field])]
        return [] if seen is None else [(field, index, ()) for field, index in sensors.list_components(seen)]
