"""Motors, damping and dry friction along the free motions of joints."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.rigid import WORLD, Joint, RigidBodies
from simphys.simulators.rigid.joints.motor import JointForce, JointWrench

from ....helpers.rounding import assert_equal_but_for_rounding
from ..free_bodies import about_origin, arms, bodies, leaf, state


def driven_joints(dim: int) -> RigidBodies:
    """Return motors on slides between bodies and to the world, and on a hinge; a hinge without motor, a fixed joint."""
    a, b = (0.3, 0.1, 0.2)[:dim], (-0.2, 0.4, 0.1)[:dim]
    axis = (0.6, 0.8) if dim == 2 else (2 / 3, -1 / 3, 2 / 3)
    hinge = None if dim == 2 else axis
    return bodies(
        dim,
        joints=(
            Joint("revolute", 0, 1, a, b, axis=hinge),
            Joint("fixed", 1, 2, b, a),
            Joint("prismatic", 2, 0, a, b, axis=axis, motor=True),
            Joint("prismatic", 0, WORLD, b, a, axis=axis, motor=True),
            Joint("revolute", 1, WORLD, b, a, axis=hinge, motor=True),
        ),
    )


def sum_joints(model: RigidBodies, *inputs: Tensor) -> Tensor:
    """Return the wrench on each body."""
    wrench: Tensor = JointWrench.apply(model, *JointForce.apply(model, *inputs))
    return wrench


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = driven_joints(dim)
    friction = leaf(5, seed=4, low=0.5), leaf(5, seed=5, low=0.5)
    inputs = *state(model), leaf(3, seed=1), leaf(3, seed=2, low=0.5), leaf(5, seed=3, low=0.5), *friction, arms(model)
    gradcheck(lambda *x: sum_joints(model, *x), inputs, tolerance=1e-8)
    dot_product_test(lambda *x: sum_joints(model, *x), inputs, tolerance=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_between_bodies_action_is_reaction(dim: int) -> None:
    """Forces, and torques about the origin, of a hinge and of a displaced slide sum up to 0."""
    axis = (0.6, 0.8) if dim == 2 else (2 / 3, -1 / 3, 2 / 3)
    a, b = (0.3, 0.1, 0.2)[:dim], (-0.2, 0.4, 0.1)[:dim]
    hinge = Joint("revolute", 0, 1, a, b, axis=None if dim == 2 else axis, motor=True)
    model = bodies(dim, joints=(hinge, Joint("prismatic", 1, 2, b, a, axis=axis, motor=True)))
    at = state(model)
    friction = leaf(2, seed=4, low=0.5), leaf(2, seed=5, low=0.5)
    wrench = sum_joints(model, *at, leaf(2, seed=1), leaf(2, seed=2), leaf(2, seed=3), *friction, arms(model)).data
    assert abs(wrench).max() > 0.1
    size, torque = abs(wrench).max(), about_origin(at[0].data, wrench)
    assert_equal_but_for_rounding(wrench[:, :dim].sum(axis=0), np.zeros(dim), size=size)
    assert_equal_but_for_rounding(torque, np.zeros_like(torque), ulps=64, size=size)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_a_motor_drives_along_its_axis_and_damping_and_friction_brake_the_free_motion(dim: int) -> None:
    """An axle fixed to the world has the torque k action - d w - (2/pi) F atan(w / w0), a slide a force."""
    axis = (0.0, 1.0) if dim == 2 else (0.0, 0.0, 1.0)
    none, unit = (0.0,) * dim, np.array(axis)
    joints = (
        Joint("revolute", 0, WORLD, none, none, axis=None if dim == 2 else axis, motor=True),
        Joint("prismatic", 1, WORLD, none, none, axis=axis, motor=True),
    )
    model = bodies(dim, 2, joints=joints)
    x, w = np.zeros((2, dim)), np.full((2, model.spins), 3.0)
    q = np.zeros((2, 1)) if dim == 2 else np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    v = np.full((2, dim), 2.0)
    given = [tensor(each) for each in (x, q, v, w, [0.5, -1.0], [4.0, 8.0], [0.1, 0.2], [0.7, 0.9], [1.5, 4.0])]
    wrench = sum_joints(model, *given, arms(model)).data
    of_turns = np.ones(1) if dim == 2 else unit
    rubbing = 2 / np.pi * np.array([0.7 * np.arctan(3.0 / 1.5), 0.9 * np.arctan(2.0 / 4.0)])
    torque, force = 4.0 * 0.5 - 0.1 * 3.0 - rubbing[0], -8.0 - 0.2 * 2.0 - rubbing[1]
    expected = [[*(0 * unit), *(torque * of_turns)], [*(force * unit), *(0 * of_turns)]]
    assert_equal_but_for_rounding(wrench, expected)
