"""What a section demands of its numbers holds for [values] and for those of experiments, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.scenefile import ConfigError, load

from ..helpers.small_scenes import build

SCENES = Path(__file__).parents[2] / "scenes"
SIGNED = {
    *("gravity", "ground_height", "tilt", "centre", "centre_of_mass", "charge", "coupling", "lower", "upper"),
    *(
        "joint_anchor_a",
        "joint_anchor_b",
        "spring_anchor_a",
        "spring_anchor_b",
        "motor_strength",
        "collider_velocity",
        "collider_spin",
        "poisson_ratio",
    ),
    *("hidden_weight", "hidden_bias", "output_weight", "output_bias"),
    *("source", "side_temperature", "source_position", "source_velocity", "receiver_position", "force", "moment"),
    *("buoyancy", "boundary_velocity", "boundary_smoke", "smoke_rate"),
}
"""Parameters that may be negative."""
CHECKED_LATER = {"inertia"}
"""Parameters that are refused when the scene is built."""


@pytest.mark.parametrize(
    "scene",
    [
        *("mass_spring/crawler", "billiards/carom", "charges/find_charges", "elastic/section", "heat/source"),
        *("molecular/argon", "mpm/press", "pendulum/friction", "rigid/block_on_springs", "rigid/push", "smoke/cavity"),
        *("sph/dam", "wave/drop", "shallow_water/harbour"),
    ],
)
def test_negative_values_are_refused_unless_a_section_would_take_them(scene: str) -> None:
    path = SCENES / f"{scene}.toml"
    config = load(path, ["unknowns={}", "loss.terms=[]"])
    given = {each.parameter for experiment in config.experiments for each in experiment.values.values()}
    signed = SIGNED - {"gravity"} if scene.startswith("shallow_water") else SIGNED  # there it is the speed of waves
    for name, values in config.fields.params.items():
        if not values.size or name in CHECKED_LATER | given:
            continue
        overrides = ["unknowns={}", "loss.terms=[]", f'values.wrong={{parameter="{name}", value=-0.7}}']
        if name in signed:
            load(path, overrides)
            continue
        with pytest.raises(ConfigError) as error:
            load(path, overrides)
        assert "values.wrong.value" in str(error.value) and "found -0.7" in str(error.value), name


def spring(**changes: Any) -> dict[str, Any]:
    return {
        "simulator": {"name": "mass_spring"},
        "time": {"dt": 0.01, "steps": 3},
        "geometry": {"position": [[0.5]], "anchors": [{"node": 0, "point": [0.0], "stiffness": 7.0}]},
    } | changes


def value(parameter: str, number: Any, **changes: Any) -> dict[str, Any]:
    return {"given": {"parameter": parameter, "value": number} | changes}


@pytest.mark.parametrize(
    ("name", "number", "constraint"),
    [
        ("stiffness", -1.0, "must be at least 0; found -1. Give stiffness a value that its section would take."),
        ("drag", [0.1, -0.2], "must be at least 0; found -0.2."),
        ("mass", 0.0, "must be greater than 0; found 0."),
    ],
)
def test_the_message_is_that_of_the_section(name: str, number: Any, constraint: str) -> None:
    with pytest.raises(ConfigError) as error:
        build(spring(values=value(name, number)))
    assert f"values.given.value: {constraint}" in str(error.value)
    build(spring(values=value(name, np.abs(number) + 0.5)))


def test_values_of_experiments_and_upper_limits_hold() -> None:
    seen = {"file": "missing.csv", "channels": [{"column": 1, "field": "position", "node": 0}]}
    experiments = [{"observations": seen}, {"observations": seen, "values": value("damping", -0.1)}]
    with pytest.raises(ConfigError, match=r"experiments\.1\.values\.given\.value: must be at least 0; found -0\.1"):
        build(spring(experiments=experiments))
    path = SCENES / "billiards" / "carom.toml"
    for restitution in (1.2, -0.1):
        given = f'values.bounce={{parameter="cushion_restitution", value={restitution}}}'
        with pytest.raises(ConfigError, match=f"found {restitution}"):
            load(path, ["unknowns={}", given])


def test_values_in_files_hold(tmp_path: Path) -> None:
    np.save(tmp_path / "drag.npy", np.array([0.1, -0.3]))
    with pytest.raises(InputError, match=r"must be at least 0; found -0\.3"):
        build(spring(values=value("drag", str(tmp_path / "drag.npy"))))


def test_what_a_free_search_found_loads_again() -> None:
    """A drag within its error of 0 may be found below it; the criterion of dissipation judges that."""
    unknowns = {"drag": {"parameter": "drag", "entries": [0]}}
    scene = build(spring(values=value("drag", -0.01, entries=[0]), unknowns=unknowns))
    assert scene.params.drag.data[0] == -0.01
    with pytest.raises(ConfigError, match=r"must be at least 0; found -0\.02"):
        build(spring(values=value("drag", [-0.01, -0.02]), unknowns=unknowns))


def test_a_camera_demands_what_its_section_does() -> None:
    channel = {"column": 1, "field": "position", "node": 0, "axis": 0}
    seen = {"file": "missing.csv", "camera": {"scale": 100.0}, "channels": [channel]}
    with pytest.raises(InputError, match=r"values\.given\.value: must be greater than 0; found -2"):
        build(spring(observations=seen, values=value("camera_scale", -2.0)))
