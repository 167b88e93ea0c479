"""The sections of shallow-water scenes, their arrays and checks, and the fit of the scene that ships."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import InputError, tensor
from simphys.autograd.errors import UnphysicalValue
from simphys.experiment.scene import Scene, build_scene
from simphys.rollout import rollout
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.wave.shallow import ShallowWater

from ....helpers.rounding import assert_equal_but_for_rounding

FOLDER = Path(__file__).parents[4] / "scenes" / "shallow_water"


def sections(**changed: Any) -> dict[str, Any]:
    """Build the sections of a small basin."""
    return {
        "simulator": {"name": "shallow_water"},
        "time": {"dt": 0.01, "steps": 5},
        "grid": {"cells": [3, 2], "spacing": 0.5},
        "medium": {"depth": 0.4},
        **changed,
    }


def test_defaults_describe_level_water_between_walls_at_rest() -> None:
    scene = build_scene(from_dict(sections()))
    assert scene.model == ShallowWater((3, 2), 0.5, 0.01, ("closed", "closed"))
    params = {name: value.tolist() for name, value in scene.params.arrays().items()}
    assert params == {"depth": [[0.4] * 2] * 3, "gravity": 9.81, "friction": 0.0}
    assert scene.state.velocity.shape == (2, 3, 2)
    assert not scene.state.velocity.data.any() and not scene.state.elevation.data.any()
    assert scene.grid is not None and scene.grid.cells == (3, 2) and scene.grid.offset == 0.5


def test_all_given_values_arrive(tmp_path: Path) -> None:
    np.save(tmp_path / "depth.npy", np.arange(1.0, 4))
    grid = {"cells": [3], "spacing": 0.5, "boundaries": ["periodic"]}
    medium = {"depth": {"file": str(tmp_path / "depth.npy")}, "gravity": 2.0, "friction": 0.1}
    bumps = [{"centre": [0.25], "radius": 0.5, "height": 0.2}, {"centre": [1.25], "radius": 1.0, "height": -0.1}]
    scene = build_scene(from_dict(sections(grid=grid, medium=medium, state={"elevation": bumps})))
    assert scene.model.boundaries == ("periodic",)
    params = {name: value.tolist() for name, value in scene.params.arrays().items()}
    assert params == {"depth": [1.0, 2.0, 3.0], "gravity": 2.0, "friction": 0.1}
    first, second = np.exp([0.0, -1.0, -4.0]), np.exp([-1.0, -0.25, 0.0])
    assert_equal_but_for_rounding(scene.state.elevation.data, 0.2 * first - 0.1 * second)
    np.savetxt(tmp_path / "elevation.txt", [0.1, 0.2, 0.3])
    state = {"elevation": {"file": str(tmp_path / "elevation.txt")}}
    again = build_scene(from_dict(sections(grid=grid, state=state)))
    assert again.state.elevation.data.tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"grid": {"cells": [3, 2], "spacing": 0.5, "boundaries": ["closed"]}},
            "grid.boundaries: must have 2 elements",
        ),
        ({"grid": {"cells": [3, 2, 4], "spacing": 0.5}}, "grid.cells: must be a list of at most 2"),
        ({"medium": {"depth": 0.0}}, "medium.depth: must be greater than 0"),
        ({"medium": {"depth": {"file": "nowhere.txt"}}}, "medium.depth.file: must be a file that can be read"),
        (
            {"state": {"elevation": [{"centre": [0.1], "radius": 1.0, "height": 0.1}]}},
            "state.elevation.0.centre: must have 2 elements",
        ),
    ],
)
def test_inconsistent_sections_are_reported_with_their_place(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_dict(sections(**changed))
    assert message in str(raised.value)
    assert len(raised.value.errors) == 1


def test_a_depth_above_the_water_is_reported(tmp_path: Path) -> None:
    np.save(tmp_path / "depth.npy", np.array([[1.0, 1.0], [1.0, -0.2], [1.0, 1.0]]))
    with pytest.raises(ConfigError, match=r"must be above 0; found -0.2 in cell \[1, 1\]"):
        from_dict(sections(medium={"depth": {"file": str(tmp_path / "depth.npy")}}))


def test_a_trough_without_water_is_reported() -> None:
    state = {"elevation": [{"centre": [0.25, 0.75], "radius": 0.1, "height": -0.5}]}
    with pytest.raises(InputError, match=r"every cell has water.* found -0\.1 in cell \[0, 1\]"):
        build_scene(from_dict(sections(state=state)))


def test_a_time_step_beyond_the_largest_one_is_reported() -> None:
    with pytest.raises(InputError, match=r"the largest stable time step of this scene is 0\.15\d+,"):
        build_scene(from_dict(sections(time={"dt": 0.2, "steps": 5})))


def recording() -> ModuleType:
    """Load the script that made the recording, with the true values."""
    spec = importlib.util.spec_from_file_location("make_shallow_recordings", FOLDER / "make_recordings.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def load(*overrides: str) -> Scene:
    """Load the scene that ships, in the precision of this process."""
    return simphys.load_scene(FOLDER / "harbour.toml", ['runtime.precision="f64"', *overrides])


def test_the_shipped_files_are_those_that_the_script_makes(tmp_path: Path) -> None:
    recording().main(tmp_path)
    for name in ("harbour_depth.txt", "harbour.txt"):
        made, shipped = (np.loadtxt(folder / name, comments="%") for folder in (tmp_path, FOLDER))
        np.testing.assert_allclose(made, shipped, rtol=0, atol=1e-5)  # a last digit


def test_the_fit_recovers_the_depth_of_the_inner_basin_and_the_friction(tmp_path: Path) -> None:
    true = recording()
    fit = simphys.identify(load(), folder=tmp_path / "run")
    assert fit.result.success
    for row, value, largest in zip(fit.unknowns, (true.DEPTH, true.FRICTION), (1e-3, 0.05), strict=True):
        assert abs(row.value - value) < 3 * row.standard_error and row.standard_error < largest * value, row
        assert row.note == ""
    assert list(fit.rmse.values())[-1] == pytest.approx(true.NOISE, rel=0.05)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_value_of_gravity_that_makes_no_waves_is_reported() -> None:
    with pytest.raises(InputError, match=r"values.g.value: must be greater than 0; found -1"):
        build_scene(from_dict(sections(values={"g": {"parameter": "gravity", "value": -1.0}})))


@pytest.mark.parametrize(
    "changes", [{"gravity": -1.0}, {"gravity": 0.0}, {"depth": np.array([[0.4, 0.4], [0.4, -0.2]])}]
)
def test_water_without_waves_is_refused_and_a_search_goes_on(changes: dict[str, Any]) -> None:
    model, params, state = from_dict(sections(grid={"cells": [2, 2], "spacing": 0.5})).build()
    params = params.replace(**{name: tensor(values) for name, values in changes.items()})
    with pytest.raises(UnphysicalValue, match=f"ShallowWater: {next(iter(changes))}: positive and finite"):
        rollout(model, params, state, steps=1)
