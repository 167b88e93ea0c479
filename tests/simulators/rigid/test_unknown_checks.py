"""Unknown starts of rigid bodies: those that would tear a joint, or that nothing determines, are reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict

HINGE = {"kind": "revolute", "a": 0, "anchor": [0.0, 0.0]}
SECOND = {"kind": "revolute", "a": 1, "b": 0, "anchor": [0.5, 0.0]}
ALONE = {"parameter": "position", "entries": [2]}


def linked(*joints: dict[str, Any], **unknowns: Any) -> dict[str, Any]:
    """Three bodies in the plane, far apart, with these joints and unknowns."""
    bodies = [{"position": [0.3 * i, 0.0], "mass": 1.0, "inertia": 0.1} for i in range(3)]
    tables = {"simulator": {"name": "rigid"}, "time": {"dt": 1e-3, "steps": 4}, "bodies": bodies}
    return {**tables, "joints": list(joints), "unknowns": unknowns}


def turned(orientation: list[float], **unknowns: Any) -> dict[str, Any]:
    """A body in space with this quaternion."""
    body = {"position": [0.0, 0.0, 0.0], "mass": 1.0, "inertia": [0.1, 0.2, 0.25], "orientation": orientation}
    tables = {"simulator": {"name": "rigid"}, "time": {"dt": 1e-3, "steps": 4}, "bodies": [body]}
    return {**tables, "unknowns": unknowns}


@pytest.mark.parametrize(
    ("parameter", "instead"),
    [
        ("position", "joint_start"),
        ("orientation", "joint_start"),
        ("velocity", "joint_rate"),
        ("angular_velocity", "joint_rate"),
    ],
)
@pytest.mark.parametrize("start", [{}, {"start": 0.1}], ids=["at rest", "started"])
def test_a_body_on_a_joint_starts_where_the_joint_lets_it(parameter: str, instead: str, start: Any) -> None:
    made = linked(HINGE | start, SECOND, sought={"parameter": parameter, "entries": [2, 1]})
    message = rf"unknowns\.sought\.parameter: .*{parameter} of body 1, on joint 1\. Seek {instead} instead"
    with pytest.raises(ConfigError, match=message):
        from_dict(made)


@pytest.mark.parametrize("is_fixed", [False, True], ids=["free", "fixed"])
@pytest.mark.parametrize("parameter", ["position", "velocity"])
def test_a_body_that_carries_others_moves_where_joints_have_starts(parameter: str, is_fixed: bool) -> None:
    own = {"parameter": parameter, "entries": [0]}
    for others in ({}, {"angle": {"parameter": "joint_start"}}):
        made = linked(SECOND, sought=own, **others)
        made["bodies"][0]["fixed"] = is_fixed
        if others:
            from_dict(made)
            continue
        with pytest.raises(ConfigError, match=rf"{parameter} of body 0, to which others are joined.*start = 0\.0"):
            from_dict(made)
    from_dict(linked(SECOND | {"start": 0.0}, sought=own))


def test_bodies_without_joints_start_anywhere() -> None:
    from_dict(linked(HINGE, SECOND, sought=ALONE))
    from_dict(linked(sought={"parameter": "orientation"}))


def test_unknown_starts_of_joints_that_close_a_loop_are_reported() -> None:
    with pytest.raises(ConfigError, match=r"unknowns\.sought\.parameter: .* form a tree; found joint 2 closes a loop"):
        from_dict(linked(HINGE, SECOND, HINGE | {"a": 1}, sought={"parameter": "joint_start"}))


def test_an_entry_that_does_not_exist_is_reported_as_such() -> None:
    with pytest.raises(ConfigError, match=r"unknowns\.sought\.entries"):
        from_dict(linked(HINGE, sought={"parameter": "position", "entries": [7]}))


W, X = [[0, 0]], [[0, k] for k in (1, 2, 3)]


@pytest.mark.parametrize(
    ("orientation", "unknowns", "entries"),
    [
        ([1.0, 0.0, 0.0, 0.0], {"all": {}}, "[[0, 1], [0, 2], [0, 3]]"),
        ([1.0, 0.0, 0.0, 0.0], {"tied": {"tied": True, "start": 1.0}}, "[[0, 1], [0, 2], [0, 3]]"),
        ([1.0, 0.0, 0.0, 0.0], {"w": {"entries": W}, "x": {"entries": X}}, "[[0, 1], [0, 2], [0, 3]]"),
        ([0.0, 0.0, -1.0, 0.0], {"half_turn": {"entries": X}}, "[[0, 0], [0, 1], [0, 3]]"),
    ],
    ids=["all", "tied", "in two unknowns", "half a turn"],
)
def test_a_quaternion_of_no_determined_length_is_reported(orientation: Any, unknowns: Any, entries: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(turned(orientation, **{label: {"parameter": "orientation", **u} for label, u in unknowns.items()}))
    assert f"unknowns.{next(iter(unknowns))}.parameter: the length of a quaternion" in str(caught.value)
    assert f"Seek three of them: entries = {entries}" in str(caught.value)


def test_three_sought_numbers_of_a_quaternion_become_one_of_length_1() -> None:
    made = turned([1.0, 0.0, 0.0, 0.0], x={"parameter": "orientation", "entries": X, "start": [0.0, 2.0, 2.0]})
    scene = build_scene(from_dict(made))
    state = scene.state.replace(orientation=tensor(np.array([[1.0, 0.0, 2.0, 2.0]])))
    found = scene.config.completed(state).orientation.data
    np.testing.assert_allclose(found, [[1 / 3, 0.0, 2 / 3, 2 / 3]], rtol=1e-12)
