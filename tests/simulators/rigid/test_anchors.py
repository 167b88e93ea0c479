"""Anchors of joints and centres of mass as unknowns: what moves with them, their gradients, a fit, and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import gradcheck, tensor
from simphys.experiment.scene import Scene, build_scene
from simphys.plot.motion.rigid import list_bodies
from simphys.scenefile import ConfigError, from_dict

from ...helpers.rounding import assert_equal_but_for_rounding
from .joints.test_assembly import in_plane, in_space, place, started

FOLDER = Path(__file__).parents[3] / "scenes" / "rigid"
NAMES = ("joint_anchor_a", "joint_anchor_b", "centre_of_mass", "spring_anchor_a", "spring_anchor_b")
SPRING = {"a": 1, "b": 2, "anchor_a": [0.3, 0.3], "anchor_b": [0.8, 0.1], "stiffness": 30.0, "damping": 0.2}


def swinging(make: Any, **changes: Any) -> dict[str, Any]:
    """The started chain with gravity and a spring, for some steps."""
    tables = started(make())
    dim = len(tables["bodies"][0]["position"])
    spring = {**SPRING, **{f"anchor_{end}": [*SPRING[f"anchor_{end}"], 0.1][:dim] for end in "ab"}}  # type: ignore[misc]
    return tables | {"environment": {"gravity": [0.0, -9.81, 0.0][:dim]}, "springs": [spring]} | changes


@pytest.mark.parametrize("make", [in_plane, in_space])
def test_the_frame_of_a_body_may_begin_anywhere(make: Any) -> None:
    plain, moved = swinging(make), swinging(make)
    for number, body in enumerate(moved["bodies"]):
        body["centre"] = (0.1 * number + np.array([0.3, -0.2, 0.5])[: len(body["position"])]).tolist()
    one, other = [build_scene(from_dict(tables)) for tables in (plain, moved)]
    assert not one.model.free_anchors and other.model.free_anchors
    expected, found = [scene.rollout().states.arrays() for scene in (one, other)]
    for name, values in expected.items():
        assert_equal_but_for_rounding(found[name], values, ulps=2048, size=1.0)


@pytest.mark.parametrize("make", [in_plane, in_space])
def test_joints_stay_closed_where_anchors_and_centres_move(make: Any) -> None:
    unknowns = {name: {"parameter": name} for name in NAMES}
    scene = build_scene(from_dict(swinging(make, unknowns=unknowns, loss=final(make))))
    objective = scene.objective()
    moved = objective.scene_at(objective.start + 0.1 * np.random.default_rng(0).standard_normal(objective.start.size))
    params, joint = moved.params, moved.model.joints[1]
    arms = [
        getattr(params, f"joint_anchor_{end}").data[1] - params.centre_of_mass.data[body]
        for end, body in (("a", joint.a), ("b", joint.b))
    ]
    assert abs(arms[0] - joint.anchor_a).max() > 0.01
    assert_equal_but_for_rounding(
        place(moved.state, joint.a, arms[0]), place(moved.state, joint.b, arms[1]), ulps=64, size=1.0
    )


def final(make: Any) -> dict[str, Any]:
    dim = len(make()["bodies"][0]["position"])
    return {"terms": [{"kind": "final_state", "nodes": [4], "target": [1.0] * dim}]}


@pytest.mark.parametrize("make", [in_plane, in_space])
def test_the_gradient_goes_through_the_start_and_the_motion(make: Any) -> None:
    unknowns = {name: {"parameter": name} for name in NAMES}
    scene = build_scene(from_dict(swinging(make, unknowns=unknowns, loss=final(make))))
    objective = scene.objective()
    theta = tensor(objective.start + 0.01, requires_grad=True)
    assert gradcheck(objective.loss_tensor, (theta,), mode="projected")


def test_the_gradient_of_a_broken_start_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start that forgets anchors has their effect on the motion alone: differences then disagree."""
    unknowns = {"elbow": {"parameter": "joint_anchor_a", "entries": [1]}}
    objective = build_scene(from_dict(swinging(in_plane, unknowns=unknowns, loss=final(in_plane)))).objective()
    config, complete = type(objective.scene.config), type(objective.scene.config).completed

    def forget(self: Any, state: Any, design: Any = None, params: Any = None) -> Any:
        return complete(self, state, design, None if params is None else params.replace(
            **{name: tensor(values) for name, values in params.arrays().items()}))  # fmt: skip

    monkeypatch.setattr(config, "completed", forget)
    with pytest.raises(AssertionError):
        gradcheck(objective.loss_tensor, (tensor(objective.start + 0.01, requires_grad=True),), mode="projected")


