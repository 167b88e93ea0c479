"""Values of [values] that would tear a joint of rigid bodies, or that no body takes, are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict, load
from simphys.scenefile.toml_text import to_toml

from .test_unknown_checks import HINGE, SECOND, linked

ELSEWHERE = HINGE | {"a": 1}
SLIDE = {"kind": "prismatic", "a": 0, "anchor": [0.0, 0.0], "axis": [1.0, 0.0]}
WELD = {"kind": "fixed", "a": 0, "anchor": [0.0, 0.0]}


def with_values(*joints: dict[str, Any], **values: Any) -> dict[str, Any]:
    return linked(*joints) | {"values": {label: {"parameter": label, **given} for label, given in values.items()}}


def at(*entries: list[int], value: Any) -> dict[str, Any]:
    return {"entries": list(entries), "value": value}


@pytest.mark.parametrize(
    ("joint", "values", "found"),
    [
        (HINGE, {"position": at([0, 1], value=0.2)}, "body 0 and the world of joint 0, 0.2 apart"),
        (SECOND, {"position": at([1, 0], value=1.0)}, "body 1 and body 0 of joint 0, 0.7 apart"),
        (SECOND, {"orientation": at([0, 0], value=np.pi / 2)}, "body 1 and body 0 of joint 0, 0.707 apart"),
        (SLIDE, {"position": at([0, 1], value=0.5)}, "body 0 and the world of joint 0, 0.5 apart"),
        (SLIDE, {"orientation": at([0, 0], value=0.5)}, "joint 0, turned by 0.5 rad"),
        (WELD, {"orientation": at([0, 0], value=0.5)}, "body 0 and the world of joint 0, turned by 0.5 rad"),
    ],
)
def test_values_that_tear_a_joint_are_reported(joint: Any, values: Any, found: str) -> None:
    made = with_values(joint, **values)
    with pytest.raises(ConfigError, match=rf"values\.\w+\.value: bodies that a joint connects start toget.*{found}"):
        from_dict(made)


@pytest.mark.parametrize(
    ("joint", "values"),
    [
        (ELSEWHERE, {"position": at([1, 0], [1, 1], value=[0.0, 0.3]), "orientation": at([1, 0], value=np.pi / 2)}),
        (HINGE, {"position": at([2, 0], value=7.0)}),
        (SECOND, {"position": at([0, 1], [1, 1], value=2.0)}),
        (SLIDE, {"position": at([0, 0], value=3.0)}),
        (HINGE, {"velocity": at([0, 1], value=3.0)}),
        (HINGE, {"joint_start": {"value": 0.3}}),
    ],
    ids=["a turn", "a free body", "both bodies", "along the slide", "a velocity", "a start"],
)
def test_values_that_leave_joints_together_are_taken(joint: Any, values: Any) -> None:
    build_scene(from_dict(with_values(joint, **values)))


@pytest.mark.parametrize(
    ("name", "instead"),
    [("position", "joint_start"), ("orientation", "joint_start"), ("velocity", "joint_rate")],
)
def test_values_that_bodies_on_started_joints_would_not_take_are_reported(name: str, instead: str) -> None:
    message = rf"values\.{name}\.value: .*found another {name} of body 1\. Give {instead} instead"
    for made in (
        with_values(SECOND | {"start": 0.0}, **{name: at([1, 0], value=2.0)}),
        with_values(SECOND, **{name: at([1, 0], value=2.0), "joint_start": {"value": 0.1}}),
    ):
        with pytest.raises(ConfigError, match=message):
            from_dict(made)


def test_what_a_scene_starts_with_may_be_repeated_as_values() -> None:
    scene = build_scene(from_dict(linked(HINGE | {"start": 0.4, "rate": 2.0}, SECOND)))
    values = {name: {"value": getattr(scene.state, name).data.tolist()} for name in scene.state.names()}
    again = build_scene(from_dict(with_values(HINGE | {"start": 0.4, "rate": 2.0}, SECOND, **values)))
    for name in scene.state.names():
        np.testing.assert_allclose(getattr(again.state, name).data, getattr(scene.state, name).data, atol=1e-15)


def test_values_of_starts_that_close_a_loop_are_reported() -> None:
    made = with_values(HINGE, SECOND, ELSEWHERE | {"anchor": [0.3, 0.1]}, joint_start={"value": [0.2, 0.0, 0.0]})
    anchors = with_values(HINGE, SECOND, ELSEWHERE | {"anchor": [0.3, 0.1]}, joint_anchor_a=at([0, 0], value=0.1))
    for wrong in (made, anchors):
        with pytest.raises(ConfigError, match="form a tree; found joint 2 closes a loop") as error:
            from_dict(wrong)
        assert len(error.value.errors) == 1  # what else is torn follows from the loop


def test_values_of_experiments_are_checked_as_well() -> None:
    made = linked(HINGE) | {
        "experiments": [{}, {"values": {"there": {"parameter": "position", **at([0, 0], value=2.0)}}}]
    }
    with pytest.raises(ConfigError, match=r"experiments\.1\.values\.there\.value: bodies that a joint connects"):
        from_dict(made)


def test_axes_in_space_are_told_from_turns_about_them() -> None:
    body = {"position": [0.0, 0.0, 0.0], "mass": 1.0, "inertia": [0.1, 0.2, 0.25]}
    tables = {"simulator": {"name": "rigid"}, "time": {"dt": 1e-3, "steps": 4}, "bodies": [body]}
    joint = {"kind": "revolute", "a": 0, "anchor": [0.0, 0.0, 0.0], "axis": [0.0, 0.0, 1.0]}

    def turned(*q: float) -> dict[str, Any]:
        return tables | {"joints": [joint], "values": {"turn": {"parameter": "orientation", "value": list(q)}}}

    build_scene(from_dict(turned(2.0, 0.0, 0.0, 2.0)))
    with pytest.raises(ConfigError, match=r"body 0 and the world of joint 0, turned by 1\.57 rad"):
        from_dict(turned(1.0, 1.0, 0.0, 0.0))


def test_bodies_follow_the_values_of_anchors() -> None:
    """A hanging body whose hinge a value moves by 0.3 m starts 0.3 m farther, whatever its own position says."""
    moved = {"joint_anchor_b": at([0, 0], value=0.3)}
    scene = build_scene(from_dict(with_values(HINGE, **moved)))
    told = build_scene(from_dict(linked(HINGE))).state.position.data[0]
    start = scene.state.position.data[0]
    np.testing.assert_allclose(start - told, [0.3, 0.0], atol=1e-12)
    build_scene(from_dict(with_values(HINGE, **moved, position=at([0, 0], [0, 1], value=start.tolist()))))
    with pytest.raises(ConfigError, match=r"values\.position\.value: .*another position of body 0"):
        from_dict(with_values(HINGE, **moved, position=at([0, 0], [0, 1], value=told.tolist())))


SEEN = {"file": "film.csv", "channels": [{"column": 1, "field": "position", "node": 0, "axis": 0}]}
ANCHOR = {"anchor": {"parameter": "joint_anchor_b", "entries": [[0, 0]], "value": 0.1}}
PLACE = {"place": {"parameter": "position", "entries": [[0, 0]], "value": 0.4}}
"""An anchor 0.1 m farther, and where it leaves the body, whose own position is 0.3 m."""


def of_experiments(joint: dict[str, Any], values: dict[str, Any], *own: dict[str, Any]) -> dict[str, Any]:
    bodies = [{"position": [0.3, 0.0], "mass": 1.0, "inertia": 0.1}]
    tables = {"simulator": {"name": "rigid"}, "time": {"dt": 1e-3, "steps": 4}, "bodies": bodies, "joints": [joint]}
    return {**tables, "values": values, "experiments": [{"observations": SEEN, "values": each} for each in own]}


def write_film(folder: Path) -> None:
    np.savetxt(folder / "film.csv", np.column_stack([np.arange(4) * 1e-3, np.zeros(4)]), delimiter=",")


@pytest.mark.parametrize(
    ("values", "own"), [(ANCHOR, [PLACE, {}]), (PLACE, [ANCHOR, ANCHOR]), ({}, [ANCHOR | PLACE, ANCHOR])]
)
def test_values_of_a_scene_and_of_its_experiments_are_judged_together(
    values: Any, own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_film(tmp_path)
    for part in build_scene(from_dict(of_experiments(HINGE, values, *own))).parts:
        np.testing.assert_allclose(part.state.position.data[0], [0.4, 0.0], atol=1e-12)
    far = {"place": PLACE["place"] | {"value": 0.5}}
    contradicted = [{**each, **far} if each is own[0] else each for each in own]
    with pytest.raises(ConfigError, match=r"experiments\.0\.values\.place\.value: .*another position of body 0"):
        from_dict(of_experiments(HINGE, values, *contradicted))


def test_an_anchor_of_one_experiment_leaves_others_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_film(tmp_path)
    for own in ([ANCHOR, {}], [{}, ANCHOR]):
        scene = build_scene(from_dict(of_experiments(HINGE, {}, *own)))
        found = [part.state.position.data[0, 0] for part in scene.parts]
        np.testing.assert_allclose(found, [0.4 if each else 0.3 for each in own], atol=1e-12)
        starts = [motion.position.data[0, 0, 0] for motion in scene.rollout()]
        np.testing.assert_allclose(starts, found)


def test_what_all_experiments_have_from_one_line_is_reported_once(tmp_path: Path) -> None:
    write_film(tmp_path)
    path = tmp_path / "scene.toml"
    damping = {"damping": {"parameter": "joint_damping", "value": -0.1}}
    text = to_toml(of_experiments(HINGE, damping, {}, {}, {"mass": {"parameter": "mass", "value": -1.0}}))
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load(path)
    assert len(error.value.errors) == 2  # one of the line in [values], one of the line of the last experiment
