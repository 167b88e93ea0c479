"""The sections of a mass-spring scene become arrays, anchors included; inconsistent sections are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.scenefile import ConfigError, from_dict, load, to_dict
from simphys.scenefile.section import Fields
from simphys.simulators.mass_spring.model import MassSpring
from simphys.simulators.mass_spring.scene import MassSpringConfig

TRIANGLE = {"position": [[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]], "springs": [[0, 1], [1, 2]]}
DRIVEN: dict[str, Any] = {"material": {"stiffness": 1.0, "amplitude": 0.2}}
ANCHOR = {"node": 1, "point": [5.0, 0.0], "stiffness": 8.0, "damping": 0.5}


def scene(geometry: dict[str, Any] = TRIANGLE, **sections: Any) -> dict[str, Any]:
    simulator = {"name": "mass_spring"}
    whole = {"simulator": simulator, "time": {"dt": 1e-3, "steps": 10}, "material": {"stiffness": 2.0}}
    return {**whole, "geometry": geometry, **sections}


def built(geometry: dict[str, Any] = TRIANGLE, **sections: Any) -> tuple[MassSpring, Fields]:
    config = from_dict(scene(geometry, **sections))
    assert isinstance(config, MassSpringConfig)
    return config.build_model(), config.fields


def test_defaults_describe_resting_unit_masses_and_unstretched_springs() -> None:
    model, fields = built()
    params = {name: value.tolist() for name, value in fields.params.items()}
    assert params == {
        "stiffness": [2.0, 2.0],
        "damping": [0.0, 0.0],
        "rest_length": [3.0, 5.0],
        "mass": [1.0, 1.0, 1.0],
        "drag": [0.0, 0.0, 0.0],
        "gravity": [0.0, 0.0],
        "ground_height": 0.0,
        "ground_stiffness": 0.0,
        "ground_friction": 0.0,
    }
    assert fields.state["position"].tolist() == TRIANGLE["position"]
    assert fields.state["velocity"].tolist() == [[0.0, 0.0]] * 3
    assert model.ends.tolist() == TRIANGLE["springs"]
    assert model.ends.dtype == np.int32
    assert model.pinned.tolist() == [False] * 3
    assert (model.dim, model.dt, model.integrator) == (2, 1e-3, "velocity_verlet")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "stiffness",
            5e3,
            "its anchors, which have a stiffness of their own. Set geometry.anchors.0.stiffness instead.",
        ),
        ("damping", 0.1, "its anchors, which have a damping of their own. Set geometry.anchors.0.damping instead."),
        ("rest_length", 0.1, "its anchors, whose rest length is 0. Drop it."),
    ],
)
def test_properties_of_springs_that_a_scene_has_not_are_warned_of(name: str, value: float, message: str) -> None:
    alone = {"position": [[0.0, 0.0]], "anchors": [{**ANCHOR, "node": 0}]}
    with pytest.warns(UserWarning) as caught:
        built(alone, material={name: value})
    assert str(caught[0].message) == (
        f"material.{name} = {value} changes nothing: the only springs of the scene are {message}"
    )
    with pytest.warns(
        UserWarning, match=f"material.{name} = .*: the scene has no springs. Drop it, or add geometry.sp"
    ):
        built({"position": [[0.0, 0.0]]}, material={name: value})


def test_defaults_of_the_material_are_no_cause_to_warn(recwarn: pytest.WarningsRecorder) -> None:
    config = from_dict(scene({"position": [[0.0, 0.0]], "anchors": [{**ANCHOR, "node": 0}]}, material={}))
    from_dict(to_dict(config))
    built({**TRIANGLE, "anchors": [ANCHOR]}, material={"stiffness": 5.0, "damping": 0.1})
    assert not recwarn.list


def test_all_that_is_given_arrives() -> None:
    model, fields = built(
        {**TRIANGLE, "pinned": [2]},
        simulator={"name": "mass_spring", "integrator": "velocity_verlet"},
        material={"stiffness": [1, 2], "damping": 0.5, "rest_length": [2, 0], "mass": [1, 2, 3], "drag": 0.1},
        environment={"gravity": [0, -9.81], "ground": {"height": -1, "stiffness": 1e3, "friction": 2}},
        state={"velocity": [[1, 0], [0, 1], [0, 0]]},
    )
    assert fields.params["stiffness"].tolist() == [1.0, 2.0]
    assert fields.params["damping"].tolist() == [0.5, 0.5]
    assert fields.params["rest_length"].tolist() == [2.0, 0.0]
    assert fields.params["mass"].tolist() == [1.0, 2.0, 3.0]
    assert fields.params["drag"].tolist() == [0.1, 0.1, 0.1]
    assert fields.params["gravity"].tolist() == [0.0, -9.81]
    assert [fields.params[f"ground_{name}"].item() for name in ("height", "stiffness", "friction")] == [-1.0, 1e3, 2.0]
    assert fields.state["velocity"].tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert model.pinned.tolist() == [False, False, True]
    assert model.integrator == "velocity_verlet"
    assert all(value.dtype == np.float64 for value in {**fields.params, **fields.state}.values())


def test_an_anchor_becomes_a_pinned_node_and_a_linear_spring_behind_the_others() -> None:
    model, fields = built({**TRIANGLE, "anchors": [ANCHOR]})
    assert model.ends.tolist() == [[0, 1], [1, 2], [1, 3]]
    assert model.pinned.tolist() == [False, False, False, True]
    assert fields.state["position"][3].tolist() == [5.0, 0.0]
    assert fields.params["stiffness"].tolist() == [2.0, 2.0, 8.0]
    assert fields.params["damping"].tolist() == [0.0, 0.0, 0.5]
    assert fields.params["rest_length"].tolist() == [3.0, 5.0, 0.0]
    assert fields.params["mass"].tolist() == [1.0] * 4
    assert (fields.nodes, model.anchors) == (3, 1)


def test_actuators_drive_some_springs_and_none_of_the_anchors() -> None:
    springs = [[0, 1], [1, 2], [0, 2]]
    actuators = [{"springs": [2]}, {"springs": {"first": 0, "last": 1}}]
    material = {"stiffness": 2.0, "amplitude": [0.1, 0.2, 0.3]}
    model, fields = built(
        {**TRIANGLE, "springs": springs, "anchors": [ANCHOR], "actuators": actuators}, material=material
    )
    assert model.actuator is not None
    assert model.actuator.tolist() == [1, 1, 0, -1] and model.actuator.dtype == np.int32
    assert fields.params["amplitude"].tolist() == [0.1, 0.2, 0.3, 0.0]
    assert built()[0].actuator is None


def test_springs_may_repeat_and_may_be_none() -> None:
    assert len(built({**TRIANGLE, "springs": [[0, 1], [0, 1], [1, 0]]})[0].ends) == 3
    assert built({"position": [[0.0]]}, material={})[0].ends.shape == (0, 2)


def test_an_unknown_may_be_an_anchor_s_point() -> None:
    unknown = {"parameter": "position", "entries": [[3, 0]], "bounds": [4.0, 6.0]}
    from_dict(scene({**TRIANGLE, "anchors": [ANCHOR]}, unknowns={"point": unknown}))


def test_all_that_is_given_arrives_in_a_large_sheet() -> None:
    geometry = {"lattice": {"shape": [128, 128], "spacing": 1 / 128}, "pinned_faces": ["y+"]}
    stiffness = np.linspace(0.9e4, 1.1e4, 64770)
    model, fields = built(
        geometry, material={"stiffness": stiffness, "drag": 1.0}, environment={"gravity": [0.0, -0.5]}
    )
    assert fields.params["stiffness"].tolist() == stiffness.tolist()
    assert fields.state["position"][129].tolist() == [1 / 128, 1 / 128]
    assert np.flatnonzero(model.pinned).tolist() == list(range(127, 16384, 128))


@pytest.mark.parametrize(
    ("geometry", "sections", "told"),
    [
        ({}, {"material": {"stiffness": -2.0}}, "material.stiffness: must be at least 0; found -2.0. "),
        ({}, {"material": {"stiffness": [1.0, -2.0]}}, "material.stiffness.1: must be at least 0; found -2.0. "),
        ({}, {"material": {"stiffness": 1.0, "damping": -1}}, "material.damping: must be at least 0; found -1. "),
        ({}, {"material": {"stiffness": 1.0, "drag": -1}}, "material.drag: must be at least 0; found -1. "),
        ({}, {"material": {"stiffness": 1.0, "mass": 0}}, "material.mass: must be greater than 0; found 0. "),
        (
            {},
            {"material": {"stiffness": 1.0, "mass": [1, -1, 1]}},
            "material.mass.1: must be greater than 0; found -1. ",
        ),
        ({}, {"material": {"stiffness": float("nan")}}, "material.stiffness: must be a finite number; found NaN. "),
        (
            {},
            {"material": {"stiffness": [1.0]}},
            "material.stiffness: must have 2 elements, one for each spring; found [1.0]. It has 1: give 2.",
        ),
        (
            {},
            {"material": {"stiffness": 1.0, "mass": [1.0]}},
            "material.mass: must have 3 elements, one for each node; ",
        ),
        (
            {},
            {"material": {}},
            "material.stiffness: is needed by springs; found nothing. Add stiffness = 1e3.",
        ),
        (
            {"springs": [[0, 1], [2, 2]]},
            {},
            "geometry.springs.1: its numbers must differ from each other; found [2, 2]. Name another, or drop it.",
        ),
        (
            {"springs": [[0, 3]]},
            {},
            "geometry.springs.0.1: must be the index of one of 3 nodes, counted from 0; found 3. Give an index"
            " from 0 to 2.",
        ),
        (
            {"actuators": [{"springs": [0]}]},
            {},
            "material.amplitude: is needed by geometry.actuators; found nothing. Add amplitude = 0.2.",
        ),
        (
            {},
            {"material": {"stiffness": 1.0, "amplitude": 0.2}},
            "material.amplitude: belongs to geometry.actuators; found 0.2. Drop it.",
        ),
        (
            {"actuators": [{"springs": [0]}]},
            {"material": {"stiffness": 1.0, "amplitude": [0.2]}},
            "material.amplitude: must have 2 elements, one for each spring; found [0.2]. ",
        ),
        (
            {"actuators": [{"springs": [0, 2]}]},
            DRIVEN,
            "geometry.actuators.0.springs: must be indices of the 2 springs, counted from 0; found 2. Give",
        ),
        (
            {"actuators": [{"springs": {"first": 1, "last": 2}}]},
            DRIVEN,
            "geometry.actuators.0.springs: must be indices of the 2 springs, counted from 0; found 2. ",
        ),
        (
            {"actuators": [{"springs": [1]}, {"springs": [0, 1]}]},
            DRIVEN,
            "geometry.actuators.1.springs: a spring has at most one actuator; found spring 1, which actuator 0 drives",
        ),
        (
            {"actuators": [{"springs": []}]},
            DRIVEN,
            "geometry.actuators.0.springs: an actuator drives a spring; found nothing. Name one or more.",
        ),
        (
            {"actuators": [{"springs": {"first": 1, "last": 0}}]},
            DRIVEN,
            "geometry.actuators.0.springs: an actuator drives a spring; found nothing. Name one or more.",
        ),
        ({"springs": [[0, -1]]}, {}, "geometry.springs.0.1: must be at least 0; found -1. "),
        ({"springs": [[0, 1, 2]]}, {}, "geometry.springs.0: must be a list of at most 2 elements; found [0, 1, 2]. "),
        ({"pinned": [3]}, {}, "geometry.pinned.0: must be the index of one of 3 nodes, counted from 0; found 3. "),
        ({"anchors": [{**ANCHOR, "node": 3}]}, {}, "geometry.anchors.0.node: must be the index of one of 3 nodes"),
        (
            {"anchors": [{**ANCHOR, "point": [5.0]}]},
            {},
            "geometry.anchors.0.point: must have 2 elements, one for each axis; found [5.0]. ",
        ),
        (
            {"anchors": [{**ANCHOR, "stiffness": -1.0}]},
            {},
            "geometry.anchors.0.stiffness: must be at least 0; found -1.0",
        ),
        (
            {"position": [[0.0, 0.0], [1.0], [2.0, 0.0]]},
            {},
            "geometry.position.1: must have 2 elements, one for each axis; found [1.0]. ",
        ),
        ({"position": [[0.0] * 4]}, {}, "geometry.position.0: must be a list of at most 3 elements; found [0.0, "),
        ({"position": []}, {}, "geometry.position: must be a list of 1 or more elements; found []. "),
        ({"position": None}, {}, "geometry: needs one of position and lattice; found none. Give exactly one."),
        ({"lattice": {"shape": [2], "spacing": 1.0}}, {}, "geometry: needs one of position and lattice; found posit"),
        (
            {"position": None, "lattice": {"shape": [2, 2], "spacing": 1.0}},
            {},
            "geometry.springs: a lattice has its own springs; found [[0, 1], [1, 2]]. Drop springs, or list the",
        ),
        (
            {"pinned_faces": ["y+"]},
            {},
            'geometry.pinned_faces: needs a lattice; found ["y+"]. List the nodes in pinned.',
        ),
        (
            {"position": None, "springs": None, "lattice": {"shape": [2], "spacing": 1.0}, "pinned_faces": ["y+"]},
            {},
            'geometry.pinned_faces.0: must be a side of a 1-D grid; found "y+". Its sides are x-, x+.',
        ),
        (
            {"position": None, "springs": None, "lattice": {"shape": [2, 2], "spacing": 1.0, "origin": [0.0]}},
            {},
            "geometry.lattice.origin: must have 2 elements, one for each axis; found [0.0]. ",
        ),
        ({}, {"environment": {"gravity": [-9.81]}}, "environment.gravity: must have 2 elements, one for each axis; "),
        ({}, {"state": {"velocity": [[0.0, 0.0]]}}, "state.velocity: must have 3 elements, one for each node; "),
        (
            {},
            {"state": {"velocity": [[0.0, 0.0], [0.0], [0.0, 0.0]]}},
            "state.velocity.1: must have 2 elements, one for",
        ),
    ],
)
def test_inconsistent_sections_are_reported_with_key_and_remedy(
    geometry: dict[str, Any], sections: dict[str, Any], told: str
) -> None:
    whole = {key: value for key, value in {**TRIANGLE, **geometry}.items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        from_dict(scene(whole, **sections))
    (error,) = caught.value.errors
    assert str(error).startswith(f"scene: {told}")


def test_a_spring_of_zero_length_needs_the_rest_length_zero() -> None:
    geometry = {"position": [[1.0], [1.0], [2.0]], "springs": [[1, 2], [0, 1]]}
    assert built(geometry)[1].params["rest_length"].tolist() == [1.0, 0.0]
    assert built(geometry, material={"stiffness": 1.0, "rest_length": 0.0})[1].params["rest_length"].tolist() == [
        0.0,
        0.0,
    ]
    with pytest.raises(ConfigError) as caught:
        built(geometry, material={"stiffness": 1.0, "rest_length": 0.5})
    assert str(caught.value) == (
        "scene: geometry.springs.1: a spring of zero length needs the rest length 0, not 0.5; found [0, 1]. "
        "Move its nodes apart or set its rest length to 0."
    )


def test_a_problem_between_sections_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "self.toml"
    path.write_text(
        """\
