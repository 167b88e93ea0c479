"""The next experiment: what changes of it are predicted to tell is what they tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.next_experiment import design_scene, option_rows, write_design
from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene

from ..experiment.test_several import tables
from ..helpers.small_scenes import build

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "mass_spring" / "two_gliders.toml"


def expected(scene: Scene) -> np.ndarray:
    """Standard errors by the stated noise."""
    objective = scene.objective()
    jacobian = objective.jacobian(objective.start)
    found = np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)))
    return np.asarray(found * np.abs(objective.unknowns.natural_derivative(objective.start)))


def gliders(*overrides: str, sigma: float = 0.4) -> Scene:
    noise = [f"observations.channels.{place}.sigma={sigma}" for place in (0, 1)]
    return simphys.load_scene(SCENE, ["time.dt=0.01", *noise, *overrides])


def test_predicted_errors_are_those_of_the_changed_experiment() -> None:
    found = design_scene(gliders("time.duration=3.0"))
    options = {(each.kind, each.name): each for each in found.options}
    np.testing.assert_allclose(found.now.errors, expected(gliders("time.duration=3.0")), rtol=1e-6)
    twice = options["twice", "position of node 0"]
    sharper = gliders("time.duration=3.0", f"observations.channels.0.sigma={0.4 / np.sqrt(2)}")
    np.testing.assert_allclose(twice.errors, expected(sharper), rtol=1e-6)
    assert twice.gain > 0 and twice.factor < 1
    longer = options["longer", "all recordings 1.5 times as long"]
    np.testing.assert_allclose(longer.errors, expected(gliders("time.duration=4.5")), rtol=0.1)
    assert found.options[0] is longer and [each.gain for each in found.options] == sorted(
        [each.gain for each in found.options], reverse=True
    )
    assert np.isinf(options["without", "position of node 1"].gain)  # from one glider alone not all can be told
    assert found.lost[""].shape == (10,) and (found.lost[""] > 0).all()


def test_a_further_sensor_is_worth_what_its_channel_would_be(tmp_path: Path) -> None:
    given: dict[str, Any] = tables(tmp_path)
    geometry = {"position": [[0.5], [1.5]], "springs": [[0, 1]]}
    anchors = [{"node": 0, "point": [0.0], "stiffness": 7.0}]
    given |= {"geometry": geometry | {"anchors": anchors}, "material": {"stiffness": 5.0, "mass": 1.0}}
    given["unknowns"] = {"springs": {"parameter": "stiffness", "transform": "log"}}
    first = given.pop("experiments")[0]
    given["observations"] |= first["observations"]
    found = design_scene(build(given))
    (further,) = [each for each in found.options if each.kind == "further sensor"]
    assert further.name == "position of node 1"  # the anchor does not move
    given["observations"]["channels"].append(given["observations"]["channels"][0] | {"node": 1})
    np.testing.assert_allclose(further.errors, expected(build(given)), rtol=1e-6)


def test_a_recording_that_is_left_out_takes_its_own_unknowns_along(tmp_path: Path) -> None:
    given = tables(tmp_path)
    scene = build(given)
    found = design_scene(scene)
    assert len({round(each.gain, 9) for each in found.options}) == len(found.options)  # nothing is ranked twice
    (without,) = [each for each in found.options if (each.kind, each.name) == ("without", "recording experiment 2")]
    given["experiments"].pop(1)
    rest = expected(build(given))
    np.testing.assert_allclose(without.errors[[0, 1, 3]], rest, rtol=1e-6)
    assert np.isnan(without.errors[2]) and without.gain < 0
    folder, files = write_design(scene, found)
    assert [path.name for path in files] == ["design.csv", "design.png"]
    with pytest.raises(InputError, match=r"must not hold a ranking of changes; found design\.csv there.* --overwrite"):
        write_design(scene, found)
    assert write_design(scene, found, overwrite=True) == (folder, files)
    assert len((folder / "design.csv").read_text().splitlines()) == len(found.options) + 2
    assert len(option_rows(found)) == len(found.options)


def test_data_that_do_not_determine_the_unknowns_are_refused(tmp_path: Path) -> None:
    given = tables(tmp_path)
    given["unknowns"]["mass"] = {"parameter": "mass", "entries": [0]}  # only stiffness / mass can be told
    with pytest.raises(InputError, match="data must determine all"):
        design_scene(build(given))


def test_further_sensors_of_a_grid_lie_all_over_it() -> None:
    """They need not be the first ones, which lie in a corner."""
    scene = simphys.load_scene(SCENE.parents[1] / "heat" / "quadrants.toml")
    names = [each.name for each in design_scene(scene).options if each.kind == "further sensor"]
    rows = {int(name.split()[-2].rstrip(",")) for name in names}
    assert len(names) == 24 and min(rows) <= 2 and max(rows) >= 7
