"""A motion, recorded while it is simulated: block by block, in the memory of one block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.experiment import misfits
from simphys.experiment.observe_field import FieldObservations
from simphys.experiment.sampling import field_at_times, interpolate, take_component
from simphys.experiment.scene import Scene
from simphys.record import RunRecorder
from simphys.rollout import BlowUp
from simphys.rollout.run import Progress

from .run_files import find_group, find_unit, write_fit, write_grid

BLOCK_BYTES = 16 << 20
"""Approximate size of a block of states."""


def count_block_steps(scene: Scene) -> int:
    """Count the steps in a block of about BLOCK_BYTES."""
    number = scene.state.tensors()[0].dtype.itemsize
    state = number * sum(math.prod(shape) for shape in scene.moving_shapes().values())
    return int(np.clip(BLOCK_BYTES // state, 1, scene.steps))


def record_motion(recorder: RunRecorder, scene: Scene, *, on_progress: Progress | None = None) -> dict[str, float]:
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
        recorder.write("motion", attrs={"status": status, "message": message, "steps": motion.reached})
        rmse = {} if scene.observations is None else write_fit(recorder, scene, motion.predicted())
    return rmse


class _Motion:
    """The part of a motion that is recorded so far."""

    def __init__(self, recorder: RunRecorder, scene: Scene) -> None:
        self.reached = 0
        """Last recorded step."""
        self._recorder, self._scene = recorder, scene
        arrays = scene.state.arrays()
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
        if scene.controls is not None:
            steps = np.arange(scene.steps)
            units = {"value": scene.controls.unit, "time": "s"}
            signal = scene.controls.signal(scene.steps).data
            if signal.ndim > len(scene.model.control_shape() or ()) + 1:
                signal = np.moveaxis(signal, 1, 0).reshape(scene.steps, -1)  # a channel for each member
            recorder.write("control", units=units, step=steps, time=steps * scene.dt, value=signal)
        write_grid(recorder, scene)
        if (bodies := scene.bodies) is not None and scene.members is None:
            dim = scene.state.position.shape[1]
            recorder.write("particles/nodes/box", attrs={"dimension": dim, "boundary": ["none"] * dim})
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
        self._recorder.extend(
            {group: {**moments, "value": states[name][rows]} for name, group in self._groups.items()},
            units={group: {"value": find_unit(self._scene, name), "time": "s"} for name, group in self._groups.items()},
        )
        begin, end = np.searchsorted(self._needed, [first, int(steps[-1]) + 1])
        for (field, component, _), series in zip(self._measured(), self._series, strict=True):
            series[begin:end] = take_component(states[field], component)[self._needed[begin:end] - first]
        self.reached = int(steps[-1])

    def predicted(self) -> np.ndarray[Any, Any]:
        """Predict the channels [N, C], or a measured field [N, *shape]; NaN after the last step."""
        if isinstance(self._scene.observations, FieldObservations):
            return field_at_times(misfits.field_plan(self._scene, 0, self._needed), self._series[0])
        return interpolate(misfits.channel_plan(self._scene, self._needed), self._series)

    def _measured(self) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """List the measured parts of the state: field, index of the part, and its shape."""
        seen = self._scene.observations
        if isinstance(seen, FieldObservations):
            return [(seen.field, (), self._scene.moving_shapes()[seen.field])]
        return [] if seen is None else [(channel.field, channel.component, ()) for channel in seen.channels]
