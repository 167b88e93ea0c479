"""The shipped scene: a hand pushes a block to a position and an angle, by gradients through sticking and sliding."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import simphys
from simphys.experiment.scene import Scene

SCENE = Path(__file__).parents[3] / "scenes" / "rigid" / "push.toml"
PLACE, TURN = np.array([0.4, 0.12, 0.05]), np.radians(25)


def distance_to_target(scene: Scene) -> tuple[float, float]:
    """Return the distance of the block from its target [m], and from the target angle [degrees]."""
    final = scene.rollout().final
    turned = 2 * np.arctan2(final.orientation.data[0, 3], final.orientation.data[0, 0])
    return float(np.linalg.norm(final.position.data[0] - PLACE)), float(np.degrees(abs(turned - TURN)))


def test_the_block_arrives_within_a_millimetre_and_a_tenth_of_a_degree(tmp_path: Path) -> None:
    """The step is twice the scene's."""
    scene = simphys.load_scene(SCENE, ['runtime.precision="f64"', "time.dt=0.01"])
    far, turned = distance_to_target(scene)
    assert far > 0.15 and turned > 10
    found = simphys.identify(scene, folder=tmp_path / "run").scene
    far, turned = distance_to_target(found)
    assert far < 1e-3 and turned < 0.1
