"""The shipped scene: restitution and friction of a ball are identified from its bounces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import simphys
from simphys.autograd import tensor
from simphys.experiment.scene import Scene
from simphys.simulator.events import select_one_sided

FOLDER = Path(__file__).parents[3] / "scenes" / "rigid"
TRUE = {"restitution": 0.75, "friction": 0.15, "velocity[0]": 2.0, "velocity[1]": 0.5, "spin": 70.0}


def load(dt: float) -> Scene:
    return simphys.load_scene(FOLDER / "bounce.toml", ['runtime.precision="f64"', f"time.dt={dt}"])


def test_the_truth_is_within_three_standard_errors(tmp_path: Path) -> None:
    """The step is twice the scene's."""
    fit = simphys.identify(load(2e-3), folder=tmp_path / "run")
    assert fit.result.success and {row.label for row in fit.unknowns} == set(TRUE)
    for row in fit.unknowns:
        assert abs(row.value - TRUE[row.label]) < 3 * row.standard_error, row
    errors = {row.label: row.standard_error for row in fit.unknowns}
    assert errors["restitution"] < 1e-3 and errors["friction"] < 1e-3


def test_it_bounces_three_times_and_no_gradient_is_one_sided() -> None:
    scene = load(4e-3)
    params = scene.params.replace(restitution=tensor([TRUE["restitution"]]), friction=tensor([TRUE["friction"]]))
    states = scene.rollout(params).states.arrays()
    found = scene.model.events(params.arrays(), states, None)
    assert [event.kind for event in found if event.kind != "release"] == ["impact"] * 3 and not select_one_sided(found)


def test_the_shipped_recording_is_what_the_script_makes(tmp_path: Path) -> None:
    """Another processor may round the last digit otherwise, which is 1e-4 of the angle [degrees]."""
    subprocess.run([sys.executable, str(FOLDER / "make_recordings.py"), str(tmp_path)], check=True)
    made, shipped = [np.loadtxt(folder / "bounce.txt", comments="%") for folder in (tmp_path, FOLDER)]
    assert (abs(made - shipped) < [1e-9, 1.1e-5, 1.1e-5, 1.1e-4]).all()
