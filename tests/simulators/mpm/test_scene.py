"""The sections of scenes with material points, their conversion to arrays, and their checks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import ConfigError, from_dict, load
from simphys.simulators.mpm.laws import LAW_PARAMETERS, LAWS
from simphys.simulators.mpm.model import Params
from simphys.simulators.mpm.scene import MPMConfig

ELASTIC = {"density": 1000.0, "young_modulus": 1e4, "poisson_ratio": 0.3}
BOX = {"shape": "box", "lower": [0.3, 0.3], "upper": [0.5, 0.6], **ELASTIC}
BALL = {"shape": "ball", "centre": [0.75, 0.5], "radius": 0.1, **ELASTIC}
LATTICE = {"shape": "lattice", "origin": [0.3, 0.3], "counts": [4, 3], "particle_spacing": 0.02, **ELASTIC}


@pytest.fixture(autouse=True)
def laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add laws with other parameters, one of which has a hidden variable that is 1 at rest."""
    monkeypatch.setitem(LAWS, "water", SimpleNamespace(PARAMETERS=("bulk_modulus",), HIDDEN=False, REST=0.0))
    brittle = SimpleNamespace(PARAMETERS=("young_modulus", "poisson_ratio", "hardening"), HIDDEN=True, REST=1.0)
    monkeypatch.setitem(LAWS, "brittle", brittle)


def tables(*bodies: dict[str, Any], **sections: Any) -> dict[str, Any]:
    cells = [20] * len(next(body[key] for body in bodies for key in ("lower", "centre", "origin") if key in body))
    return {
        "simulator": {"name": "mpm"},
        "time": {"dt": 1e-4, "steps": 1},
        "grid": {"cells": cells, "spacing": 0.05},
        "bodies": list(bodies),
        **sections,
    }


def made(*bodies: dict[str, Any], **sections: Any) -> Any:
    config = from_dict(tables(*bodies, **sections))
    assert isinstance(config, MPMConfig)
    return config.fields


def model(*bodies: dict[str, Any], **sections: Any) -> Any:
    config = from_dict(tables(*bodies, **sections))
    assert isinstance(config, MPMConfig)
    return config.build_model()


def test_two_particles_along_an_axis_of_a_cell_fill_a_box_and_share_its_mass() -> None:
    fields = made(BOX)
    assert fields.nodes == 8 * 12
    np.testing.assert_allclose(fields.params["volume"], 0.025**2)
    np.testing.assert_allclose(fields.params["mass"].sum(), 1000 * 0.2 * 0.3)
    np.testing.assert_allclose(fields.state["position"].min(axis=0), [0.3125, 0.3125])


def test_particles_are_at_rest_and_undeformed_unless_the_scene_throws_them() -> None:
    fields = made(BOX, {**BALL, "velocity": [1.0, -2.0]})
    first = 8 * 12
    assert not fields.state["velocity"][:first].any() and not fields.state["affine"].any()
    np.testing.assert_array_equal(fields.state["velocity"][first:], [[1.0, -2.0]] * (fields.nodes - first))
    np.testing.assert_array_equal(fields.state["deformation"], [np.eye(2)] * fields.nodes)
    assert fields.state["plastic"].shape == (0,)


def test_a_lattice_has_the_given_origin_and_the_given_mass_and_volume_of_particles() -> None:
    body = {key: value for key, value in LATTICE.items() if key != "density"}
    fields = made({**body, "particle_mass": 1.0, "particle_volume": 2.0})
    np.testing.assert_allclose(fields.state["position"][[0, 1, 3]], np.array([[0.3, 0.3], [0.3, 0.32], [0.32, 0.3]]))
    np.testing.assert_array_equal(fields.params["mass"], np.ones(12))
    np.testing.assert_array_equal(fields.params["volume"], np.full(12, 2.0))


def test_particles_are_as_dense_as_asked_for() -> None:
    assert made({**BOX, "per_cell": 3}).nodes == 12 * 18
    assert made({**BOX, "particle_spacing": 0.1}).nodes == 2 * 3


def test_a_parameter_that_no_law_reads_is_empty_and_0_for_particles_whose_law_does_not_read_it() -> None:
    water = {"shape": "ball", "centre": [0.75, 0.5], "radius": 0.1, "law": "water"}
    fields = made(BOX, {**water, "density": 1000.0, "bulk_modulus": 2e4})
    first = 8 * 12
    np.testing.assert_array_equal(fields.params["young_modulus"], [1e4] * first + [0.0] * (fields.nodes - first))
    np.testing.assert_array_equal(fields.params["bulk_modulus"], [0.0] * first + [2e4] * (fields.nodes - first))
    assert fields.params["yield_stress"].shape == (0,)


