"""Recorded motion of the nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.plot import style
from simphys.record import Recording

NEEDS = tuple(f"{style.POSITION}/{name}" for name in ("time", "value"))
REMEDY = "Run its scene again, to the end and with the states among output.fields."
SPRINGS = f"{style.BODIES}/springs"


@dataclass(frozen=True)
class Motion:
    """Motion: time [T]; position and velocity [T, n, dim] in their units; velocities not recorded are differences.

    free [m] and pinned [n - m] are node indices, springs [S, 2] pairs of node indices. ended: the reason and time of an
    early end, or ''.
    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    position_unit: str
    velocity_unit: str
    free: np.ndarray
    pinned: np.ndarray
    springs: np.ndarray
    ended: str

    @property
    def dim(self) -> int:
        return self.position.shape[2]


def read_motion(recording: Recording) -> Motion:
    """Read the motion without frames in which it has blown up. Errors: NotRecorded if there is none."""
    style.require(recording, "trajectory", NEEDS, REMEDY)
    moving = [f"{style.POSITION}/value", f"{style.VELOCITY}/value"]
    recorded, *values = style.frames(recording, f"{style.POSITION}/time", *filter(recording.__contains__, moving))
    if len(values) == 1:
        values.append(_difference(recorded, values[0]))
    time, position, velocity = style.sound_frames(recorded, *values)
    nodes = position.shape[1]
    free = style.free_nodes(recording, nodes)
    return Motion(
        time=time,
        position=position,
        velocity=velocity,
        position_unit=style.unit_of(recording, f"{style.POSITION}/value"),
        velocity_unit=_find_velocity_unit(recording),
        free=free,
        pinned=np.setdiff1d(np.arange(nodes), free),
        springs=recording[SPRINGS] if SPRINGS in recording else np.empty((0, 2), int),
        ended=style.describe_end(recording, time, recorded),
    )


def _difference(time: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Differences of positions along time, for a run without velocities."""
    return np.gradient(position, time, axis=0) if len(time) > 1 else np.zeros_like(position)


def _find_velocity_unit(recording: Recording) -> str:
    if f"{style.VELOCITY}/value" in recording:
        return style.unit_of(recording, f"{style.VELOCITY}/value")
    return f"{style.unit_of(recording, f'{style.POSITION}/value')}/{recording.units.time}"
