"""The sections of a scene of pendulums become arrays; inconsistent ones are reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.pendulum import Chain, Spherical

from ...helpers.rounding import assert_equal_but_for_rounding


def sections(kind: str = "chain", **changed: Any) -> dict[str, Any]:
    """Make a scene of a double or a spherical pendulum, with the runtime settings of this process."""
    made: dict[str, Any] = {"simulator": {"name": "pendulum", "kind": kind}, "time": {"dt": 0.01, "steps": 5}}
    if kind == "chain":
        return {**made, "geometry": {"length": [1.0, 0.5]}, **changed}
    return {**made, "geometry": {"length": 1.0}, "state": {"direction": [3.0, 0.0, -4.0]}, **changed}


POINT_MASSES = {"centre": [1.0, 1.0], "inertia": [0.0, 0.0]}
NO_FRICTION: dict[str, Any] = {"dry_friction": [], "transition_rate": [], "drag": []}


def values(record: Any) -> dict[str, Any]:
    return {name: each.tolist() for name, each in record.arrays().items()}


def test_defaults_describe_a_chain_at_rest() -> None:
    scene = build_scene(from_dict(sections()))
    assert scene.model == Chain(2, 0.01, "rk4")
    expected = {"length": [1.0, 0.5], "mass": [1.0, 1.0], "damping": [0.0, 0.0], "gravity": 9.81, "tilt": 0.0}
    assert values(scene.params) == expected | POINT_MASSES | NO_FRICTION
    assert values(scene.state) == {"angle": [0.0, 0.0], "rate": [0.0, 0.0]}
    assert scene.bodies is None and scene.grid is None


def test_all_that_is_given_arrives() -> None:
    made = sections(
        simulator={"name": "pendulum", "kind": "chain", "integrator": "variational"},
        material={"mass": [2.0, 3.0], "damping": 0.1},
        environment={"gravity": 1.6, "tilt": -0.2},
        state={"angle": [0.1, 0.2], "rate": [0.3, 0.4]},
        control={"kind": "knots", "value": [[0.0, 1.0], [1.0, 0.0]]},
    )
    scene = build_scene(from_dict(made))
    assert scene.model == Chain(2, 0.01, "variational")
    expected = {"length": [1.0, 0.5], "mass": [2.0, 3.0], "damping": [0.1, 0.1], "gravity": 1.6, "tilt": -0.2}
    assert values(scene.params) == expected | POINT_MASSES | NO_FRICTION
    assert values(scene.state) == {"angle": [0.1, 0.2], "rate": [0.3, 0.4]}
    torque = scene.control()
    assert torque is not None and torque.shape == (5, 2)


def test_links_may_be_rods_and_joints_may_have_friction() -> None:
    made = sections(
        material={
            "centre": 0.5,
            "inertia": [0.02, 0.01],
            "dry_friction": [0.3, 0.0],
            "transition_rate": 0.02,
            "drag": 0.1,
        }
    )
    scene = build_scene(from_dict(made))
    assert scene.model == Chain(2, 0.01, "rk4", friction=True)
    found = values(scene.params)
    assert found["centre"] == [0.5, 0.5] and found["inertia"] == [0.02, 0.01]
    assert found["dry_friction"] == [0.3, 0.0] and found["transition_rate"] == [0.02, 0.02]
    assert found["drag"] == [0.1, 0.1]


@pytest.mark.parametrize("parameter", ["dry_friction", "transition_rate", "drag"])
def test_friction_that_is_given_or_sought_makes_a_chain_with_friction(parameter: str) -> None:
    given = build_scene(from_dict(sections(material={parameter: 0.2})))
    sought = build_scene(from_dict(sections(unknowns={"it": {"parameter": parameter, "scale": 1.0}})))
    for scene in (given, sought):
        assert scene.model == Chain(2, 0.01, "rk4", friction=True)
    usual = {"dry_friction": [0.0, 0.0], "transition_rate": [0.1, 0.1], "drag": [0.0, 0.0]}
    assert {name: values(sought.params)[name] for name in usual} == usual


def test_one_length_is_a_chain_of_one() -> None:
    assert build_scene(from_dict(sections(geometry={"length": 0.7}))).model == Chain(1, 0.01)


def test_a_spherical_pendulum_starts_in_a_direction_of_length_one() -> None:
    scene = build_scene(from_dict(sections("spherical")))
    assert scene.model == Spherical(0.01, "rk4")
    assert values(scene.params) == {"length": 1.0, "mass": 1.0, "damping": 0.0, "gravity": [0.0, 0.0, -9.81]}
    assert values(scene.state) == {"direction": [0.6, 0.0, -0.8], "rate": [0.0, 0.0, 0.0]}
    tilted = sections("spherical", environment={"gravity": [0.0, 1.0, -2.0]}, state={
        "direction": [0.0, 0.0, -1.0], "rate": [1.0, 2.0, 0.0]})  # fmt: skip
    scene = build_scene(from_dict(tilted))
    assert values(scene.params)["gravity"] == [0.0, 1.0, -2.0] and values(scene.state)["rate"] == [1.0, 2.0, 0.0]


def test_a_start_that_is_sought_stays_on_the_sphere() -> None:
    scene = build_scene(from_dict(sections("spherical")))
    off = scene.state.replace(direction=tensor([1.0, 0.0, -1.0]), rate=tensor([1.0, 1.0, 0.0]))
    found = scene.config.completed(off)
    assert_equal_but_for_rounding(found.direction.data, np.array([1.0, 0.0, -1.0]) / np.sqrt(2))
    assert_equal_but_for_rounding(found.rate.data, [0.5, 1.0, 0.5])


@pytest.mark.parametrize(
    ("kind", "changed", "where"),
    [
        ("chain", {"geometry": {"length": [1.0, 0.0]}}, "geometry.length"),
        ("chain", {"geometry": {"length": [1.0, -1.0]}}, "geometry.length"),
        ("chain", {"geometry": {"length": []}}, "geometry.length"),
        ("chain", {"material": {"mass": [1.0]}}, "material.mass: must have 2 elements"),
        ("chain", {"material": {"mass": [1.0, -2.0]}}, "material.mass"),
        ("chain", {"material": {"mass": 0.0}}, "material.mass"),
        ("chain", {"material": {"damping": [0.1, 0.1, 0.1]}}, "material.damping: must have 2 elements"),
        ("chain", {"material": {"damping": -0.1}}, "material.damping"),
        ("chain", {"material": {"dry_friction": [0.1]}}, "material.dry_friction: must have 2 elements"),
        ("chain", {"material": {"dry_friction": -0.1}}, "material.dry_friction: must be at least 0"),
        ("chain", {"material": {"transition_rate": 0.0}}, "material.transition_rate: must be greater than 0"),
        ("chain", {"material": {"drag": -1.0}}, "material.drag: must be at least 0"),
        ("chain", {"material": {"inertia": -1.0}}, "material.inertia: must be at least 0"),
        ("chain", {"material": {"centre": [1.0, 0.0]}}, "material.centre: a link whose centre of mass is in its joint"),
        ("chain", {"values": {"v": {"parameter": "drag", "value": -1.0}}}, "values.v.value: must be at least 0"),
        ("spherical", {"values": {"v": {"parameter": "drag", "value": 1.0}}}, "values.v.parameter: must name a param"),
        ("spherical", {"material": {"drag": 0.1}}, "material.drag: belongs to a chain"),
        ("spherical", {"material": {"centre": 0.5}}, "material.centre: belongs to a chain"),
        ("chain", {"environment": {"gravity": [0.0, 0.0, -9.81]}}, "environment.gravity: a chain takes a number"),
        ("chain", {"state": {"angle": [0.1]}}, "state.angle: must have 2 elements"),
        ("chain", {"state": {"angle": [0.1, float("nan")]}}, "state.angle.1"),
        ("chain", {"state": {"rate": [0.1] * 3}}, "state.rate: must have 2 elements"),
        (
            "chain",
            {"state": {"direction": [0.0, 0.0, -1.0]}},
            "state.direction: belongs to a spherical pendulum",
        ),
        ("spherical", {"geometry": {"length": [1.0, 1.0]}}, "geometry.length: a spherical pendulum takes a number"),
        ("spherical", {"material": {"mass": [1.0]}}, "material.mass: a spherical pendulum takes a number"),
        ("spherical", {"environment": {"tilt": 0.1}}, "environment.tilt: belongs to a chain"),
        ("spherical", {"state": {}}, "state.direction: must be a direction; found nothing"),
        ("spherical", {"state": {"direction": [0.0, 0.0, 0.0]}}, "state.direction: must be a direction"),
        ("spherical", {"state": {"direction": [0.0, 1.0, 0.0], "angle": [0.1]}}, "state.angle: belongs to a chain"),
        ("spherical", {"state": {"direction": [0.0, 1.0, 0.0], "rate": [0.1, 0.0]}}, "state.rate: must have 3 ele"),
        ("spherical", {"state": {"direction": [0.0, 2.0, 0.0], "rate": [1.0, 1.0, 0.0]}}, "state.rate: must be perp"),
    ],
)
def test_inconsistent_sections_are_reported_with_their_key(kind: str, changed: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_dict(sections(kind, **changed))
    assert where in str(raised.value)


def test_a_recording_of_its_motion_has_the_units(tmp_path: Any) -> None:
    import simphys

    scene = build_scene(from_dict(sections(state={"angle": [0.5, 0.2]}, output={"folder": str(tmp_path / "run")})))
    run = simphys.simulate(scene)
    assert run.attrs("fields/angle/value") == {"unit": "rad"}
    assert run.attrs("fields/rate/value") == {"unit": "rad/s"}
