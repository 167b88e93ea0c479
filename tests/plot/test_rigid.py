"""Pictures of rigid bodies show their shapes, positions and orientations."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from simphys import plot
from simphys.plot import style
from simphys.plot.motion.surroundings import project
from simphys.record import Recorder, Recording

FRAMES = 7
BOX = {"position": [0.0, 0.5], "shapes": [{"kind": "box", "half": [0.2, 0.1]}]}
BALL = {"position": [1.0, 0.5], "shapes": [{"kind": "sphere", "radius": 0.1}]}


def run(folder: Path, bodies: list[dict[str, Any]], *, turn: float = 0.0, terms: Any = (), **scene: Any) -> Recording:
    """Record bodies that move to the right by 1 m in 1 s, and turn by an angle about the last axis."""
    start = np.array([body["position"] for body in bodies])
    n, dim = start.shape
    time = np.linspace(0, 1, FRAMES)
    position = np.tile(start, (FRAMES, 1, 1))
    position[..., 0] += time[:, None]
    angle = np.broadcast_to(turn * time[:, None, None], (FRAMES, n, 1))
    if dim == 3:
        angle = np.concatenate([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)], axis=2)
    velocity = np.broadcast_to(np.eye(dim)[0], position.shape)
    tables = {"particles/nodes/position": (position, "m"), "particles/nodes/velocity": (velocity, "m/s")}
    tables["fields/orientation"] = (angle, "")
    whole = {"simulator": {"name": "rigid"}, "bodies": bodies, "loss": {"terms": list(terms)}, **scene}
    with Recorder(folder, kind="run", provenance={"seed": 0}, scene=whole) as recorder:
        for path, (values, unit) in tables.items():
            rows = {"step": np.arange(FRAMES), "time": time, "value": values}
            recorder.extend({path: rows}, units={path: {"value": unit, "time": "s"}})
        recorder.write("particles/nodes", springs=np.zeros((0, 2), int), pinned=np.zeros(n, bool))
    return Recording(folder)


def outlines(figure: Figure, panel: int) -> list[np.ndarray]:
    return [patch.get_xy()[:-1] for patch in figure.axes[panel].patches if isinstance(patch, Polygon)]


def test_a_box_and_a_ball_are_outlines_that_move_and_turn(tmp_path: Path) -> None:
    figure = plot.trajectory(run(tmp_path / "run", [BOX, BALL], turn=np.pi / 2))
    assert [axes.get_title(loc="left") for axes in figure.axes[:6:5]] == ["t = 0 s", "t = 1 s"]
    assert figure.axes[4].get_xlabel() == "x [m]" and figure.axes[0].get_ylabel() == "y [m]"
    for panel, centre, reach in ((0, (0.0, 0.5), (0.2, 0.1)), (5, (1.0, 0.5), (0.1, 0.2))):
        box, ball = outlines(figure, panel)
        np.testing.assert_allclose(abs(box - centre), np.tile(reach, (4, 1)), atol=1e-12)
        away = np.linalg.norm(ball - np.array(centre) - [1.0, 0.0], axis=1)
        np.testing.assert_allclose(away, 0.1, rtol=1e-12)
    mark = figure.axes[5].lines[-1].get_xydata()
    np.testing.assert_allclose(np.asarray(mark), [[2.0, 0.5], [2.0, 0.6]], atol=1e-12)
    path = np.asarray(figure.axes[5].lines[0].get_xydata())
    np.testing.assert_allclose(path[[0, -1]], [[0.0, 0.5], [1.0, 0.5]])


def count_overlaps(figure: Figure) -> int:
    """Count the numbers below the panels that touch the next one."""
    figure.draw_without_rendering()
    count = 0
    for axes in figure.axes[:6]:
        shown = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        places = sorted((box.x0, box.x1) for box in shown if axes.bbox.x0 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1)
        count += sum(one[1] > other[0] for one, other in itertools.pairwise(places)) + 10 * (not places)
    return count


def test_numbers_below_narrow_panels_do_not_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    high = {"position": [-0.5, 14.0], "shapes": [{"kind": "sphere", "radius": 0.1}]}
    narrow = run(tmp_path / "run", [BALL | {"position": [-0.5, 0.1]}, high])
    assert count_overlaps(plot.trajectory(narrow)) == 0
    monkeypatch.setattr("simphys.plot.motion.rigid.TICK_WIDTH", 0.1)
    assert count_overlaps(plot.trajectory(narrow)) > 0


def test_the_ground_is_below_its_plane_and_a_target_is_dashed(tmp_path: Path) -> None:
    term = {"kind": "final_state", "field": "position", "nodes": [1], "target": [3.0, 0.7]}
    planes = [{"normal": [0.0, 2.0], "offset": 0.8}]
    figure = plot.trajectory(run(tmp_path / "run", [BOX, BALL], terms=[term], planes=planes))
    ground = outlines(figure, 0)[0]
    assert ground[:, 1].max() == pytest.approx(0.4) and ground[:, 1].min() < 0
    dashed = [patch for patch in figure.axes[0].patches if patch.get_linestyle() == "--"]
    assert len(dashed) == 1 and isinstance(dashed[0], Polygon)
    np.testing.assert_allclose(np.linalg.norm(dashed[0].get_xy() - [3.0, 0.7], axis=1), 0.1)
    low, high = figure.axes[0].get_xlim()
    assert low < -0.2 and high > 3.1


def test_a_box_in_space_shows_its_three_visible_sides(tmp_path: Path) -> None:
    box = {"position": [0.0, 0.0, 0.0], "shapes": [{"kind": "box", "half": [0.3, 0.2, 0.1]}]}
    figure = plot.trajectory(run(tmp_path / "run", [box], turn=0.3))
    sides = outlines(figure, 0)
    assert len(sides) == 3 and figure.axes[4].get_xlabel() == "across [m]"
    corners = np.unique(np.concatenate(sides).round(12), axis=0)
    assert len(corners) == 7  # the eighth is hidden
    top = [corner for side in sides for corner in side if corner[1] == np.concatenate(sides)[:, 1].max()]
    np.testing.assert_allclose(top[0], project(np.array([-0.3, 0.2, 0.1]))[0])


def test_a_capsule_lies_along_its_first_axis_and_fixed_bodies_are_grey(tmp_path: Path) -> None:
    rod = {"position": [0.0, 0.0], "shapes": [{"kind": "capsule", "radius": 0.1, "half_length": 0.3}], "fixed": True}
    figure = plot.trajectory(run(tmp_path / "run", [rod]))
    (outline,) = outlines(figure, 0)
    np.testing.assert_allclose(abs(outline).max(axis=0), [0.4, 0.1], rtol=2e-3)
    patch = figure.axes[0].patches[0]
    assert len(set(patch.get_facecolor()[:3])) == 1
    assert figure.axes[-1].get_ylabel() == "position [m]" and style.COLORS[0] != patch.get_facecolor()
