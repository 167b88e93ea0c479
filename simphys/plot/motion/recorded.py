"""Recorded motion of the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simphys.plot import style
from simphys.plot.motion.surroundings import read_box
from simphys.record import Recording

NEEDS = tuple(f"{style.POSITION}/{name}" for name in ("time", "value"))
REMEDY = "Run its scene again, to the end and with the states among output.fields."
SPRINGS = f"{style.BODIES}/springs"
ON_TRACK = 40
"""Largest number of nodes on a line that films and replays show on their track; more are shown by displacements."""


@dataclass(frozen=True)
class Motion:
    """Motion: time [T]; position and velocity [T, n, dim] in their units; velocities not recorded are differences.

    free [m] and pinned [n - m] are node indices, springs [S, 2] pairs of node indices. ended: the reason and time of an
    early end, or ''. box [dim]: lengths of a periodic box, inf for an open axis; None without one.
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
    box: np.ndarray | None = None

    @property
    def dim(self) -> int:
        return self.position.shape[2]

    @cached_property
    def within(self) -> np.ndarray:
        """Positions within the periodic box [T, n, dim]; bodies that springs join stay together."""
        if self.box is None:
            return self.position
        leader = _find_leaders(self.position.shape[1], self.springs)
        return self.position - self.box_shift(self.position[:, leader])

    @cached_property
    def paths(self) -> np.ndarray:
        """Positions within the periodic box [T, n, dim], NaN after a passage through a side: lines end there."""
        if self.box is None:
            return self.position
        passes = (np.abs(np.diff(self.within, axis=0)) > self.box / 2).any(axis=2)
        paths = self.within.copy()
        paths[1:][passes] = np.nan
        return paths

    def box_shift(self, distance: np.ndarray, rounded: np.ufunc = np.floor) -> np.ndarray:
        """Whole lengths of the periodic box that lie in distances [..., dim]; 0 along open axes."""
        if self.box is None:
            return np.zeros_like(distance)
        is_open = np.isinf(self.box)
        length = np.where(is_open, 1.0, self.box)
        return np.where(is_open, 0.0, length * rounded(distance / length))


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
        box=read_box(recording),
    )


def _find_leaders(count: int, springs: np.ndarray) -> np.ndarray:
    """Find the first of the bodies that springs join, for each body [n]."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(springs))
    _, group = connected_components(coo_array((ones, (springs[:, 0], springs[:, 1])), shape=(count, count)))
    return np.unique(group, return_index=True)[1][group]


def _difference(time: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Differences of positions along time, for a run without velocities."""
    return np.gradient(position, time, axis=0) if len(time) > 1 else np.zeros_like(position)


def _find_velocity_unit(recording: Recording) -> str:
    if f"{style.VELOCITY}/value" in recording:
        return style.unit_of(recording, f"{style.VELOCITY}/value")
    return f"{style.unit_of(recording, f'{style.POSITION}/value')}/{recording.units.time}"
