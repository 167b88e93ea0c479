"""A motion, recorded while it is simulated: block by block, in the memory of a block, however long it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .record import Recorder
from .rollout import BlowUp
from .rollout.run import Progress
from .run_files import group_of, unit_of, write_fit, write_grid
from .sampling import along, interpolate
from .scene import Scene

BLOCK_BYTES = 16 << 20
"""A block of states is about so large."""


def block_of(scene: Scene) -> int:
    """Steps in a block."""
    state = sum(values.nbytes for values in scene.state.arrays().values())
    return int(np.clip(BLOCK_BYTES // state, 1, scene.steps))


def record_motion(recorder: Recorder, scene: Scene, *, on_progress: Progress | None = None) -> dict[str, float]:
    """Simulate the horizon; record every `output.every`-th state, how it ended, what the measurement would see, and
    the control of each step.

    Returns the root mean square residual of each channel, see `write_fit`. However it ends, what was reached is
    recorded. Errors: BlowUp.
    """
    motion = _Motion(recorder, scene)
    status, message = "interrupted", "interrupted"
    try:
        for steps, states in scene.stream(block=block_of(scene), on_progress=on_progress):
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
    """What is recorded of a motion so far."""

    def __init__(self, recorder: Recorder, scene: Scene) -> None:
        self.reached = 0
        """The last step so far."""
        self._recorder, self._scene = recorder, scene
        arrays = scene.state.arrays()
        self._groups = {name: group_of(scene, name) for name, start in arrays.items() if start.size}
        needed = scene.kept_steps()
        self._needed = np.zeros(0, np.int64) if isinstance(needed, str) else needed
        channels = scene.observations.channels if scene.observations is not None else ()
        self._series = [np.full(len(self._needed), np.nan) for _ in channels]
        for group in self._groups.values():
            recorder.discard(group)  # of a run that was resumed
        if scene.controls is not None:
            steps = np.arange(scene.steps)
            units = {"value": scene.controls.unit, "time": "s"}
            signal = scene.controls.signal(scene.steps).data
            recorder.write("control", units=units, step=steps, time=steps * scene.dt, value=signal)
        write_grid(recorder, scene)
        if (bodies := scene.bodies) is not None:
            dim = scene.state.position.shape[1]
            recorder.write("particles/nodes/box", attrs={"dimension": dim, "boundary": ["none"] * dim})
            pieces: dict[str, Any] = {} if bodies.group is None else {"group": bodies.group}
            recorder.write("particles/nodes", springs=bodies.links, pinned=bodies.pinned, **pieces)

    def add(self, steps: np.ndarray[Any, Any], states: dict[str, np.ndarray[Any, Any]]) -> None:
        """Consecutive steps [rows] and their states [rows, ...]."""
        every, first = self._scene.config.output.every, int(steps[0])
        rows = slice(-first % every, None, every)
        moments = {"step": steps[rows], "time": steps[rows] * self._scene.dt}
        self._recorder.extend(
            {group: {**moments, "value": states[name][rows]} for name, group in self._groups.items()},
            units={group: {"value": unit_of(self._scene, name), "time": "s"} for name, group in self._groups.items()},
        )
        begin, end = np.searchsorted(self._needed, [first, int(steps[-1]) + 1])
        if self._scene.observations is not None:
            for channel, series in zip(self._scene.observations.channels, self._series, strict=True):
                values = along(states[channel.field], channel.component)
                series[begin:end] = values[self._needed[begin:end] - first]
        self.reached = int(steps[-1])

    def predicted(self) -> np.ndarray[Any, Any]:
        """What the channels would have seen [N, C]; NaN after the last step."""
        return interpolate(self._scene.sampling_plan(self._needed), self._series)
