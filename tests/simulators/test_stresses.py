"""Stresses of particles and tensions of springs, as runs record them for pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simphys.app.workflow import simulate
from simphys.experiment.scene import load_scene
from simphys.report.packing import unpack
from simphys.report.replay import make_replay
from simphys.simulators.mass_spring import MassSpring
from simphys.simulators.mpm import MPM

SCENES = Path(__file__).resolve().parents[2] / "scenes"


@pytest.mark.parametrize("dim", [2, 3])
def test_a_small_stretch_has_the_stresses_of_linear_elasticity(dim: int) -> None:
    model = MPM((8,) * dim, 0.1, 1e-3, 2, ("fixed_corotated", "fluid"), np.array([0, 1], np.int32))
    stretch, young, poisson, bulk = 1e-5, 2e3, 0.3, 5e3
    params = {name: np.zeros(shape) for name, shape in model.param_shapes().items()}
    params |= {
        "young_modulus": np.full(2, young),
        "poisson_ratio": np.full(2, poisson),
        "bulk_modulus": np.full(2, bulk),
    }
    deformation = np.stack([np.diag([1 + stretch] + [1.0] * (dim - 1))] * 2)
    found = model.stresses(params, {"deformation": deformation[None], "plastic": np.zeros((1, 0))})
    mu, lame = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    stress = np.diag([2 * mu * stretch] + [0.0] * (dim - 1)) + lame * stretch * np.eye(dim)
    pressure = -np.trace(stress) / dim
    deviator = stress + pressure * np.eye(dim)
    assert found["pressure"].unit == found["shear_stress"].unit == "Pa"
    assert found["pressure"].values[0] == pytest.approx([pressure, -bulk * stretch], rel=1e-3)
    assert found["shear_stress"].values[0] == pytest.approx([np.sqrt(np.sum(deviator**2) / 2), 0.0], rel=1e-3, abs=1e-9)
    if dim == 2:
        assert np.sqrt(np.sum(deviator**2) / 2) == pytest.approx((stress[0, 0] - stress[1, 1]) / 2)


def test_springs_have_a_tension_and_actuated_ones_a_strain() -> None:
    ends, pinned = np.array([[0, 1], [1, 2]], np.int32), np.zeros(3, bool)
    states = {"position": np.array([[[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]]])}
    params = {"stiffness": np.array([10.0, 20.0]), "rest_length": np.array([4.0, 2.0])}
    passive = MassSpring(ends, pinned, 2, 1e-3).stresses(params, states)
    assert passive["tension"].unit == "N" and passive["tension"].values[0] == pytest.approx([10.0, -20.0])
    active = MassSpring(ends, pinned, 2, 1e-3, actuator=np.zeros(2, np.int32)).stresses(params, states)
    assert active["strain"].values[0] == pytest.approx([0.25, -0.5])


@pytest.mark.parametrize(
    ("name", "kind", "colours"),
    [
        ("mpm/squeeze", "points", ["pressure", "shear stress"]),
        ("mass_spring/jelly", "lines", ["tension"]),
        ("mass_spring/robot_14", "lines", ["strain"]),
    ],
)
def test_a_run_records_them_and_a_replay_shows_them_in_colours(name: str, kind: str, colours: list[str]) -> None:
    recording = simulate(load_scene(SCENES / f"{name}.toml", ["time.steps=40", "output.every=10"]))
    found = next(layer["colours"] for layer in make_replay(recording)["layers"] if layer["kind"] == kind)
    shown = [each for each in found if each["name"] in colours]
    assert [each["name"] for each in shown] == colours
    for each in shown:
        values = recording[f"stresses/{each['name'].replace(' ', '_')}/value"]
        coarse = (each["high"] - each["low"]) / 255
        assert unpack(each["values"]) == pytest.approx(np.clip(values, each["low"], each["high"]), abs=coarse)


def test_they_are_left_out_where_a_scene_chooses_its_fields() -> None:
    overrides = ["time.steps=4", 'output.fields=["position","velocity"]']
    assert "stresses" not in simulate(load_scene(SCENES / "mass_spring/jelly.toml", overrides))
