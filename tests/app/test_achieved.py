"""The end of a fit without a measurement: how far the motion is from what its loss wants, in own units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simphys.app.workflow import identify
from simphys.experiment.scene import load_scene
from simphys.report.tables import result_tables
from simphys.runs.achieved import with_prefix

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def test_the_distance_of_a_ball_from_its_pocket_is_told_in_metres() -> None:
    fit = identify(load_scene(SCENES / "billiards" / "pocket.toml", ["optimizer.iterations=2"]))
    (found,) = fit.achieved
    end = fit.recording["particles/nodes/position/value"][-1, 10]
    target = fit.scene.config.loss.terms[0].target
    assert found.distance == pytest.approx(np.linalg.norm(end - target), rel=1e-9)
    assert found.value == pytest.approx(tuple(end)) and found.unit == "m"
    assert found.start > found.distance
    assert str(found).startswith("position of ball 10 at the end: (") and str(found) in repr(fit)
    assert any(table.heads[0] == "aim" for table in result_tables(fit.recording))


def test_means_sums_along_time_and_rotations_have_their_own_units() -> None:
    scene = load_scene(SCENES / "rigid" / "walker_2d.toml", ["time.steps=64", "optimizer.iterations=1"])
    fit = identify(scene)
    along, level = fit.achieved
    turns = fit.recording["fields/orientation/value"]
    assert along.label == "position x of trunk at the end" and along.value == pytest.approx((10 - along.distance,))
    assert level.unit == "rad" and level.label == "orientation of trunk along time"
    assert level.distance <= np.abs(turns[:, 0]).max() * 1.01 + 1e-12


def test_short_lengths_are_in_millimetres() -> None:
    assert with_prefix(0.0036, "m") == "3.6 mm"
    assert with_prefix(0.31, "m") == "0.31 m" and with_prefix(2.5, "rad") == "2.5 rad"


def test_a_last_iterate_that_is_worse_is_told_from_the_best() -> None:
    overrides = ["optimizer.method=adam", "optimizer.learning_rate=3.0", "optimizer.iterations=4"]
    fit = identify(load_scene(SCENES / "mass_spring" / "throw.toml", overrides))
    losses = [record.loss for record in fit.result.history]
    assert losses[-1] > min(losses)  # such a rate oversteps
    assert f"of iteration {int(np.argmin(losses))}; the last had" in repr(fit)
