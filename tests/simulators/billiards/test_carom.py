"""The shipped scene: restitutions and the cloth are identified by least squares, with standard errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import simphys
from simphys.autograd.compose.functional import jacobian
from simphys.experiment.scene import Scene
from simphys.simulator.events import select_one_sided

FOLDER = Path(__file__).parents[3] / "scenes" / "billiards"
TRUE = {
    "restitution": 0.93,
    "cushion_restitution": 0.78,
    "deceleration": 0.12,
    "velocity[0]": 2.6,
    "velocity[1]": 0.95,
}


def load() -> Scene:
    return simphys.load_scene(FOLDER / "carom.toml", ['runtime.precision="f64"'])


def test_the_truth_is_within_three_standard_errors(tmp_path: Path) -> None:
    fit = simphys.identify(load(), folder=tmp_path / "run")
    assert fit.result.success and {row.label for row in fit.unknowns} == set(TRUE)
    for row in fit.unknowns:
        assert 0 < row.standard_error < 5e-4, row
        assert abs(row.value - TRUE[row.label]) < 3 * row.standard_error, row
    scene = fit.scene
    found = scene.model.events(scene.params.arrays(), scene.rollout().states.arrays(), None)
    assert [event.kind for event in found] == ["impact", "cushion", "cushion", "impact", "cushion"]
    assert not select_one_sided(found)


def test_the_jacobian_by_tangents_is_that_by_adjoints() -> None:
    objective = load().objective()
    theta = objective.make_tensor(objective.start, requires_grad=True)
    forward, reverse = (jacobian(objective.residual_tensor, theta, mode=mode) for mode in ("forward", "reverse"))
    assert forward.shape == (720, len(TRUE))
    np.testing.assert_allclose(forward, reverse, rtol=0, atol=1e-11 * np.abs(reverse).max())


def test_the_shipped_recording_is_what_the_script_makes(tmp_path: Path) -> None:
    """Another processor may round the last digit otherwise."""
    subprocess.run([sys.executable, str(FOLDER / "make_recordings.py"), str(tmp_path)], check=True)
    made, shipped = [np.loadtxt(folder / "carom.txt", comments="%") for folder in (tmp_path, FOLDER)]
    np.testing.assert_allclose(made, shipped, rtol=0, atol=1.1e-5)
