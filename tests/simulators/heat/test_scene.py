"""The sections of scenes of heat conduction, their arrays and checks, and the fits of the scenes that ship."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import InputError
from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.heat import Heat

FOLDER = Path(__file__).parents[3] / "scenes" / "heat"


def sections(**changed: Any) -> dict[str, Any]:
    """Build the sections of a small plate."""
    return {
        "simulator": {"name": "heat"},
        "time": {"dt": 0.01, "steps": 5},
        "grid": {"cells": [3, 2], "spacing": 0.5},
        "medium": {"conductivity": 2.0, "heat_capacity": 3.0},
        "state": {"temperature": 20.0},
        **changed,
    }


def test_defaults_describe_an_insulated_plate() -> None:
    scene = build_scene(from_dict(sections()))
    assert scene.model == Heat((3, 2), 0.5, 0.01)
    params = {name: value.tolist() for name, value in scene.params.arrays().items()}
    fields = {"conductivity": [[2.0] * 2] * 3, "heat_capacity": [[3.0] * 2] * 3, "source": [[0.0] * 2] * 3}
    assert params == {**fields, "side_temperature": [0.0] * 4}
    assert scene.state.temperature.data.tolist() == [[20.0] * 2] * 3
    assert scene.grid is not None and scene.grid.cells == (3, 2) and scene.grid.offset == 0.5


def test_all_given_values_arrive(tmp_path: Path) -> None:
    np.save(tmp_path / "k.npy", np.arange(1.0, 7).reshape(3, 2))
    changed = {
        "simulator": {"name": "heat", "scheme": "crank_nicolson"},
        "grid": {"cells": [3, 2], "spacing": 0.5, "sides": {"x+": 5.0, "y-": 6.0}},
        "medium": {"conductivity": {"file": str(tmp_path / "k.npy")}, "heat_capacity": 3.0, "source": 7.0},
        "control": {"kind": "knots", "value": [[1.0, 2.0, 3.0, 4.0]]},
    }
    scene = build_scene(from_dict(sections(**changed)))
    assert scene.model == Heat((3, 2), 0.5, 0.01, "crank_nicolson", ("insulated", "fixed", "fixed", "insulated"))
    params = {name: value.tolist() for name, value in scene.params.arrays().items()}
    assert params == {
        "conductivity": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "heat_capacity": [[3.0] * 2] * 3,
        "source": [[7.0] * 2] * 3,
        "side_temperature": [0.0, 5.0, 6.0, 0.0],
    }
    control = scene.control()
    assert control is not None and control.shape == (5, 4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"grid": {"cells": [3, 2], "spacing": 0.5, "sides": {"z-": 1.0}}}, "must be a side of a 2-D grid"),
        ({"medium": {"conductivity": -2.0, "heat_capacity": 3.0}}, "medium.conductivity"),
        ({"state": {"temperature": {"file": "no.npy"}}}, "state.temperature.file"),
    ],
)
def test_a_wrong_value_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict(sections(**changed))


def test_a_file_with_a_negative_conductivity_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "k.npy", np.array([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]))
    medium = {"conductivity": {"file": str(tmp_path / "k.npy")}, "heat_capacity": 3.0}
    with pytest.raises(ConfigError, match=r"must be above 0; found -4 in cell \[1, 1\]"):
        from_dict(sections(medium=medium))


def test_a_step_beyond_the_limit_is_refused() -> None:
    config = from_dict(sections(time={"dt": 1.0, "steps": 5}))
    with pytest.raises(InputError, match=r"time.dt: the largest stable time step of this scene is 0.125,"):
        config.build()
    from_dict(sections(time={"dt": 1.0, "steps": 5}, simulator={"name": "heat", "scheme": "implicit"})).build()


def test_the_shipped_recordings_are_those_that_the_script_makes(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_recordings", FOLDER / "make_recordings.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    made.main(tmp_path)
    table = np.loadtxt(tmp_path / "conductivity.txt")
    np.testing.assert_allclose(table, np.loadtxt(FOLDER / "conductivity.txt"), atol=0.011)
    for name in ("time", "values"):
        film, shipped = (np.load(folder / "source_film.npz")[name] for folder in (tmp_path, FOLDER))
        np.testing.assert_allclose(film, shipped, atol=1e-4)
    np.testing.assert_allclose(np.load(tmp_path / "source_truth.npy"), np.load(FOLDER / "source_truth.npy"), rtol=1e-6)


def test_five_thermocouples_find_three_conductivities_with_standard_errors(tmp_path: Path) -> None:
    fit = simphys.identify(simphys.load_scene(FOLDER / "conductivity.toml"), folder=tmp_path / "run")
    values = {row.label: (row.value, row.standard_error) for row in fit.unknowns}
    for name, true in (("left", 16.0), ("middle", 52.0), ("right", 110.0)):
        value, error = values[name]
        assert error < 0.02 * true
        assert abs(value - true) < 2 * error + 0.006 * true  # that of the grid
    assert list(fit.rmse.values())[-1] == pytest.approx(0.5, rel=0.15)  # noise of the recording


def test_a_thermal_film_finds_the_sources(tmp_path: Path) -> None:
    scene = simphys.load_scene(FOLDER / "source.toml", ["optimizer.iterations=15"])
    fit = simphys.identify(scene, folder=tmp_path / "run")
    assert list(fit.rmse.values())[-1] < 0.07  # the noise is 0.05
