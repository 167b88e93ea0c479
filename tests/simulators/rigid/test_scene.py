"""The sections of a scene of rigid bodies become a model and arrays, and mistakes are reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.experiment.scene import build_scene
from simphys.nn import Controller
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.rigid import WORLD, Box, Capsule, Joint, Plane, RigidBodies, Sphere, Spring
from simphys.simulators.rigid.shapes import fill_shapes

from ...helpers.rounding import assert_equal_but_for_rounding


def sections(**changed: Any) -> dict[str, Any]:
    """Return a scene of a box on the ground and a ball above it, in the plane; runtime as in this process."""
    box = {"position": [0.0, 0.1], "shapes": [{"kind": "box", "half": [0.2, 0.1]}], "mass": 1.5}
    ball = {"position": [0.1, 0.5], "shapes": [{"kind": "sphere", "radius": 0.1}], "density": 10.0}
    return {
        "simulator": {"name": "rigid"},
        "time": {"dt": 0.01, "steps": 5},
        "bodies": [box, ball],
        "planes": [{"normal": [0.0, 2.0]}],
        **changed,
    }


def body(number: int, **changed: Any) -> dict[str, Any]:
    """Return the sections with one body changed."""
    made = sections()
    made["bodies"][number] |= changed
    return made


def in_space(*shapes: Any, **changed: Any) -> dict[str, Any]:
    """Return a scene of one body in space."""
    one = {"position": [0.0, 0.0, 1.0], "shapes": list(shapes), "mass": 2.0, **changed}
    return sections(bodies=[one], planes=[])


CUBE = {"kind": "box", "half": [0.1, 0.2, 0.3]}
JOINT = {"kind": "revolute", "a": 1, "b": 0, "anchor": [0.0, 0.3]}
PATTERN = {"kind": "pattern", "waves": 3, "frequency": 2.0}


def test_bodies_become_a_model_with_masses_of_their_shapes() -> None:
    scene = build_scene(from_dict(sections()))
    expected = RigidBodies(2, 0.01, ((Box((0.2, 0.1)),), (Sphere(0.1),)), planes=(Plane((0.0, 1.0)),))
    assert scene.model == expected
    mass = 10 * np.pi * 0.01
    assert_equal_but_for_rounding(scene.params.mass.data, [1.5, mass])
    assert_equal_but_for_rounding(scene.params.inertia.data, [[1.5 * 0.05 / 3], [mass * 0.01 / 2]])
    np.testing.assert_array_equal(scene.params.friction.data, [0.5, 0.5])
    np.testing.assert_array_equal(scene.state.position.data, [[0.0, 0.1], [0.1, 0.5]])
    assert not scene.state.velocity.data.any() and scene.bodies is not None and scene.bodies.own == 2


@pytest.mark.parametrize("dim", [2, 3])
def test_mass_and_inertia_of_shapes_agree_with_a_sum_over_a_fine_grid(dim: int) -> None:
    shapes = (Capsule(0.3, 0.4, (0.2, 0.1, -0.1)[:dim]), Box((0.3, 0.5, 0.2)[:dim]), Sphere(0.4, (0.0, 0.3, 0.2)[:dim]))
    step = 0.005 if dim == 2 else 0.02
    axis = np.arange(-1.2, 1.2, step) + step / 2
    points = np.stack(np.meshgrid(*[axis] * dim), -1).reshape(-1, dim)
    volume, first, second = 0.0, np.zeros(dim), np.zeros((dim, dim))
    for shape in shapes:
        away = points - (np.zeros(dim) if shape.offset is None else shape.offset)
        if isinstance(shape, Box):
            inside = (abs(away) <= shape.half).all(axis=1)
        else:
            half = getattr(shape, "half_length", 0.0)
            away[:, 0] -= np.clip(away[:, 0], -half, half)
            inside = (away**2).sum(axis=1) <= shape.radius**2
        held = points[inside]
        volume, first = volume + len(held) * step**dim, first + held.sum(axis=0) * step**dim
        second += held.T @ held * step**dim
    inertia = np.trace(second) * np.eye(3) - second if dim == 3 else np.trace(second).reshape(1, 1)
    found = fill_shapes(shapes, dim)
    np.testing.assert_allclose(found.volume, volume, rtol=0.01)
    np.testing.assert_allclose(found.centre, first / volume, atol=0.002)
    np.testing.assert_allclose(found.inertia, inertia, atol=0.01 * abs(inertia).max())


def test_anchors_and_axes_of_the_world_are_seen_from_both_bodies() -> None:
    turned = body(1, orientation=np.pi / 2)
    joints = [{**JOINT, "damping": 0.2, "motor": 4.0}, {"kind": "prismatic", "a": 1, "axis": [3.0, 0.0]}]
    springs = [{"a": 0, "anchor_a": [0.0, 0.2], "anchor_b": [0.0, 1.2], "stiffness": 5.0}]
    scene = build_scene(from_dict({**turned, "joints": joints, "springs": springs}))
    first, second = scene.model.joints
    assert_equal_but_for_rounding(first.anchor_a, [-0.2, 0.1], size=1.0)
    assert_equal_but_for_rounding(first.anchor_b, [0.0, 0.2], size=1.0)
    np.testing.assert_allclose(first.relative, [-np.pi / 2])
    assert first.motor and not second.motor and second.b == WORLD
    assert_equal_but_for_rounding(second.axis, [0.0, -1.0])
    np.testing.assert_allclose(second.anchor_b, [0.1, 0.5])
    assert scene.model.springs == (Spring(0, WORLD, (0.0, 0.1), (0.0, 1.2)),)
    assert scene.params.spring_length.data == [1.0] and scene.params.joint_damping.data.tolist() == [0.2, 0.0]
    assert scene.params.motor_strength.data == [4.0] and scene.model.control_shape() == (1,)


def test_joints_have_dry_friction_where_it_is_given_or_unknown() -> None:
    joints = [
        {**JOINT, "dry_friction": 0.3},
        {"kind": "prismatic", "a": 1, "axis": [3.0, 0.0], "transition_rate": 0.02},
    ]
    scene = build_scene(from_dict(sections(joints=joints)))
    assert scene.model.joint_friction
    assert scene.params.joint_dry_friction.data.tolist() == [0.3, 0.0]
    assert scene.params.joint_transition_rate.data.tolist() == [0.1, 0.02]
    assert not build_scene(from_dict(sections(joints=[JOINT]))).model.joint_friction
    unknowns = {"rubbing": {"parameter": "joint_dry_friction", "start": 0.2, "transform": "log"}}
    loss = {"terms": [{"kind": "final_state", "nodes": [1], "target": [3.0, 0.1]}]}
    found = build_scene(from_dict(sections(joints=[JOINT], unknowns=unknowns, loss=loss)))
    assert found.model.joint_friction and found.params.joint_dry_friction.shape == (1,)


def test_joints_in_space_have_no_error_at_the_start() -> None:
    """Joint rows have no error at the start: nothing moves without forces."""
    axis = [0.0, 0.6, 0.8]
    bodies = [
        {"position": [0.0, 0.0, 1.0], "mass": 1.0, "shapes": [CUBE], "orientation": [0.3, -0.5, 0.7]},
        {"position": [1.0, 0.2, 1.5], "mass": 2.0, "shapes": [CUBE], "orientation": [0.9, 0.1, -0.2, 0.4]},
        {"position": [-1.0, 0.0, 1.0], "mass": 2.0, "shapes": [CUBE], "orientation": [1.0, 0.0, 0.0]},
    ]
    joints = [
        {"kind": "revolute", "a": 1, "b": 0, "anchor": [0.5, 0.1, 1.2], "axis": axis},
        {"kind": "fixed", "a": 2, "b": 0, "anchor": [-0.5, 0.0, 1.0]},
        {"kind": "prismatic", "a": 0, "axis": axis},
    ]
    scene = build_scene(from_dict(sections(bodies=bodies, planes=[], joints=joints)))
    final = scene.rollout(mode="nested").final
    for name in scene.state.names():
        np.testing.assert_allclose(getattr(final, name).data, getattr(scene.state, name).data, atol=1e-13)


def test_a_controller_drives_the_motors() -> None:
    made = {"joints": [{**JOINT, "motor": 1.0}], "controller": {"hidden": 4, "goal": [1.0, 0.0]}, "control": PATTERN}
    scene = build_scene(from_dict(sections(**made)))
    assert scene.model.controller == Controller(waves=3, hidden=4, goal=(1.0, 0.0))
    assert scene.params.hidden_weight.shape == (4, 3 + 2 * 7 + 2) and scene.params.output_weight.shape == (1, 4)


def test_a_rotation_vector_is_a_quaternion() -> None:
    scene = build_scene(from_dict(in_space(CUBE, orientation=[0.0, 0.0, np.pi / 2])))
    np.testing.assert_allclose(scene.state.orientation.data, [[np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]])


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (sections(bodies=[]), "bodies: must be a list of 1 or more elements"),
        (body(0, mass=0.0), "bodies.0.mass: must be greater than 0"),
        (body(1, density=-1.0), "bodies.1.density: must be greater than 0"),
        (body(1, mass=1.0), "bodies.1: a body that moves needs one of mass and density; found both"),
        (body(0, mass=None), "bodies.0: a body that moves needs one of mass and density; found nothing"),
        (body(0, restitution=1.1), "bodies.0.restitution: must be at most 1"),
        (body(0, friction=-0.1), "bodies.0.friction: must be at least 0"),
        (body(0, position=[0.0, 0.08]), "bodies.0.position: bodies start outside of planes; found body 0, which"),
        (body(1, position=[0.1, 0.27]), "bodies.1.position: bodies must not overlap; found bodies 0 and 1, which"),
        (body(1, velocity=[0.0, 0.0, 1.0]), "bodies.1.velocity: must have 2 elements"),
        (body(0, orientation=[0.0, 0.0, 1.0]), "bodies.0.orientation: in 2-D it is an angle"),
        (body(0, shapes=[{"kind": "box", "half": [0.1] * 3}]), "bodies.0.shapes.0.half: must have 2 elements"),
        (body(0, shapes=[]), "bodies.0: a body without shapes needs mass and inertia"),
        (
            body(0, shapes=[{"kind": "sphere", "radius": 0.05, "offset": [0.0, 0.01]}]),
            "bodies.0.shapes: the shapes' centre of mass must be at the origin",
        ),
        (
            in_space({**CUBE, "offset": [0.3, 0.3, 0.0]}, {**CUBE, "offset": [-0.3, -0.3, 0.0]}),
            "bodies.0.shapes: the shapes' principal axes",
        ),
        (in_space(CUBE, orientation=[0.0] * 4), "bodies.0.orientation: a quaternion must not be 0"),
        (in_space(CUBE, angular_velocity=1.0), "bodies.0.angular_velocity: in 3-D it is a vector"),
        (sections(planes=[{"normal": [0.0, 0.0]}]), "planes.0.normal: must be a direction"),
        (sections(joints=[{**JOINT, "b": 1}]), "joints.0.b: must differ from a"),
        (sections(joints=[{**JOINT, "a": 2}]), "joints.0.a: must be the index of one of 2 bodies"),
        (sections(joints=[{**JOINT, "anchor": None}]), "joints.0.anchor: is needed by a revolute joint"),
        (sections(joints=[{"kind": "prismatic", "a": 0}]), "joints.0.axis: is needed by a prismatic joint"),
        (sections(joints=[{**JOINT, "axis": [1.0, 0.0]}]), "joints.0.axis: a revolute joint in 2-D has no axis"),
        (sections(joints=[{**JOINT, "kind": "fixed", "motor": 1.0}]), "joints.0.motor: a fixed joint has no free"),
        (
            sections(joints=[{**JOINT, "kind": "fixed", "dry_friction": 1.0}]),
            "joints.0.dry_friction: a fixed joint has no free motion; found 1.0. Drop it.",
        ),
        (sections(joints=[{**JOINT, "dry_friction": -1.0}]), "joints.0.dry_friction: must be at least 0"),
        (sections(joints=[{**JOINT, "transition_rate": 0.0}]), "joints.0.transition_rate: must be greater than 0"),
        (
            sections(springs=[{"a": 0, "b": 0, "anchor_a": [0.0, 0.0], "anchor_b": [1.0, 0.0], "stiffness": 1.0}]),
            "springs.0.b: must differ from a",
        ),
        (sections(environment={"gravity": [0.0, 0.0, -9.81]}), "environment.gravity: must have 2 elements"),
        (sections(contact={"stiffness": 1e4}), "contact.stiffness: belongs to the compliant law"),
        (sections(simulator={"name": "rigid", "law": "compliant"}), "contact.stiffness: is needed by"),
        (sections(contact={"apart": [[0, 2]]}), "contact.apart.0.1: must be the index of one of 2 bodies"),
        (sections(contact={"apart": [[0, 1], [1, 1]]}), "contact.apart.1: its numbers must differ"),
        (sections(controller={"goal": [0.0, 0.0]}), "controller: needs something to drive; found nothing. Add a motor"),
        (sections(joints=[{**JOINT, "motor": 1.0}], controller={"goal": [0.0, 0.0]}), "controller: needs a pattern"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_key(made: dict[str, Any], where: str) -> None:
    made = {**made, "bodies": [{k: v for k, v in each.items() if v is not None} for each in made["bodies"]]}
    for joint in made.get("joints", []):
        if joint.get("anchor", 0) is None:
            del joint["anchor"]
    with pytest.raises(ConfigError) as raised:
        from_dict(made)
    assert where in str(raised.value)


def test_joined_bodies_and_those_that_are_kept_apart_may_overlap() -> None:
    near = body(1, position=[0.1, 0.2])
    from_dict({**near, "joints": [JOINT]})
    from_dict({**near, "contact": {"apart": [[1, 0]]}})


@pytest.mark.parametrize(
    ("term", "changed", "why"),
    [
        ({"nodes": [1], "target": [3.0, 0.05]}, {}, "body 1 stays 0.1 or more in front of plane 0, and this is 0.05"),
        ({"nodes": [0], "axis": 1, "target": -0.1}, {}, "body 0 stays 0.1 or more in front of plane 0"),
        ({"target": [[0.0, 0.3], [0.0, 0.0]]}, {}, "body 1 stays 0.1 or more in front of plane 0"),
        ({"nodes": [1], "target": [3.0, 0.3]}, {"fixed": True}, "body 1 is fixed at [0.1, 0.5]"),
    ],
)
def test_an_unreachable_target_is_reported(term: dict[str, Any], changed: dict[str, Any], why: str) -> None:
    loss = {"terms": [{"kind": "final_state", **term}]}
    with pytest.raises(ConfigError, match=r"loss\.terms\.0\.target: unreachable target") as raised:
        from_dict({**body(1, **changed), "loss": loss})
    assert why in str(raised.value)


def test_reachable_targets_are_no_problem() -> None:
    for term in ({"nodes": [1], "target": [3.0, 0.1]}, {"nodes": [0], "axis": 0, "target": -7.0}):
        from_dict(sections(loss={"terms": [{"kind": "final_state", **term}]}))
    soft = {"simulator": {"name": "rigid", "law": "compliant"}, "contact": {"stiffness": 1e4}}
    from_dict(sections(**soft, loss={"terms": [{"kind": "final_state", "nodes": [1], "target": [3.0, 0.09]}]}))


def test_a_joint_follows_its_section() -> None:
    scene = build_scene(from_dict(sections(joints=[JOINT])))
    assert scene.model.joints == (Joint("revolute", 1, 0, (-0.1, -0.2), (0.0, 0.19999999999999998), relative=(0.0,)),)
