"""The sections of a scene of charges become arrays; inconsistent ones are reported; the shipped scene is solved."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.identification import Identification
from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.charges import Charges

FOLDER = Path(__file__).parents[3] / "scenes" / "charges"


def sections(**changed: Any) -> dict[str, Any]:
    """Make a scene of two charges, with the runtime settings of this process."""
    return {
        "simulator": {"name": "charges"},
        "time": {"dt": 0.01, "steps": 5},
        "geometry": {"position": [[0.0, 0.0], [1.0, 2.0]]},
        "material": {"charge": [1.0, -2.0], "softening": 0.1},
        **changed,
    }


def test_defaults_describe_resting_unit_masses() -> None:
    scene = build_scene(from_dict(sections()))
    assert scene.model == Charges(2, 2, 0.01, "velocity_verlet")
    params = {name: value.tolist() for name, value in scene.params.arrays().items()}
    assert params == {"charge": [1.0, -2.0], "mass": [1.0, 1.0], "coupling": 1.0, "softening": 0.1}
    assert scene.state.position.data.tolist() == [[0.0, 0.0], [1.0, 2.0]]
    assert not scene.state.velocity.data.any()
    assert scene.bodies is not None and scene.bodies.own == 2 and not scene.bodies.pinned.any()


def test_all_that_is_given_arrives() -> None:
    material = {"charge": 3.0, "mass": [2.0, 4.0], "coupling": -1.5, "softening": 0.2}
    made = sections(
        simulator={"name": "charges", "integrator": "semi_implicit_euler"},
        material=material,
        state={"velocity": [[1.0, 2.0], [3.0, 4.0]]},
    )
    scene = build_scene(from_dict(made))
    params = {name: value.tolist() for name, value in scene.params.arrays().items()}
    assert params == {**material, "charge": [3.0, 3.0]}
    assert scene.state.velocity.data.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert scene.model.integrator == "semi_implicit_euler"


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"geometry": {"position": [[0.0, 0.0], [1.0]]}}, "geometry.position.1"),
        ({"material": {"charge": [1.0], "softening": 0.1}}, "material.charge"),
        ({"material": {"charge": 1.0, "mass": [1.0] * 3, "softening": 0.1}}, "material.mass"),
        ({"material": {"charge": 1.0, "softening": 0.0}}, "material.softening"),
        ({"material": {"charge": 1.0}}, "material.softening"),
        ({"state": {"velocity": [[0.0, 0.0]]}}, "state.velocity"),
        ({"state": {"velocity": [[0.0, 0.0], [1.0]]}}, "state.velocity.1"),
    ],
)
def test_inconsistent_sections_are_reported_with_their_key(changed: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_dict(sections(**changed))
    assert where in str(raised.value)
    assert len(raised.value.errors) == 1


def load(*overrides: str) -> Scene:
    """Load the shipped scene in the precision of this process."""
    return simphys.load_scene(FOLDER / "find_charges.toml", ['runtime.precision="f64"', *overrides])


def recording() -> ModuleType:
    """Load the script that made the scene's recording, with the true values."""
    spec = importlib.util.spec_from_file_location("make_recordings_of_charges", FOLDER / "make_recordings.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def found(fit: Identification, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values and standard errors of an unknown's entries."""
    rows = [row for row in fit.unknowns if row.label.startswith(f"{name}[")]
    return np.array([row.value for row in rows]), np.array([row.standard_error for row in rows])


def test_the_shipped_recording_is_the_one_that_the_script_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "make_recordings.py"), str(tmp_path)], check=True)
    (made,) = tmp_path.iterdir()
    shipped = FOLDER / made.name
    assert made.read_text().partition("\n")[0] == shipped.read_text().partition("\n")[0]
    found, expected = (np.loadtxt(file, comments="%") for file in (made, shipped))
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.0101)  # a last digit


def test_the_simulator_moves_as_the_recording_was_made() -> None:
    """The recording follows from the true values, to a hundredth of the noise."""
    true = recording()
    scene = load()
    params = scene.params.replace(charge=simphys.autograd.tensor(true.CHARGE))
    state = scene.state.replace(
        position=simphys.autograd.tensor(true.POSITION), velocity=simphys.autograd.tensor(true.VELOCITY)
    )
    np.testing.assert_array_equal(params.mass.data, true.MASS)
    moved = scene.rollout(params, state).position.data
    time = scene.dt * np.arange(1, scene.steps)
    np.testing.assert_allclose(moved[1:-1], true.motion(time), rtol=0, atol=true.NOISE / 100)


def test_the_fit_recovers_every_charge_and_where_and_how_fast_the_pucks_began(tmp_path: Path) -> None:
    true = recording()
    scene = load()
    wrong = np.sign(scene.params.charge.data) != np.sign(true.CHARGE)
    assert wrong.sum() == 3
    fit = simphys.identify(scene, folder=tmp_path / "run")
    assert fit.result.success
    expected = {"charge": true.CHARGE[1:], "start": true.POSITION.ravel(), "velocity": true.VELOCITY.ravel()}
    assert len(fit.unknowns) == sum(len(values) for values in expected.values())
    for name, values in expected.items():
        value, error = found(fit, name)
        np.testing.assert_array_less(abs(value - values), 3 * error, err_msg=name)
    value, error = found(fit, "charge")
    assert error.max() < 0.1  # nC, of 5 to 19
    assert all(row.note == "" for row in fit.unknowns)
    assert list(fit.rmse.values())[-1] == pytest.approx(true.NOISE, rel=0.02)


@pytest.mark.parametrize("start", [[0.0] * 7, [-10.0] * 7, [11.7, -8.2, 8.6, 8.7, -19.8, -13.4, 14.1]], ids=str)
def test_other_starts_lead_to_the_same_charges(start: list[float], tmp_path: Path) -> None:
    true = recording()
    fit = simphys.identify(load(f"material.charge={[float(true.CHARGE[0]), *start]}"), folder=tmp_path / "run")
    value, error = found(fit, "charge")
    np.testing.assert_array_less(abs(value - true.CHARGE[1:]), 3 * error)