def test_snow_has_default_parameters_and_its_own_state_of_rest() -> None:
    fields = made(BOX, {**BALL, "law": "brittle"})
    first = 8 * 12
    np.testing.assert_array_equal(fields.params["hardening"], [0.0] * first + [10.0] * (fields.nodes - first))
    np.testing.assert_array_equal(fields.state["plastic"], [0.0] * first + [1.0] * (fields.nodes - first))


def test_every_field_of_the_model_is_there_with_its_shape() -> None:
    colliders = [{"shape": "sphere", "size": [0.05], "position": [0.2, 0.8]}]
    for bodies in ((BOX, {**BALL, "law": "brittle"}), (LATTICE,)):
        fields, of = made(*bodies, colliders=colliders), model(*bodies, colliders=colliders)
        assert {name: values.shape for name, values in fields.params.items()} == of.param_shapes()
        assert {name: values.shape for name, values in fields.state.items()} == of.state_shapes()


def test_bodies_have_keys_for_all_that_laws_read() -> None:
    of_colliders = {"collider_velocity", "collider_spin", "collider_friction"}
    rest = {"mass", "volume", "gravity", "wall_friction", *of_colliders}
    assert set(LAW_PARAMETERS) == set(Params.names()) - rest


def test_each_particle_has_its_law_and_a_single_law_needs_no_numbers() -> None:
    both = model(BOX, {**BALL, "law": "brittle"})
    assert both.laws == ("fixed_corotated", "brittle")
    np.testing.assert_array_equal(both.law, [0] * 96 + [1] * (both.particles - 96))
    assert model(BOX).law is None and model(BOX).actuator is None and model(BOX).fibre is None


def test_actuators_have_particles_and_directions() -> None:
    of = model({**BOX, "actuator": 1, "fibre": [3.0, 4.0]}, BALL)
    np.testing.assert_array_equal(of.actuator, [1] * 96 + [-1] * (of.particles - 96))
    np.testing.assert_allclose(of.fibre[[0, 96]], np.array([[0.6, 0.8], [0.0, 1.0]]))
    assert of.actuators == 2


def test_the_channels_of_the_control_are_those_of_the_model() -> None:
    ball = {"shape": "sphere", "size": [0.05], "position": [0.2, 0.8]}
    for body, colliders, channels in (({**BOX, "actuator": 1}, [ball, ball], 2 + 6), (BOX, [ball], 3)):
        assert made(body, colliders=colliders).channels == channels
        assert model(body, colliders=colliders).control_shape() == (channels,)
    assert made(BOX).channels is None and model(BOX).control_shape() == (0,)


def test_the_mass_that_is_added_to_nodes_is_small_against_any_particles() -> None:
    assert model(BOX).mass_floor == pytest.approx(1e-10 * 1000 * 0.025**2)
    heavy = {key: value for key, value in BALL.items() if key != "density"} | {"particle_mass": 5.0}
    assert model(BOX, heavy).mass_floor == model(BOX).mass_floor


def test_walls_are_all_alike_or_given_by_face() -> None:
    grid = {"cells": [20, 20], "spacing": 0.05}
    assert model(BOX).walls == ("separating",) * 4
    assert model(BOX, grid={**grid, "walls": "slip"}).walls == ("slip",) * 4
    faces = model(BOX, grid={**grid, "walls": {"y-": "sticking"}, "margin": 4, "skin": 0.1})
    assert faces.walls == ("separating", "separating", "sticking", "separating")
    assert (faces.margin, faces.skin, faces.cells, faces.spacing) == (4, 0.1, (20, 20), 0.05)


def test_colliders_in_the_plane() -> None:
    colliders = [
        {"shape": "box", "size": [0.1, 0.02], "position": [0.2, 0.2], "rotation": 0.5, "contact": "sticking"},
        {"shape": "plane", "position": [0.1, 0.1], "velocity": [1, 2], "spin": 3, "friction": 0.4},
    ]
    fields, of = made(BOX, colliders=colliders), model(BOX, colliders=colliders)
    assert [(c.shape, c.size, c.contact) for c in of.colliders] == [
        ("box", (0.1, 0.02), "sticking"),
        ("plane", (), "separating"),
    ]
    np.testing.assert_allclose(fields.state["collider_position"], np.array([[0.2, 0.2], [0.1, 0.1]]))
    np.testing.assert_allclose(fields.state["collider_rotation"], np.array([[0.5], [0.0]]))
    np.testing.assert_allclose(fields.params["collider_velocity"], np.array([[0, 0], [1, 2]]))
    np.testing.assert_allclose(fields.params["collider_spin"], np.array([[0], [3]]))
    np.testing.assert_allclose(fields.params["collider_friction"], [0, 0.4])


