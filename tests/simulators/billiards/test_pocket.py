"""The shipped scene: a gradient through dozens of impacts puts a ball into a pocket."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.experiment.scene import Scene
from simphys.simulator.events import select_one_sided

SCENE = Path(__file__).parents[3] / "scenes" / "billiards" / "pocket.toml"


def load(*overrides: str) -> Scene:
    return simphys.load_scene(SCENE, ['runtime.precision="f64"', *overrides])


def test_the_loss_falls_as_the_scene_says(tmp_path: Path) -> None:
    """DiffTaichi reports 4.5e-2 -> 2.2e-5 within 200 iterations; here 40 are enough."""
    fit = simphys.identify(load("optimizer.iterations=40"), folder=tmp_path / "run")
    scene = fit.scene
    final = scene.rollout().final.position.data
    assert fit.result.loss == pytest.approx(((final[10] - [0.9, 0.75]) ** 2).sum())
    assert float(load().loss(load().rollout())) == pytest.approx(4.5e-2, rel=0.01)
    assert fit.result.loss < 2.2e-5
    assert np.abs(scene.state.position.data - load().state.position.data).max() < 0.1


def test_no_step_of_the_scene_has_a_one_sided_gradient() -> None:
    scene = load()
    found = scene.model.events(scene.params.arrays(), scene.rollout().states.arrays(), None)
    assert [event.what for event in found[:2]] == ["ball 0 and ball 1", "ball 1 and ball 2"]
    assert len(found) == 14 and not select_one_sided(found)
