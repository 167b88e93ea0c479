"""Constraint rows of joints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import WORLD, Joint, RigidBodies
from simphys.simulators.rigid.joints.joint_constraints import JointRows
from simphys.simulators.rigid.motion.drift import Drift

from ....helpers.rounding import assert_equal_but_for_rounding
from ..free_bodies import arms, bodies, leaf

Array = np.ndarray[Any, Any]


def chain(dim: int) -> RigidBodies:
    """Return bodies with a joint of each kind, the last one to the world; frames and axes are rotated."""
    if dim == 2:
        return bodies(
            2,
            joints=(
                Joint("revolute", 0, 1, (0.3, 0.1), (-0.2, 0.4)),
                Joint("prismatic", 2, 1, (0.1, 0.2), (0.3, -0.1), axis=(0.6, 0.8), relative=(0.4,)),
                Joint("fixed", 2, WORLD, (0.2, -0.3), (0.5, 0.1), relative=(-0.7,)),
            ),
        )
    axis, relative = (2 / 3, -1 / 3, 2 / 3), (0.8, 0.4, -0.2, 0.4)
    return bodies(
        3,
        joints=(
            Joint("revolute", 0, 1, (0.3, 0.1, 0.2), (-0.2, 0.4, 0.1), axis=axis, relative=relative),
            Joint("prismatic", 2, 1, (0.1, 0.2, -0.1), (0.3, -0.1, 0.2), axis=axis, relative=relative),
            Joint("fixed", 2, WORLD, (0.2, -0.3, 0.1), (0.5, 0.1, 0.4), relative=relative),
        ),
    )


def joint_pose(model: RigidBodies) -> tuple[Array, Array]:
    """Return positions and orientations that satisfy the joints: rotated about the hinge, displaced along the slide."""
    hinge, slide, fixed = model.joints
    third = relative(fixed).inv()
    second = third * relative(slide)
    first = second * relative(hinge).inv() * Rotation.from_rotvec(2.0 * padded(hinge.axis or (0, 0, 1)))
    x_third = padded(fixed.anchor_b) - third.apply(padded(fixed.anchor_a))
    x_second = x_third + third.apply(padded(slide.anchor_a) + 0.7 * padded(slide.axis or ()))
    x_second -= second.apply(padded(slide.anchor_b))
    x_first = x_second + second.apply(padded(hinge.anchor_b)) - first.apply(padded(hinge.anchor_a))
    position = np.stack([x_first, x_second, x_third])[:, : model.dim]
    turns = (first, second, third)
    if model.dim == 2:
        return position, np.array([turn.as_rotvec()[2:] for turn in turns])
    return position, np.array([np.roll(turn.as_quat(), 1) for turn in turns])


def relative(joint: Joint) -> Rotation:
    """Return the rotation from b's frame to a's."""
    given = joint.relative or (0.0,)
    return Rotation.from_rotvec([0, 0, given[0]]) if len(given) == 1 else Rotation.from_quat(np.roll(given, -1))


def padded(r: tuple[float, ...]) -> Array:
    """Return the vector in space."""
    return np.pad(np.array(r, float), (0, 3 - len(r)))


def joint_rows(model: RigidBodies, x: Tensor, q: Tensor, own: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return rows and targets for these poses, and arms if they are others than the model's."""
    row, target = JointRows.apply(model, model.joint_correction / model.dt, x, q, arms(model) if own is None else own)
    return row, target


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = chain(dim)
    inputs = leaf(3, dim, seed=1), leaf(3, model.rotations, seed=2), arms(model)
    gradcheck(lambda *x: joint_rows(model, *x), inputs, tolerance=1e-8)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_error_grows_at_the_rate_of_the_row_and_vanishes_at_the_joint(dim: int) -> None:
    """d(error)/dt = u for every row near the joint's pose, and for points also away from it."""
    model = RigidBodies(dim, 0.1, ((),) * 3, joints=chain(dim).joints, joint_correction=0.1)
    x, q = joint_pose(model)
    row, target = joint_rows(model, tensor(x), tensor(q))
    assert_equal_but_for_rounding(target.data, np.zeros_like(target.data), ulps=64, size=1.0)

    h, twist = 1e-5, np.random.default_rng(3).normal(size=(3, dim + model.spins))
    no_shift, moments = tensor(0 * twist), tensor(np.ones((3, model.spins)))
    before, after = (
        -joint_rows(model, *Drift.apply(model, t, tensor(x), tensor(q), tensor(twist), no_shift, moments)[:2])[1].data
        for t in (-h, h)
    )
    twists = np.vstack([twist, 0 * twist[:1]])  # the last row is the world's
    a, b = np.array([(joint.a, joint.b) for joint in model.joints for _ in range(joint.rows(dim))]).T
    of_a = np.delete(row.data, np.s_[dim + model.spins :], axis=1)
    of_b = np.delete(row.data, np.s_[dim : dim + model.spins], axis=1)
    speed = (of_a * twists[a]).sum(axis=1) - (of_b * twists[b]).sum(axis=1)
    np.testing.assert_allclose((after - before) / (2 * h), speed, rtol=0, atol=1e-8)


def test_half_a_turn_away_from_the_joint_the_error_has_the_positive_sign() -> None:
    """Convention at the kink: E = 2 sin(angle / 2) of the shorter way back; for equal ways that with positive W."""
    joint = Joint("fixed", 0, WORLD, (0.0,) * 3, (0.0,) * 3)
    model = RigidBodies(3, 0.1, ((),), joints=(joint,), joint_correction=0.1)
    for q, angle in (
        ([0.0, 0.0, 0.0, 1.0], np.pi),
        ([np.cos(1.5), 0.0, 0.0, np.sin(1.5)], 3.0),
        ([np.cos(1.6), 0.0, 0.0, np.sin(1.6)], 3.2 - 2 * np.pi),
    ):
        _, target = joint_rows(model, tensor(np.zeros((1, 3))), tensor([q]))
        expected = [2 * np.sin(angle / 2), 0.0, 0.0]
        assert_equal_but_for_rounding(sorted(-target.data[3:], key=abs, reverse=True), expected, ulps=64)
