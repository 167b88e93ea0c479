"""Channels of a control are called by what they drive, and rows of small fields by what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simphys.scenefile import load
from simphys.scenefile.channel_names import CHANNEL, name_channels, name_rows

SCENES = Path(__file__).resolve().parents[2] / "scenes"
GRID = {"cells": [8, 8]}


def names(count: int, simulator: str, control: dict[str, Any] | None = None, **tables: Any) -> list[str]:
    found = name_channels({"simulator": {"name": simulator}, "control": control or {"kind": "knots"}, **tables})
    return [found.of(channel) for channel in range(count)]


def test_motors_have_the_names_of_their_joints() -> None:
    joints = [{"name": "hip", "motor": 1.0}, {"name": "slide"}, {"motor": 2.0}]
    assert names(2, "rigid", joints=joints) == ["hip", "motor 1"]


def test_a_rhythm_is_waves_only_where_a_network_is_given_it() -> None:
    rhythm, joints = {"kind": "pattern", "waves": 2}, [{"name": "hip", "motor": 1.0}, {"name": "knee", "motor": 1.0}]
    assert names(2, "rigid", rhythm, joints=joints, controller={"hidden": 3}) == ["wave 0", "wave 1"]
    assert names(2, "rigid", rhythm, joints=joints, controller=None) == ["hip", "knee"]


def test_actuators_have_the_name_of_a_body_unless_several_share_it() -> None:
    alone = [{"name": "left", "actuator": 0}, {"name": "right", "actuator": 1}, {"name": "trunk"}]
    assert names(2, "mpm", bodies=alone, grid=GRID) == ["left", "right"]
    shared = [{"name": "leg", "actuator": 0}, {"name": "leg", "actuator": 1}, {"name": "arm", "actuator": 2}]
    assert names(3, "mpm", bodies=shared, grid=GRID) == ["actuator 0", "actuator 1", "arm"]
    two = [{"name": "upper", "actuator": 0}, {"name": "lower", "actuator": 0}, {"actuator": 1}]
    assert names(2, "mpm", bodies=two, grid=GRID) == ["actuator 0", "actuator 1"]


def test_colliders_come_after_actuators_velocities_first() -> None:
    bodies, colliders = [{"name": "leg", "actuator": 0}], [{"shape": "sphere"}]
    plane = ["leg", "collider 0 x", "collider 0 y", "collider 0 spin"]
    assert names(4, "mpm", bodies=bodies, colliders=colliders, grid=GRID) == plane
    space = names(7, "mpm", bodies=bodies, colliders=colliders, grid={"cells": [8, 8, 8]})
    assert space[3:5] == ["collider 0 z", "collider 0 spin x"]


@pytest.mark.parametrize(
    ("simulator", "expected"),
    [
        ("mass_spring", ["actuator 0", "actuator 1"]),
        ("charges", ["x", "y"]),
        ("heat", ["x-", "x+"]),
        ("wave", ["source 0", "source 1"]),
        ("elastic", ["source 0", "source 1"]),
        ("pendulum", ["link 0", "link 1"]),
        ("mine", ["channel 0", "channel 1"]),
    ],
)
def test_channels_are_called_by_what_they_drive(simulator: str, expected: list[str]) -> None:
    assert names(2, simulator) == expected


def test_pivots_and_spherical_pendulums_have_axes() -> None:
    assert name_channels({"simulator": {"name": "pendulum", "drive": "pivot"}}).of(1) == "pivot y"
    assert name_channels({"simulator": {"name": "pendulum", "kind": "spherical"}}).of(2) == "z"


def test_columns_that_have_names_keep_them() -> None:
    assert names(2, "pendulum", {"kind": "recorded", "columns": ["voltage", 3]}) == ["voltage", "column 3"]
    assert names(1, "pendulum", {"kind": "recorded", "columns": [3]}) == ["link 0"]


def test_a_signal_of_all_members_is_not_called_by_its_sources() -> None:
    members = {"kind": "wavelet", "amplitude": [[1.0], [2.0]]}
    assert name_channels({"simulator": {"name": "wave"}, "control": members}) is CHANNEL


def test_names_are_as_many_as_the_channels_of_scenes_that_ship() -> None:
    walker = name_channels(load(SCENES / "rigid/push.toml").model_dump())
    assert walker.given == ("carriage along x", "hand along y")
    press = name_channels(load(SCENES / "mpm/press.toml").model_dump())
    assert press.given == ("collider 0 x", "collider 0 y", "collider 0 spin") and press.several == "channels"


def test_rows_of_small_fields_have_names() -> None:
    force = name_rows({"simulator": {"name": "smoke"}}, "force")
    gauges = name_rows({"simulator": {"name": "sph"}}, "depth")
    thighs = name_rows({"simulator": {"name": "rigid"}, "bodies": [{"name": "left"}, {}]}, "angular_velocity")
    assert force is not None and force.of(1) == "y"
    assert gauges is not None and gauges.of(3) == "gauge 3"
    assert thighs is not None and [thighs.of(body) for body in (0, 1)] == ["left", "body 1"]
    assert name_rows({"simulator": {"name": "mine"}}, "force") is None
