"""Results that the shipped scenes of flows promise, after a few iterations or in a smaller size."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import simphys
from simphys import optimize

FOLDER = Path(__file__).parents[3] / "scenes" / "smoke"
EXACT = 'runtime.precision="f64"'


def test_smoke_comes_near_to_the_picture() -> None:
    """Run a few iterations; the whole search ends at 0.03 of the initial loss."""
    objective = simphys.load_scene(FOLDER / "picture.toml", [EXACT]).objective()
    found = optimize.minimize(objective, method="lbfgs", iterations=8)
    assert found.history[0].loss > 0.4
    assert found.loss < 0.3 * found.history[0].loss


def test_a_body_in_a_stream_becomes_slim_and_drags_less() -> None:
    """Run on a grid of twice the spacing."""
    smaller = ["grid.cells=[48, 32]", "grid.spacing=0.02", "time.dt=1.0"]
    scene = simphys.load_scene(FOLDER / "drag.toml", [EXACT, *smaller])
    objective = scene.objective()
    found = optimize.minimize(objective, method="lbfgs", iterations=6)
    assert np.sqrt(found.loss) < 0.65 * np.sqrt(found.history[0].loss)  # drag coefficients
    before, after = (each.params.obstacle.data < 0 for each in (scene, objective.scene_at(found.theta)))
    length, thickness = (np.sum(after.any(axis=1 - axis)) / np.sum(before.any(axis=1 - axis)) for axis in (0, 1))
    assert length > 1.7 and thickness < 0.8
    assert np.sum(after) / np.sum(before) > 0.9  # the area, counted in cells, is preserved