def test_hinges_and_centres_of_mass_are_found_in_a_film(tmp_path: Path) -> None:
    """The recording follows Lagrange's equations; all unknowns start 2 cm to 3 cm off, the angles 0.2 rad."""
    fit = simphys.identify(simphys.load_scene(FOLDER / "filmed_arm.toml"), folder=tmp_path / "run")
    assert fit.verdict == "passed"
    truth = np.concatenate([unknown.truth for unknown in fit.scene.config.unknowns.values()])
    for row, true in zip(fit.unknowns, truth, strict=True):
        assert abs(row.value - true) < 3 * row.standard_error, row
    shown = list_bodies(fit.recording)[0]["shapes"][0]["offset"]
    np.testing.assert_allclose(shown, [0.03, -0.02], atol=1e-3)
    again = simphys.load_scene(tmp_path / "run" / "fitted.toml")
    np.testing.assert_allclose(again.state.position.data, fit.recording.start["position"], atol=1e-9)


HANGING: dict[str, Any] = {
    "simulator": {"name": "rigid"},
    "time": {"dt": 2e-3, "steps": 1000},
    "bodies": [{"position": [0.2, -0.6], "mass": 0.4, "inertia": 4e-3, "orientation": 0.3, "velocity": [0.5, 0.0]}],
    "springs": [
        {"a": 0, "anchor_a": [0.05, -0.55], "anchor_b": [0.0, 0.0], "stiffness": 60.0, "damping": 0.05, "length": 0.5},
        {"a": 0, "anchor_a": [0.35, -0.55], "anchor_b": [0.4, 0.0], "stiffness": 80.0, "damping": 0.05, "length": 0.5},
    ],
    "environment": {"gravity": [0.0, -9.81]},
}