[simulator]
name = "mass_spring"
[time]
dt = 1e-3
steps = 5
[geometry]
position = [[0.0], [1.0]]
springs = [
    [0, 1],
    [1, 1],
]
[material]
stiffness = 1.0
mass = [1.0, 0.0]
""",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert [str(error).split("; ")[0] for error in caught.value.errors] == [
        f"{path}:10: geometry.springs.1: its numbers must differ from each other",
        f"{path}:14: material.mass.1: must be greater than 0",
    ]


DRIVEN_BY_NETWORK: dict[str, Any] = {
    **DRIVEN,
    "controller": {"hidden": 3, "goal": [1.0, 2.0], "seed": 4},
    "control": {"kind": "pattern", "waves": 5, "frequency": 2.0},
}


def test_a_controller_makes_a_network_of_the_right_sizes() -> None:
    model, fields = built({**TRIANGLE, "actuators": [{"springs": [0]}, {"springs": [1]}]}, **DRIVEN_BY_NETWORK)
    assert model.controller is not None and model.controller.waves == 5
    assert fields.params["hidden_weight"].shape == (3, 5 + 14) and fields.params["output_weight"].shape == (2, 3)
    assert abs(fields.params["hidden_weight"]).max() <= np.sqrt(6 / 22) and not fields.params["output_bias"].any()


def test_a_controller_without_actuators_or_pattern_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(scene(**{**DRIVEN_BY_NETWORK, "controller": {"goal": [1.0]}, "control": None}))
    assert "controller.goal: must have 2 elements" in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        from_dict(scene(**{**DRIVEN_BY_NETWORK, "control": None}))
    told = str(caught.value)
    assert "controller: needs something to drive; found nothing. Add [[geometry.actuators]], or drop it." in told
    assert 'controller: needs a pattern as its control; found nothing. Give [control] with kind = "pattern"' in told
