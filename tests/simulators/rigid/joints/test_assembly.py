"""Jointed bodies start where their joints say: every joint stays closed, and velocities are those of the poses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import simphys
from simphys.autograd import gradcheck, tensor
from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.rigid.joints.assembly import JointStart, assemble, find_tree
from simphys.simulators.rigid.joints.joint import WORLD, Joint

START, RATE = np.array([0.7, -0.4, 0.3, 0.0, 0.2]), np.array([1.1, 0.6, -0.8, 0.0, 0.5])


def in_plane() -> dict[str, Any]:
    """A hinge in the world, another one, a slide, a weld, and a hinge whose body a is the nearer one."""
    bodies: list[dict[str, Any]] = [
        {"position": [0.3 * i, 0.1 * i], "orientation": 0.2 * i, "mass": 1.0, "inertia": 0.1} for i in range(5)
    ]
    joints: list[dict[str, Any]] = [
        {"kind": "revolute", "a": 0, "anchor": [0.1, -0.2]},
        {"kind": "revolute", "a": 1, "b": 0, "anchor": [0.2, 0.1]},
        {"kind": "prismatic", "a": 2, "b": 1, "axis": [1.0, 0.5]},
        {"kind": "fixed", "a": 3, "b": 2, "anchor": [0.7, 0.3]},
        {"kind": "revolute", "a": 3, "b": 4, "anchor": [1.0, 0.5]},
    ]
    return {"simulator": {"name": "rigid"}, "time": {"dt": 1e-3, "steps": 4}, "bodies": bodies, "joints": joints}


def in_space() -> dict[str, Any]:
    """The same in space."""
    tables, random = in_plane(), np.random.default_rng(0)
    for body in tables["bodies"]:
        body |= {"position": [*body["position"], 0.2], "inertia": [0.1, 0.2, 0.25]}
        body["orientation"] = random.normal(size=3).tolist()
    for joint in tables["joints"]:
        joint |= {"anchor": random.normal(size=3).tolist()}
        if joint["kind"] != "fixed":
            joint["axis"] = random.normal(size=3).tolist()
    return tables


def started(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables with a start and a rate of each joint that has a free motion."""
    for joint, start, rate in zip(tables["joints"], START, RATE, strict=True):
        if joint["kind"] != "fixed":
            joint |= {"start": float(start), "rate": float(rate)}
    return tables


def turned(q: Any, vector: Any) -> Any:
    """A vector of a body's frame in the world."""
    if len(q) == 1:
        return Rotation.from_euler("z", q[0]).as_matrix()[:2, :2] @ vector
    return Rotation.from_quat(np.roll(q, -1)).apply(vector)


def place(state: Any, body: int, anchor: Any) -> Any:
    return (
        np.array(anchor) if body == WORLD else state.position.data[body] + turned(state.orientation.data[body], anchor)
    )


def assembled(scene: Scene, start: Any, rate: Any) -> Any:
    return assemble(scene.model.joints, scene.model.fixed, scene.state, JointStart(tensor(start), tensor(rate)))


@pytest.mark.parametrize("make", [in_plane, in_space])
def test_every_joint_stays_closed(make: Any) -> None:
    scene = build_scene(from_dict(started(make())))
    for at, joint in enumerate(scene.model.joints):
        a, b = place(scene.state, joint.a, joint.anchor_a), place(scene.state, joint.b, joint.anchor_b)
        slide = (
            START[at] * turned(scene.state.orientation.data[joint.a], joint.axis) if joint.kind == "prismatic" else 0
        )
        np.testing.assert_allclose(a - b, slide * np.ones(a.size), atol=1e-12)


@pytest.mark.parametrize("make", [in_plane, in_space])
def test_joints_turn_and_slide_by_their_start(make: Any) -> None:
    plain, scene = build_scene(from_dict(make())), build_scene(from_dict(started(make())))
    for at, joint in enumerate(scene.model.joints):
        if joint.kind == "revolute":
            assert turn_between(scene, joint) - turn_between(plain, joint) == pytest.approx(START[at], abs=1e-12)


