"""Recorded motion of the nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.plot import style
from simphys.record import Recording

NEEDS = tuple(f"{group}/{name}" for group in (style.POSITION, style.VELOCITY) for name in ("time", "value"))
REMEDY = "The run was stopped before it recorded a motion; run it again."
SPRINGS = f"{style.BODIES}/springs"


@dataclass(frozen=True)
class Motion:
    """Motion: time [T]; position and velocity [T, n, dim] in their units.

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
    recorded, *values = style.frames(
        recording, f"{style.POSITION}/time", f"{style.POSITION}/value", f"{style.VELOCITY}/value"
    )
    time, position, velocity = style.sound_frames(recorded, *values)
    nodes = position.shape[1]
    free = style.free_nodes(recording, nodes)
    return Motion(
        time=time,
        position=position,
        velocity=velocity,
        position_unit=style.unit_of(recording, f"{style.POSITION}/value"),
        velocity_unit=style.unit_of(recording, f"{style.VELOCITY}/value"),
        free=free,
        pinned=np.setdiff1d(np.arange(nodes), free),
        springs=recording[SPRINGS] if SPRINGS in recording else np.empty((0, 2), int),
        ended=style.describe_end(recording, time, recorded),
    )
