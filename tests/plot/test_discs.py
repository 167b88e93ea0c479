"""Discs are drawn to scale: at the start and the end, with their paths and their targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Circle, Rectangle

import simphys
from simphys.experiment.scene import build_scene
from simphys.plot import trajectory
from simphys.plot.motion.discs import PLAIN, POCKET
from simphys.scenefile import from_dict


@pytest.mark.parametrize("table", [{}, {"lower": [0.0, 0.0], "upper": [2.0, 1.0]}], ids=["open", "cushions"])
def test_a_picture_of_balls(table: dict[str, list[float]], tmp_path: Path) -> None:
    position, radius = [[0.5, 0.5], [1.0, 0.5], [1.5, 0.25]], [0.1, 0.1, 0.05]
    sections = {
        "simulator": {"name": "billiards"},
        "time": {"dt": 0.1, "steps": 12},
        "geometry": {"position": position},
        "material": {"radius": radius},
        "table": table,
        "state": {"velocity": [[0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]},
        "loss": {"terms": [{"kind": "final_state", "nodes": [1], "target": [1.25, 0.5]}]},
    }
    run = simphys.simulate(build_scene(from_dict(sections)), folder=tmp_path / "run")
    figure = trajectory(run, tmp_path / "trajectory.png")
    (axes,) = figure.axes
    start, end = [each for each in axes.collections if isinstance(each, EllipseCollection)]
    np.testing.assert_allclose(np.array(start.get_offsets(), float), np.array(position))
    # They meet after 0.6 s, and have the same mass.
    ends = np.array([[0.8, 0.5], [1.3, 0.5], [1.5, 0.25]])
    np.testing.assert_allclose(np.array(end.get_offsets(), float), ends, atol=1e-12)
    np.testing.assert_allclose(np.array(end.get_widths(), float), 2 * np.array(radius))
    colors = [to_hex(color) for color in np.atleast_2d(end.get_facecolor())]
    assert len(set(colors)) == 3 and colors[2] == PLAIN.lower()  # the moving one, the one with a target, others
    (paths,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    assert len(paths.get_segments()) == 3 and len(paths.get_segments()[0]) == 13
    (pocket,) = [each for each in axes.patches if isinstance(each, Circle)]
    assert (
        tuple(pocket.center) == (1.25, 0.5)
        and pocket.radius == 0.1
        and to_hex(pocket.get_facecolor()) == POCKET.lower()
    )
    assert len([each for each in axes.patches if isinstance(each, Rectangle)]) == bool(table)
    assert "ball 1 0.05 m" in axes.get_title(loc="left")
    assert (tmp_path / "trajectory.png").exists()