def turn_between(scene: Scene, joint: Joint) -> float:
    """The rotation of a against b about the axis of their hinge."""
    q = scene.state.orientation.data
    if scene.model.dim == 2:
        return float(q[joint.a, 0] - (0.0 if joint.b == WORLD else q[joint.b, 0]))
    a = Rotation.from_quat(np.roll(q[joint.a], -1))
    b = Rotation.identity() if joint.b == WORLD else Rotation.from_quat(np.roll(q[joint.b], -1))
    assert joint.relative is not None
    own = b * Rotation.from_quat(np.roll(joint.relative, -1)).inv()
    return float((own.inv() * a).as_rotvec() @ np.array(joint.axis))


@pytest.mark.parametrize("make", [in_plane, in_space])
def test_velocities_are_those_of_the_poses(make: Any) -> None:
    scene = build_scene(from_dict(make()))
    state, size = assembled(scene, START, RATE), 1e-6
    after, before = (assembled(scene, START + sign * size * RATE, RATE) for sign in (1, -1))
    np.testing.assert_allclose(
        (after.position.data - before.position.data) / (2 * size), state.velocity.data, atol=1e-8
    )
    change = (after.orientation.data - before.orientation.data) / (2 * size)
    spin = state.angular_velocity.data
    if scene.model.dim == 3:  # dq/dt = (0, w) q / 2
        q = state.orientation.data
        s, u = q[:, :1], q[:, 1:]
        spin = 0.5 * np.hstack([-np.sum(spin * u, axis=1, keepdims=True), s * spin + np.cross(spin, u)])
    np.testing.assert_allclose(change, spin, atol=1e-8)


@pytest.mark.parametrize("make", [in_plane, in_space])
def test_the_motion_of_the_root_is_that_of_all(make: Any) -> None:
    tables = make()
    tables["joints"] = tables["joints"][1:]
    for body in tables["bodies"][:1]:
        body |= {"velocity": [1.0, -2.0, 0.5][: len(body["position"])]}
        body["angular_velocity"] = [0.3, 0.1, 2.0] if len(body["position"]) == 3 else 2.0
    scene = build_scene(from_dict(tables))
    state = assembled(scene, np.zeros(4), np.zeros(4))
    np.testing.assert_allclose(state.position.data, scene.state.position.data, atol=1e-14)
    np.testing.assert_allclose(np.abs(state.orientation.data), np.abs(scene.state.orientation.data), atol=1e-14)
    spin, first = state.angular_velocity.data, scene.state.angular_velocity.data[0]
    np.testing.assert_allclose(spin, np.broadcast_to(first, spin.shape), atol=1e-14)
    arm = state.position.data - state.position.data[0]
    swept = np.cross(first, arm) if scene.model.dim == 3 else first[0] * np.stack([-arm[:, 1], arm[:, 0]], axis=1)
    np.testing.assert_allclose(state.velocity.data, scene.state.velocity.data[0] + swept, atol=1e-13)


@pytest.mark.parametrize("make", [in_plane, in_space])
def test_the_derivative_is_right(make: Any) -> None:
    scene = build_scene(from_dict(make()))

    def all_fields(start: Any, rate: Any, position: Any, orientation: Any) -> Any:
        state = scene.state.replace(position=position, orientation=orientation)
        return assemble(scene.model.joints, scene.model.fixed, state, JointStart(start, rate)).tensors()

    values = (START, RATE, scene.state.position.data, scene.state.orientation.data)
    assert gradcheck(all_fields, tuple([tensor(each, requires_grad=True) for each in values]))


def test_roots_are_the_world_then_fixed_bodies_then_the_first_ones() -> None:
    hinge = Joint("revolute", 2, 1, (0.0, 0.0), (0.0, 0.0))
    links, closing = find_tree([hinge, replace(hinge, a=0, b=2), replace(hinge, a=0, b=1)], 3, ())
    assert [(link.joint, link.parent, link.child) for link in links] == [(1, 0, 2), (0, 2, 1)] and closing == [2]
    links, _ = find_tree([hinge, replace(hinge, a=2, b=WORLD)], 3, ())
    assert [(link.joint, link.parent, link.child) for link in links] == [(1, WORLD, 2), (0, 2, 1)]
    links, _ = find_tree([hinge], 3, (2,))
    assert [(link.parent, link.child) for link in links] == [(2, 1)]


