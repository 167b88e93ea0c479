"""The shipped scene: gradients through 2048 steps of a neural controller make a walker move forward."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import simphys

SCENE = Path(__file__).parents[3] / "scenes" / "rigid" / "walker_2d.toml"


def test_it_learns_to_walk_upright(tmp_path: Path) -> None:
    """It takes two thirds of the scene's iterations. How far it gets, 0.7 to 1.9 m, is decided by seeds and roundings,
    and so by compiler and processor; that it walks, is not."""
    scene = simphys.load_scene(SCENE, ['runtime.precision="f64"', "optimizer.iterations=40"])
    assert scene.steps == 2048
    before = scene.rollout().final.position.data[0]
    found = simphys.identify(scene, folder=tmp_path / "run").scene.rollout()
    after, tilt = found.final.position.data[0], found.states.orientation.data[:, 0]
    assert abs(before[0]) < 0.2 and after[0] > 0.6
    assert np.abs(tilt).max() < 0.5 and after[1] > 0.45  # rad, m
