"""Entries of unknowns and values by the names of bodies, joints, springs, motors and columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, UnknownSection, load
from simphys.scenefile.entry_names import number_entries
from simphys.scenefile.toml_text import to_toml


def rigid() -> dict[str, Any]:
    """An arm with a motor at the world, which a tether holds, and a ball."""
    return {
        "simulator": {"name": "rigid"},
        "time": {"dt": 1e-3, "steps": 5},
        "bodies": [
            {"name": "ball", "position": [0.0, 1.0], "mass": 1.0, "inertia": 0.1},
            {"name": "arm", "position": [0.5, 1.0], "mass": 2.0, "inertia": 0.1},
            {"position": [1.5, 1.0], "mass": 2.0, "inertia": 0.1},
        ],
        "joints": [
            {"kind": "revolute", "a": "arm", "anchor": [0.0, 1.0], "damping": 0.1},
            {"kind": "revolute", "name": "elbow", "a": 2, "b": "arm", "anchor": [1.0, 1.0], "motor": 1.0},
        ],
        "springs": [
            {"name": "tether", "a": "ball", "anchor_a": [0.0, 1.0], "anchor_b": [0.0, 2.0], "stiffness": 1.0},
        ],
        "control": {"kind": "recorded", "columns": ["torque"], "file": "torque.csv", "time": "t"},
        "loss": {"terms": [{"kind": "final_mean", "target": [0.0, 0.0]}]},
    }


def carts() -> dict[str, Any]:
    """Two nodes of springs with names."""
    return {
        "simulator": {"name": "mass_spring"},
        "time": {"dt": 1e-3, "steps": 5},
        "geometry": {"position": [[0.0], [1.0]], "names": {"cart": 0, "bob": 1}, "springs": [["cart", "bob"]]},
        "material": {"stiffness": 1.0, "mass": 1.0},
        "loss": {"terms": [{"kind": "final_mean", "target": [0.0]}]},
    }


def load_scene(folder: Path, scene: dict[str, Any], **sections: Any) -> Any:
    (folder / "torque.csv").write_text("t,torque\n0,1\n1,2\n")
    (folder / "scene.toml").write_text(to_toml({**scene, **sections}))
    return load(folder / "scene.toml")


@pytest.mark.parametrize(
    ("parameter", "given", "wanted"),
    [
        ("mass", ["arm"], [1]),
        ("position", [["ball", 1], [0, 0]], [[0, 1], [0, 0]]),
        ("joint_damping", ["elbow"], [1]),
        ("motor_strength", ["elbow"], [0]),
        ("spring_stiffness", ["tether"], [0]),
        ("control_gain", ["torque"], [0]),
    ],
)
def test_names_become_numbers(parameter: str, given: list[Any], wanted: list[Any], tmp_path: Path) -> None:
    unknown = load_scene(tmp_path, rigid(), unknowns={"x": {"parameter": parameter, "entries": given}}).unknowns["x"]
    assert unknown.entries == wanted


def test_values_and_nodes_of_springs_take_names_too(tmp_path: Path) -> None:
    values = {"x": {"parameter": "velocity", "entries": ["bob"], "value": 2.0}}
    config = load_scene(tmp_path, carts(), values=values)
    assert config.values["x"].entries == [1]


@pytest.mark.parametrize(
    ("parameter", "given", "message"),
    [
        (
            "mass",
            ["ram"],
            r'unknowns\.x\.entries\.0: must be the name or the number of a body; found "ram"\. Did you mean',
        ),
        (
            "position",
            [0, ["bal", 1]],
            r"entries\.1\.0: .* found \"bal\"\. Did you mean 'ball'\? The names are ball, arm\.",
        ),
        ("joint_damping", ["arm"], r"the name or the number of a joint; found \"arm\"\. The names are elbow\."),
        ("gravity", ["ball"], r"must be the number of a row of gravity; found \"ball\"\. No row of gravity has a name"),
        ("control_gain", ["force"], r"of a column of the control; found \"force\"\. The names are torque\."),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_there_are(
    parameter: str, given: list[Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"scene\.toml:\d+: .*{message}") as caught:
        load_scene(tmp_path, rigid(), unknowns={"x": {"parameter": parameter, "entries": given}})
    assert len(caught.value.errors) == 1


def test_names_of_joints_are_given_once(tmp_path: Path) -> None:
    scene = rigid()
    scene["joints"][0]["name"] = "elbow"
    with pytest.raises(ConfigError, match=r"joints\.1\.name: must be the name of one joint only; found \"elbow\""):
        load_scene(tmp_path, scene)


def test_springs_without_names_say_where_to_give_them(tmp_path: Path) -> None:
    scene = rigid()
    del scene["springs"][0]["name"]
    with pytest.raises(ConfigError, match=r"No spring has a name: .* or names in \[\[springs\]\] name"):
        load_scene(tmp_path, scene, unknowns={"x": {"parameter": "spring_stiffness", "entries": ["tether"]}})


def test_unknowns_of_a_script_take_names_too(tmp_path: Path) -> None:
    config = load_scene(tmp_path, rigid())
    given = {
        "m": UnknownSection(parameter="mass", entries=["arm"], start=3.0),
        "x": UnknownSection(parameter="position", entries=[["ball", 1], [0, 0]]),
        "strength": UnknownSection(parameter="motor_strength", entries=["elbow"]),
    }
    numbered = number_entries(config, given)
    assert [each.entries for each in numbered.values()] == [[1], [[0, 1], [0, 0]], [0]]
    assert numbered["m"].start == 3.0 and given["m"].entries == ["arm"]
    plain = {"m": UnknownSection(parameter="mass", entries=[1])}
    assert number_entries(config, plain) is plain
    scene = build_scene(config)
    objective = scene.objective({"m": UnknownSection(parameter="mass", entries=["arm"])})
    assert objective.unknowns.natural(objective.start).tolist() == [2.0]


def test_unknown_names_in_a_script_are_told(tmp_path: Path) -> None:
    rods, nodes = load_scene(tmp_path, rigid()), load_scene(tmp_path, carts())
    with pytest.raises(ConfigError, match=r'unknowns\.m\.entries\.0: .* found "arn"\. Did you mean \'arm\'\?'):
        number_entries(rods, {"m": UnknownSection(parameter="mass", entries=["arn"])})
    with pytest.raises(ConfigError, match=r"No row of stiffness has a name: give its number"):
        number_entries(nodes, {"k": UnknownSection(parameter="stiffness", entries=["left"])})
    only_at_the_first_place = {"x": UnknownSection(parameter="position", entries=[[0, "x"]])}
    with pytest.raises(ConfigError, match=r"unknowns\.x\.entries\.0: must be numbers here"):
        build_scene(nodes).objective(only_at_the_first_place)