def arm(folder: Path, **changes: Any) -> Scene:
    """A hanging arm of two links, whose joints start at 0.5 and -0.3 rad, seen by its encoders; both are sought."""
    rod = {"mass": 1.0, "inertia": 0.02}
    tables: dict[str, Any] = {
        "simulator": {"name": "rigid"},
        "time": {"dt": 2e-3, "steps": 500},
        "environment": {"gravity": [0.0, -9.81]},
        "bodies": [{"position": [0.0, -0.25], **rod}, {"position": [0.0, -0.75], **rod}],
        "joints": [
            {"kind": "revolute", "a": 0, "anchor": [0.0, 0.0], "start": 0.5},
            {"kind": "revolute", "a": 1, "b": 0, "anchor": [0.0, -0.5], "start": -0.3},
        ],
        "output": {"folder": str(folder / "run")},
    }
    file = folder / "encoders.txt"
    if not file.exists():
        angle = build_scene(from_dict(tables)).rollout().orientation.data[::10, :, 0]
        noise = 1e-3 * np.random.default_rng(0).standard_normal(angle.shape)
        np.savetxt(file, np.column_stack([0.02 * np.arange(len(angle)), angle + noise]))
    channels = [{"column": 1 + i, "field": "orientation", "node": i, "unit": "rad", "sigma": 1e-3} for i in (0, 1)]
    tables["joints"][0]["start"], tables["joints"][1]["start"] = 0.4, -0.2
    unknowns = {"angle": {"parameter": "joint_start", "unit": "rad"}}
    return build_scene(
        from_dict(tables | {"observations": {"file": str(file), "channels": channels}, "unknowns": unknowns} | changes)
    )


def test_the_start_of_joints_is_found(tmp_path: Path) -> None:
    fit = simphys.identify(arm(tmp_path))
    assert fit.verdict == "passed"
    np.testing.assert_allclose([row.value for row in fit.unknowns], [0.5, -0.3], atol=1e-3)
    assert gradcheck(arm(tmp_path).objective().loss_tensor, (tensor([0.45, -0.25], requires_grad=True),))


def test_values_of_the_start_move_the_bodies(tmp_path: Path) -> None:
    values = {"found": {"parameter": "joint_start", "value": [0.5, -0.3]}}
    moved, stated = arm(tmp_path, values=values), started(in_plane())
    np.testing.assert_allclose(moved.state.orientation.data[:, 0], [0.5, 0.2], atol=1e-14)
    assert build_scene(from_dict(stated)).values()["joint_rate"][1] == RATE[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joints": {3: {"start": 0.1}}}, r"joints.3.start: a fixed joint has no free motion; found 0.1"),
        (
            {"bodies": {2: {"velocity": [1.0, 0.0]}}},
            r"bodies.2.velocity: velocities of bodies follow from the start and",
        ),
        ({"joints": {3: {"b": 0}}}, r"joint . closes a loop"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    tables = started(in_plane())
    for section, changes in change.items():
        for number, keys in changes.items():
            tables[section][number] |= keys
    if "closes" in message:
        tables["joints"].append({"kind": "revolute", "a": 4, "b": 0, "anchor": [0.0, 0.0]})
    with pytest.raises(ConfigError, match=message):
        from_dict(tables)


def test_bodies_are_apart_where_they_start() -> None:
    tables = in_plane()
    ball = [{"kind": "sphere", "radius": 0.05}]
    for body in (tables["bodies"][0], tables["bodies"][2]):
        body |= {"shapes": ball, "position": [0.0, 0.0], "inertia": 0.1}
    with pytest.raises(ConfigError, match=r"overlap by 0\.1"):
        from_dict(tables)
    tables["joints"][2]["start"] = 0.5
    build_scene(from_dict(tables))