def test_values_hang_springs_elsewhere_and_their_energy_follows(tmp_path: Path) -> None:
    """A spring moved in the file, and by a value: the same motion and energies. Its rest length stays."""
    springs = [{**HANGING["springs"][0], "anchor_b": [0.1, 0.2]}, HANGING["springs"][1]]
    energies = [{"column": 1 + k, "field": field} for k, field in enumerate(("energy", "potential_energy"))]
    np.savetxt(tmp_path / "seen.txt", np.column_stack([0.1 * np.arange(20), np.zeros((20, 2))]))
    seen = {"observations": {"file": str(tmp_path / "seen.txt"), "channels": energies}}
    value = {"parameter": "spring_anchor_b", "entries": [0], "value": [0.1, 0.2]}
    moved = build_scene(from_dict({**HANGING, **seen, "springs": springs}))
    given = build_scene(from_dict({**HANGING, **seen, "values": {"hook": value}}))
    assert given.model.free_anchors and not moved.model.free_anchors
    expected, found = [scene.predict(scene.rollout()).data for scene in (moved, given)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.ptp(found[:, 1]) > 0.1
    limits = [scene.model.step_limits(scene.params.arrays(), scene.state.arrays())[0] for scene in (moved, given)]
    assert limits[0][:2] == limits[1][:2] and limits[0].dt < np.inf


@pytest.mark.parametrize("each", [False, True])
def test_anchors_of_springs_are_found(each: bool, tmp_path: Path) -> None:
    """One hook in the world and the hole of its spring, and the other hook, which may have moved between recordings."""
    noise = np.random.default_rng(3)
    time, experiments = np.arange(1, 101) * 0.02, []
    for name, hook in (("first", 0.4), ("second", 0.45 if each else 0.4)):
        value = {"parameter": "spring_anchor_b", "entries": [[1, 0]], "value": hook}
        scene = build_scene(from_dict({**HANGING, "values": {"hook": value}}))
        motion = scene.rollout()
        rows = np.hstack([motion.states.position.data[10::10, 0], motion.states.orientation.data[10::10, 0]])
        np.savetxt(tmp_path / f"{name}.txt", np.column_stack([time, rows + 4e-3 * noise.standard_normal(rows.shape)]))
        experiments.append({"name": name, "observations": {"file": str(tmp_path / f"{name}.txt")}})
    channels = [
        {"column": 1, "field": "position", "node": 0, "axis": 0, "unit": "m", "sigma": 4e-3},
        {"column": 2, "field": "position", "node": 0, "axis": 1, "unit": "m", "sigma": 4e-3},
        {"column": 3, "field": "orientation", "node": 0, "unit": "rad", "sigma": 4e-3},
    ]
    sought = {"parameter": "spring_anchor_b", "entries": [[1, 0]], "start": 0.36, "unit": "m"}
    unknowns: dict[str, Any] = {
        "hook": {"parameter": "spring_anchor_b", "entries": [0], "start": [0.02, 0.03], "scale": 0.1, "unit": "m"},
        "moved": {**sought, "experiments": "each"} if each else sought,
        "hole": {"parameter": "spring_anchor_a", "entries": [0], "scale": 0.1, "unit": "m"},
    }
    tables = {**HANGING, "observations": {"channels": channels}, "experiments": experiments, "unknowns": unknowns}
    fit = simphys.identify(build_scene(from_dict(tables)), folder=tmp_path / "run")
    assert [criterion.name for criterion in fit.criteria if criterion.verdict != "passed"] == ["agreement"] * each
    body = build_scene(from_dict({**HANGING, "values": {"v": {"parameter": "spring_anchor_b", "value": 0.0}}}))
    truth = [0.0, 0.0, *([0.4, 0.45] if each else [0.4]), *body.params.spring_anchor_a.data[0]]
    for row, true in zip(fit.unknowns, truth, strict=True):
        assert abs(row.value - true) < 3.5 * row.standard_error < 0.05, row


ROLLING: dict[str, Any] = {
    "simulator": {"name": "rigid"},
    "time": {"dt": 2e-3, "steps": 600},
    "bodies": [
        {
            "position": [0.0, 0.3],
            "mass": 0.5,
            "inertia": 1e-3,
            "velocity": [1.0, 0.5],
            "angular_velocity": -4.0,
            "restitution": 0.6,
            "friction": 0.3,
            "shapes": [{"kind": "sphere", "radius": 0.1}],
        }
    ],
    "planes": [{"normal": [0.0, 1.0]}],
    "environment": {"gravity": [0.0, -9.81]},
}


def test_the_centre_of_mass_of_a_body_that_bounces_is_found(tmp_path: Path) -> None:
    """A disc whose mass lies 3 cm off its middle is thrown on a floor; two dots on it are filmed to 1 mm."""
    truth = np.array([0.03, -0.02])
    dots = [
        {"column": 1 + 2 * k + axis, "field": "marker", "node": 0, "axis": axis, "place": place, "sigma": 1e-3}
        for k, place in enumerate(([0.08, 0.0], [-0.05, 0.06]))
        for axis in range(2)
    ]
    seen = {"observations": {"file": str(tmp_path / "seen.txt"), "channels": [{**dot, "unit": "m"} for dot in dots]}}
    np.savetxt(tmp_path / "seen.txt", np.column_stack([0.02 * np.arange(1, 61), np.zeros((60, 4))]))
    body = {**ROLLING["bodies"][0], "centre": truth.tolist()}
    true = build_scene(from_dict({**ROLLING, **seen, "bodies": [body]}))
    rows = true.predict(true.rollout()).data
    assert abs(np.diff(rows[:, 1], 2)).max() > 0.02, "it bounces"
    rows = rows + 1e-3 * np.random.default_rng(1).standard_normal(rows.shape)
    np.savetxt(tmp_path / "seen.txt", np.column_stack([0.02 * np.arange(1, 61), rows]))
    unknowns = {
        "centre": {"parameter": "centre_of_mass", "scale": 0.05, "unit": "m"},
        "place": {"parameter": "position", "scale": 0.05, "unit": "m"},
    }
    fit = simphys.identify(build_scene(from_dict({**ROLLING, **seen, "unknowns": unknowns})), folder=tmp_path / "run")
    for row, value in zip(fit.unknowns, [*truth, *true.state.position.data[0]], strict=True):
        assert abs(row.value - value) < 3.5 * row.standard_error < 5e-3, row


def test_a_target_near_the_floor_is_reached_by_a_centre_that_a_value_moves() -> None:
    """By itself the centre of the ball stays 10 cm above the floor; moved by 5 cm it comes within 5 cm."""
    term = {"kind": "final_state", "field": "position", "nodes": [0], "target": [0.5, 0.07]}
    tables = {**ROLLING, "loss": {"terms": [term]}, "unknowns": {"v": {"parameter": "velocity"}}}
    with pytest.raises(ConfigError, match=r"unreachable target: body 0 stays 0\.1 or more in front of plane 0"):
        build_scene(from_dict(tables))
    moved = {"c": {"parameter": "centre_of_mass", "value": [[0.0, -0.05]]}}
    assert build_scene(from_dict({**tables, "values": moved})).params.centre_of_mass.data.tolist() == [[0.0, -0.05]]


def scene_with(**changes: Any) -> Scene:
    tables = in_plane()
    for key, change in changes.items():
        if isinstance(change, dict) and key in ("bodies", "joints"):
            for number, keys in change.items():
                tables[key][number] |= keys
        else:
            tables[key] = change
    return build_scene(from_dict(tables))


BALL = {"shapes": [{"kind": "sphere", "radius": 0.01}]}
LOOP = [*in_plane()["joints"], {"kind": "revolute", "a": 4, "b": 0, "anchor": [0.0, 0.0]}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bodies": {1: {"centre": [0.1, 0.0, 0.0]}}}, r"bodies\.1\.centre: must have 2 elements"),
        (
            {"bodies": {1: {"centre": [0.1, 0.0], "inertia": None, **BALL}}},
            r"bodies\.1\.centre: a body with a centre needs mass and inertia",
        ),
        (
            {"bodies": {1: {"centre": [0.1, 0.0], **BALL}}, "planes": [{"normal": [0.0, 1.0], "offset": 0.075}]},
            r"bodies\.1\.position: bodies start outside of planes.*body 1, which is",
        ),
        (
            {"joints": LOOP, "unknowns": {"c": {"parameter": "joint_anchor_a"}}},
            r"unknowns\.c\.parameter: joints whose anchors or centres of mass are unknown form a tree.*joint . closes",
        ),
        (
            {"joints": LOOP, "values": {"c": {"parameter": "joint_start", "value": 0.1}}},
            r"values\.c\.parameter: joints whose start or rate is given by a value form a tree",
        ),
        (
            {"bodies": {2: {"velocity": [1.0, 0.0]}}, "unknowns": {"c": {"parameter": "centre_of_mass"}}},
            r"bodies\.2\.velocity: velocities of bodies follow from the start and rate of joints",
        ),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    if "unknowns" in changes:
        changes = {**changes, "loss": final(in_plane)}
    with pytest.raises(ConfigError, match=message):
        scene_with(**changes)


def test_bodies_that_touch_nothing_have_shapes_and_a_centre() -> None:
    scene = scene_with(bodies={1: {"centre": [0.1, 0.0], **BALL}})
    assert scene.params.centre_of_mass.data[1].tolist() == [0.1, 0.0]
