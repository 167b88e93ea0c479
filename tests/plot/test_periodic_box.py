"""Bodies in a periodic box are drawn within it, wherever they have gone."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import LineCollection

from simphys import plot
from simphys.plot.motion.recorded import read_motion
from simphys.record import MemoryRecorder, Recording
from simphys.report.packing import unpack
from simphys.report.replay import make_replay

LENGTH, TIMES = 2.0, np.linspace(0, 1, 9)


def run(springs: list[list[int]], edges: tuple[float, float] = (LENGTH, LENGTH)) -> Recording:
    """Seven bodies that drift by 1.6 boxes to the right, and at times to the left of the box."""
    starts = np.array([[0.1 + 0.2 * body, 0.3 * body] for body in range(7)])
    position = starts + np.array([1.6 * LENGTH, 0.0]) * TIMES[:, None, None] - [0.05, 0.0]
    recorder = MemoryRecorder(kind="run", provenance={}, scene={"title": "drift", "time": {"dt": 0.125}})
    rows = {"step": np.arange(9), "time": TIMES}
    units = {"value": "m", "time": "s"}
    recorder.extend(
        {
            "particles/nodes/position": {**rows, "value": position},
            "particles/nodes/velocity": {**rows, "value": np.ones_like(position)},
        },
        units={"particles/nodes/position": units, "particles/nodes/velocity": units},
    )
    recorder.write("particles/nodes/box", attrs={"dimension": 2}, edges=np.array(edges))
    recorder.write("particles/nodes", springs=np.array(springs, int).reshape(-1, 2), pinned=np.zeros(7, bool))
    recorder.write("motion", attrs={"status": "completed", "message": "completed", "steps": 8})
    return recorder.recording


def test_bodies_are_shown_within_the_box_and_paths_end_at_its_sides() -> None:
    motion = read_motion(run([]))
    assert motion.position.max() > LENGTH
    assert motion.within.min() >= 0 and motion.within.max() < LENGTH
    np.testing.assert_allclose((motion.within - motion.position) % LENGTH % LENGTH, 0, atol=1e-12)
    jumps = np.abs(np.diff(motion.paths, axis=0))
    assert np.isnan(jumps).any() and np.nanmax(jumps) < LENGTH / 2


def test_bodies_that_springs_join_stay_together() -> None:
    motion = read_motion(run([[1, 0], [1, 2]]))
    np.testing.assert_allclose(np.diff(motion.within[:, :3], axis=1), np.diff(motion.position[:, :3], axis=1))
    assert motion.within[:, 3:].max() < LENGTH


def test_open_axes_are_left_alone() -> None:
    motion = read_motion(run([], (np.inf, LENGTH)))
    np.testing.assert_array_equal(motion.within[..., 0], motion.position[..., 0])
    assert motion.within[..., 1].max() < LENGTH


def test_pictures_and_replays_show_them_there() -> None:
    recording = run([])
    figure = plot.trajectory(recording)
    marks = np.concatenate([c.get_offsets() for c in figure.axes[0].collections if not isinstance(c, LineCollection)])
    assert marks.min() >= 0 and marks.max() < LENGTH
    replay = make_replay(recording)
    (points,) = [layer for layer in replay["layers"] if layer["kind"] == "points"]
    assert unpack(points["place"]).max() <= LENGTH and replay["high"][0] <= LENGTH
