"""Contents of a model of rigid bodies, and the mistakes that it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.nn import Controller
from simphys.rollout import BlowUp, rollout
from simphys.simulators.rigid import WORLD, Box, Capsule, Joint, Plane, RigidBodies, Sphere, Spring
from simphys.simulators.rigid.checks import check_params

from .systems import chain, system, tumbling_in_plane

DISCS = ((Sphere(0.1),), (Sphere(0.2),), (Sphere(0.3),))
NO_INDEX: Any = 0.0
HINGE = Joint("revolute", 0, 1, (0.1, 0.0), (0.0, 0.0))


def plane_model(**changes: Any) -> RigidBodies:
    return RigidBodies(**{"dim": 2, "dt": 0.01, "shapes": DISCS, **changes})


def test_a_step_returns_every_field_in_its_shape() -> None:
    for model, params, state in (tumbling_in_plane(), chain(3)):
        moved: Any = model.step(params, state)
        assert {name: values.shape for name, values in moved.arrays().items()} == model.state_shapes()
        assert {name: values.shape for name, values in params.arrays().items()} == dict(model.param_shapes())


def test_joined_bodies_fixed_bodies_and_those_kept_apart_do_not_touch() -> None:
    assert plane_model().pairs == ((0, 1), (0, 2), (1, 2))
    assert plane_model(joints=(HINGE,)).pairs == ((0, 2), (1, 2))
    assert plane_model(fixed=(0, 2)).pairs == ((0, 1), (1, 2))
    assert plane_model(apart=((2, 1),)).pairs == ((0, 1), (0, 2))


def test_rows_are_those_of_joints_then_of_contacts() -> None:
    model = plane_model(joints=(HINGE,), planes=(Plane((0.0, 1.0)),))
    assert (model.joint_rows, model.rows) == (2, 2 + 2 * 5)
    assert model.row_bodies.reshape(-1, 2)[:2].tolist() == [[0, 1], [0, 1]]
    assert plane_model(law="compliant", planes=(Plane((0.0, 1.0)),)).rows == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 4}, "dim"),
        ({"law": "sticky"}, "law"),
        ({"dt": 0.0}, "dt"),
        ({"shapes": ()}, "at least one body"),
        ({"shapes": ((Box((0.1, 0.1, 0.1)),),)}, "2 numbers"),
        ({"planes": (Plane((0.0, 0.0, 1.0)),)}, "2 numbers"),
        ({"shapes": (Sphere(0.1), Sphere(0.2))}, r"shapes\[0\]: a tuple of the shapes of each body.*Write \(Sphere"),
        ({"shapes": Sphere(0.1)}, "at least one body; found Sphere"),
        ({"shapes": ((0.1,),)}, "a tuple of the shapes of each body"),
        ({"shapes": ((Sphere(0.1, (np.nan, 0.0)),),)}, "the offset of a shape of body 0: all numbers are finite"),
        ({"fixed": (3,)}, "from 0 to 2"),
        ({"fixed": (1.0,)}, r"fixed\[0\]: a whole number.*Give 1, an int"),
        ({"fixed": 0}, r"RigidBodies\.fixed: a tuple of whole numbers; found 0"),
        ({"apart": ((0, 1.0),)}, "a body from 0 to 2; found 1.0"),
        ({"joints": (Joint("fixed", 0, 1, (0.0, np.nan), (0.0, 0.0)),)}, "anchor_a of joint 0: all numbers are finite"),
        ({"joints": (Joint("fixed", 0, 1, (0.0, 0.0), (np.inf, 0.0)),)}, "anchor_b of joint 0: all numbers are finite"),
        ({"joints": (Joint("fixed", NO_INDEX, 1, (0.0, 0.0), (0.0, 0.0)),)}, "joint 0: a body from 0 to 2; found 0.0"),
        ({"springs": (Spring(0, 1, (0.0, 0.0), (np.nan, 0.0)),)}, "anchor_b of spring 0: all numbers are finite"),
        ({"apart": ((0, 1), (2, 2))}, "body 2 twice"),
        ({"joints": (Joint("fixed", 0, 7, (0.0, 0.0), (0.0, 0.0)),)}, "joint 0"),
        ({"joints": (Joint("prismatic", 0, 1, (0.0, 0.0), (0.0, 0.0)),)}, "an axis"),
        ({"joints": (Joint("revolute", 0, 1, (0.0, 0.0), (0.0, 0.0), axis=(1.0, 0.0)),)}, "no axis"),
        ({"joints": (Joint("prismatic", 0, 1, (0.0, 0.0), (0.0, 0.0), axis=(1.0, 1.0)),)}, "unit vector"),
        ({"springs": (Spring(0, WORLD, (0.0, 0.0, 0.0), (0.0, 0.0)),)}, "anchor_a of spring 0"),
        ({"controller": Controller(waves=1, hidden=1, goal=(0.0, 0.0))}, "no motor"),
    ],
)
def test_impossible_models_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plane_model(**changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Joint("hinge", 0, 1, (0.0, 0.0), (0.0, 0.0)), "one of"),
        (lambda: Joint("fixed", 1, 1, (0.0, 0.0), (0.0, 0.0)), "twice"),
        (lambda: Joint("fixed", WORLD, 1, (0.0, 0.0), (0.0, 0.0)), "comes first"),
        (lambda: Joint("fixed", 0, 1, (0.0, 0.0), (0.0, 0.0), motor=True), "drives"),
        (lambda: Spring(2, 2, (0.0, 0.0), (0.0, 0.0)), "twice"),
        (lambda: Sphere(0.0), "positive"),
        (lambda: Box((0.1, -0.1)), "positive"),
        (lambda: Capsule(0.1, 0.0), "positive"),
        (lambda: Plane((1.0, 1.0)), "unit vector"),
        (lambda: Sphere(np.nan), "Sphere.radius: a positive length"),
        (lambda: Sphere(np.inf), "Sphere.radius: a positive length"),
        (lambda: Plane((0.0, 1.0), np.nan), "Plane.offset: finite"),
        (lambda: Plane((0.0, 1.0), np.inf), "Plane.offset: finite"),
    ],
)
def test_impossible_parts_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("name", ["mass", "inertia"])
def test_a_body_without_mass_or_inertia_is_refused(name: str) -> None:
    zero: dict[str, Any] = {name: 0.0}
    model, params, state = system(plane_model(), **zero)
    for mode in ("fused", "nested"):
        with pytest.raises(InputError, match=f"{name}: positive"):
            rollout(model, params, state, steps=1, mode=mode)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mass", -1.0, "positive"),
        ("friction", -0.1, "not negative; found -0.1"),
        ("friction", np.nan, "not negative"),
        ("restitution", -0.1, "between 0 and 1; found -0.1"),
        ("restitution", 1.1, "between 0 and 1; found 1.1"),
    ],
)
def test_values_that_no_body_has_are_refused_and_a_search_survives_them(name: str, value: float, message: str) -> None:
    good = {"mass": np.ones(2), "inertia": np.ones((2, 1)), "friction": np.array([0, 2.0]), "restitution": np.arange(2)}
    check_params(good)
    with pytest.raises(InputError, match=f"rigid: {name}: {message}") as caught:
        check_params({**good, name: np.array([0.5, value])})
    assert isinstance(caught.value, ArithmeticError)


def test_a_rollout_refuses_a_restitution_that_no_body_has() -> None:
    model, params, state = system(plane_model(), restitution=[0.5, 1.2, 0.5])
    with pytest.raises(InputError, match="restitution: between 0 and 1"):
        rollout(model, params, state, steps=1)


def test_advice_names_the_fastest_body_and_what_may_be_wrong() -> None:
    model, params, state = tumbling_in_plane("compliant")
    moving = {**state.arrays(), "velocity": np.array([[1.0, 0.0], [0.0, 50.0], [2.0, 0.0]])}
    assert "Body 1" in model.advice(params.arrays(), moving)
    assert "reduce dt" in model.advice(params.arrays(), moving)


@pytest.mark.parametrize("field", ["velocity", "angular_velocity"])
def test_advice_names_the_body_without_a_velocity(field: str) -> None:
    model, params, state = tumbling_in_plane("compliant")
    values = state.arrays()[field].copy()
    for bodies in (slice(1, 2), slice(None)):
        values[bodies] = np.nan
        body = bodies.start or 0
        told = model.advice(params.arrays(), {**state.arrays(), field: values})
        assert told == f"The velocity of body {body} is no number: correct it."
    with pytest.raises(BlowUp, match=rf"step 0 .*{field}\[0, 0\] = nan. Correct the start"):
        rollout(model, params, state.replace(**{field: tensor(values)}), steps=1)


def test_lists_of_shapes_and_of_fixed_bodies_become_tuples() -> None:
    model = plane_model(shapes=[list(own) for own in DISCS], fixed=[np.int64(2)])
    assert model == plane_model(fixed=(2,)) and hash(model) == hash(plane_model(fixed=(2,)))


SPACE = RigidBodies(3, 0.01, ((Sphere(0.1),), (Sphere(0.1),)))


@pytest.mark.parametrize("mode", ["fused", "nested"])
def test_a_quaternion_has_a_length(mode: Any) -> None:
    turned = {"position": np.eye(2, 3), "orientation": [[1.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 4.0]]}
    _, params, state = system(SPACE, state=turned)
    final = rollout(SPACE, params, state, steps=1, mode=mode).final.orientation.data
    np.testing.assert_allclose(np.linalg.norm(final, axis=1), 1.0)
    flat = state.replace(orientation=np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    message = r"a quaternion has a length; found orientation\[.*1\] = \(0, 0, 0, 0\)"
    for each in (flat, flat.replace(orientation=tensor(flat.orientation.data[None]))):
        with pytest.raises(UnphysicalValue, match=message):
            rollout(SPACE, params, each, steps=1, mode=mode)


def test_the_frames_that_a_joint_joins_differ_by_a_quaternion_with_a_length() -> None:
    joint = Joint("fixed", 0, 1, (0.0,) * 3, (0.0,) * 3, relative=(0.0,) * 4)
    with pytest.raises(InputError, match="relative of joint 0: a quaternion has a length"):
        RigidBodies(3, 0.01, SPACE.shapes, joints=(joint,))


@pytest.mark.parametrize("name", ["gravity", "motor_strength"])
def test_a_parameter_that_is_not_finite_is_named(name: str) -> None:
    model, params, state = chain()
    values = params.arrays()[name].copy()
    values[1] = np.inf
    with pytest.raises(BlowUp, match=rf"params\.{name}\[1\] = inf is not finite: correct it"):
        control = tensor(np.ones((2, *(model.control_shape() or ()))))
        rollout(model, params.replace(**{name: values}), state, control=control, steps=2)