def test_colliders_in_space_turn_by_unit_quaternions() -> None:
    cube = {"shape": "box", "lower": [0.3] * 3, "upper": [0.4] * 3, **ELASTIC}
    collider = {"shape": "plane", "position": [0.2] * 3, "rotation": [3, 0, 4, 0], "spin": [1, 2, 3]}
    fields = made(cube, colliders=[collider, {"shape": "sphere", "size": [0.1], "position": [0.6] * 3}])
    rotation = np.array([[0.6, 0.0, 0.8, 0.0], [1, 0, 0, 0]])
    np.testing.assert_allclose(fields.state["collider_rotation"], rotation)
    np.testing.assert_allclose(fields.params["collider_spin"], np.array([[1, 2, 3], [0, 0, 0]]))


def lines(*bodies: dict[str, Any], **sections: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        from_dict(tables(*bodies, **sections))
    return [str(error) for error in caught.value.errors]


def without(body: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


@pytest.mark.parametrize(
    ("bodies", "line"),
    [
        (
            [BOX, {**without(BALL, "young_modulus", "poisson_ratio"), "law": "water"}],
            "bodies.1.bulk_modulus: is needed by the law water; found nothing. Add bulk_modulus.",
        ),
        (
            [{**BOX, "bulk_modulus": 1.0}],
            "bodies.0.bulk_modulus: the law fixed_corotated does not use it; found 1.0. Drop it; it uses y",
        ),
        ([{**BOX, "law": "wood"}], 'bodies.0.law: must be a constitutive law; found "wood". Known: fixed_corotated, '),
        ([{**BOX, "poisson_ratio": 0.5}], "bodies.0.poisson_ratio: must be less than 0.5; found 0.5. "),
        ([{**BOX, "young_modulus": 0.0}], "bodies.0.young_modulus: must be greater than 0; found 0.0. "),
        (
            [without(BOX, "upper")],
            "bodies.0.upper: is needed by a box; found nothing. Add upper.",
        ),
        ([{**BOX, "radius": 0.1}], "bodies.0.radius: belongs to a ball; found 0.1. Drop it."),
        ([{**BOX, "upper": [0.6, 0.2]}], "bodies.0.upper: must be beyond the lower corner [0.3, 0.3] along every axis"),
        ([{**BOX, "lower": [0.3] * 3}, BALL], "grid"),
        (
            [{**BOX, "velocity": [1.0] * 3}],
            "bodies.0.velocity: must have 2 elements, one for each axis of grid.cells; ",
        ),
        ([{**BOX, "per_cell": 2, "particle_spacing": 0.1}], "bodies.0: needs one of per_cell and particle_spac"),
        ([without(BOX, "density")], "bodies.0: needs one of density and particle_mass; found none. "),
        ([{**BOX, "particle_mass": 1.0}], "bodies.0: needs one of density and particle_mass; found density and "),
        ([{**BOX, "fibre": [1.0, 0.0]}], "bodies.0.fibre: is only for a body with an actuator; found [1.0, 0.0]. "),
        ([{**BOX, "actuator": 0, "fibre": [0.0, 0.0]}], "bodies.0.fibre: must be a direction; found [0.0, 0.0]. "),
        (
            [{**BOX, "lower": [0.1, 0.3]}],
            "bodies.0: a body must be inside of the walls, from (0.15, 0.15) to (0.85, 0.85); found its lower corner "
            "at (0.1, 0.3). Move it, make it smaller, or give more cells.",
        ),
        (
            [{**BALL, "centre": [0.8, 0.5], "radius": 0.1}],
            "bodies.0: a body must be inside of the walls, from (0.15, 0.15) to (0.8",
        ),
        (
            [BOX, {**BALL, "centre": [0.56, 0.65]}],
            "bodies.1: bodies must not overlap: their mass would count twice; found an overlap with bodies.0. ",
        ),
        ([{**BALL, "radius": 0.001}], "bodies.0: a body must have a particle; found none. Raise per_cell"),
    ],
)
def test_problems_of_a_body_are_reported(bodies: list[dict[str, Any]], line: str) -> None:
    if line == "grid":
        found = lines(*bodies, grid={"cells": [20, 20], "spacing": 0.05})
        assert found == ["scene: bodies.0.lower: must have 2 elements, one for each axis of grid.cells; "
                         "found [0.3, 0.3, 0.3]. It has 3: give 2."]  # fmt: skip
        return
    assert any(found.startswith(f"scene: {line}") for found in lines(*bodies)), lines(*bodies)


def test_bodies_may_touch_and_a_ball_may_be_in_a_corner_of_another_ones_bounding_box() -> None:
    made(BOX, {**BOX, "lower": [0.5, 0.3], "upper": [0.6, 0.6]})
    made(BOX, {**BALL, "centre": [0.58, 0.68], "radius": 0.11})


@pytest.mark.parametrize(
    ("sections", "line"),
    [
        (
            {"environment": {"gravity": [0.0, 0.0, -9.8]}},
            "environment.gravity: must have 2 elements, one for each axis of grid.cells",
        ),
        (
            {"grid": {"cells": [20, 7], "spacing": 0.05}},
            "grid.cells.1: must be at least 8, as walls take 3 nodes at ea",
        ),
        (
            {"grid": {"cells": [20, 20], "spacing": 0.05, "walls": {"z-": "slip"}}},
            'grid.walls.z-: must be a side of a 2-D grid; found "z-". Its sides are x-, x+, y-, y+.',
        ),
        ({"bodies": []}, "bodies: must be a list of 1 or more elements; found []."),
        (
            {"colliders": [{"shape": "box", "size": [0.1], "position": [0.2, 0.2]}]},
            "colliders.0.size: a box has 2 positive sizes; found [0.1]. Give half of each edge.",
        ),
        (
            {"colliders": [{"shape": "plane", "position": [0.2, 0.2, 0.2]}]},
            "colliders.0.position: must have 2 elements, one for each axis of grid.cells; ",
        ),
        (
            {"colliders": [{"shape": "plane", "position": [0.2, 0.2], "rotation": [1, 0, 0, 0]}]},
            "colliders.0.rotation: in 2-D it is an angle [rad]; found [1.0, 0.0, 0.0, 0.0]. ",
        ),
        (
            {"colliders": [{"shape": "capsule", "size": [0.1, 0.05], "position": [0.2, 0.4], "rotation": 0.2}]},
            "colliders.0: a collider must not overlap with a body initially; found 6 of the 96 particles",
        ),
    ],
)
def test_problems_of_the_environment_are_reported(sections: dict[str, Any], line: str) -> None:
    (found,) = lines(BOX, **sections)
    assert found.startswith(f"scene: {line}")


@pytest.mark.parametrize("rotation", [0.0, 0.7])
@pytest.mark.parametrize(
    ("shape", "size", "reach"), [("sphere", [0.1], 0.1), ("box", [0.05, 0.1], 0.05), ("capsule", [0.04, 0.06], 0.1)]
)
def test_a_collider_may_be_as_near_as_its_shape_allows(
    shape: str, size: list[float], reach: float, rotation: float
) -> None:
    """Towards the first particle, along the collider's own first axis, its surface is `reach` from its centre."""
    direction = np.array([np.cos(rotation), np.sin(rotation)])
    corner = np.array([0.3125, 0.3125])
    for factor, free in ((1.01, True), (0.99, False)):
        position = (corner - factor * reach * direction).tolist()
        collider = {"shape": shape, "size": size, "position": position, "rotation": rotation}
        if free:
            made(BOX, colliders=[collider])
        else:
            assert "colliders.0: a collider must not overlap" in lines(BOX, colliders=[collider])[0]


def test_errors_name_the_line_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "scene.toml"
    file.write_text(
        'simulator.name = "mpm"\n'
        "time = { dt = 1e-4, steps = 1 }\n"
        "grid = { cells = [20, 20], spacing = 0.05 }\n"
        "[[bodies]]\n"
        'shape = "ball"\ncentre = [0.5, 0.5]\nradius = 0.1\ndensity = 1000\nyoung_modulus = 1e4\npoisson_ratio = 0.6\n'
    )
    with pytest.raises(ConfigError, match=r"scene\.toml:10: bodies\.0\.poisson_ratio: must be less than 0\.5"):
        load(file)
    config = load(file, ["bodies.0.poisson_ratio=0.3"])
    assert config.bodies[0].poisson_ratio == 0.3  # type: ignore[attr-defined]


def test_a_scene_is_built_with_its_particles_as_bodies() -> None:
    built: Scene = build_scene(from_dict(tables(BOX, BALL)))
    assert built.bodies is not None
    assert built.bodies.own == built.model.particles == len(built.bodies.pinned)
    assert not built.bodies.pinned.any() and not len(built.bodies.links)
    np.testing.assert_array_equal(built.bodies.group, [0] * 96 + [1] * (built.bodies.own - 96))
    assert built.params.arrays().keys() == set(Params.names())
