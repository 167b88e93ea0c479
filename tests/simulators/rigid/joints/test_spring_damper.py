"""Springs with dampers between points of bodies, or of a body and the world."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import WORLD, RigidBodies, Spring
from simphys.simulators.rigid.joints.spring_damper import SpringDamper, SpringWrench

from ....helpers.rounding import assert_equal_but_for_rounding
from ..free_bodies import about_origin, bodies, leaf, state


def spring_model(dim: int) -> RigidBodies:
    """Return two springs between the same bodies, and one to the world."""
    a, b, c, d = (0.3, 0.1, 0.2), (-0.2, 0.4, 0.1), (0.1, -0.3, -0.1), (2.0, 1.5, -1.0)
    ends = ((0, 1, a, b), (1, 0, c, a), (1, WORLD, b, d))
    return bodies(dim, 2, springs=tuple([Spring(i, j, p[:dim], q[:dim]) for i, j, p, q in ends]))


def held(model: RigidBodies, *, shifted: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return the anchors of the model and centres of mass, off the origins unless they shall not be."""
    table, far = model.spring_ends, 0.1 if shifted else 0.0
    anchors = [tensor(each, requires_grad=True) for each in (table.anchor_a, table.anchor_b)]
    return anchors[0], anchors[1], leaf(model.bodies, model.dim, seed=9, low=-far, high=far)


def sum_springs(model: RigidBodies, *inputs: Tensor) -> Tensor:
    """Return the wrench on each body."""
    wrench: Tensor = SpringWrench.apply(model, *SpringDamper.apply(model, *inputs))
    return wrench


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = spring_model(dim)
    inputs = *state(model), *[leaf(3, seed=seed, low=0.5, high=2.0) for seed in range(3)], *held(model)
    gradcheck(lambda *x: sum_springs(model, *x), inputs, tolerance=1e-8)


@pytest.mark.parametrize("dim", [2, 3])
def test_between_bodies_action_is_reaction(dim: int) -> None:
    """Forces, and torques about the origin, sum up to 0."""
    model = bodies(dim, 2, springs=spring_model(dim).springs[:2])
    at = state(model)
    wrench = sum_springs(model, *at, *[leaf(2, seed=seed) for seed in range(3)], *held(model)).data
    assert abs(wrench).max() > 0.1
    size, torque = abs(wrench).max(), about_origin(at[0].data, wrench)
    assert_equal_but_for_rounding(wrench[:, :dim].sum(axis=0), np.zeros(dim), size=size)
    assert_equal_but_for_rounding(torque, np.zeros_like(torque), ulps=64, size=size)


def spring_wrench(position: Tensor, velocity: Tensor, *params: Tensor) -> Tensor:
    """Return the wrench of a spring between an unrotated body and the world's origin."""
    model = bodies(2, 1, springs=(Spring(0, WORLD, (0.0, 0.0), (0.0, 0.0)),))
    nothing = tensor(np.zeros((1, 1)))
    return sum_springs(model, position, nothing, velocity, nothing, *params, *held(model, shifted=False))


@pytest.mark.gpu
def test_the_force_is_that_of_hooke_and_of_a_damper_along_the_spring() -> None:
    """A body 5 m from a fixed point moves away at 2 m/s: k (5 m - L) + c 2 m/s towards the point."""
    position, velocity = tensor([[3.0, 4.0]]), tensor([[1.2 - 4.0, 1.6 + 3.0]])
    wrench = spring_wrench(position, velocity, tensor([10.0]), tensor([3.0]), tensor([2.0]))
    np.testing.assert_allclose(wrench.data, [[-36 * 0.6, -36 * 0.8, 0.0]], rtol=1e-6)


def test_a_spring_of_no_length_has_no_force_and_the_gradient_of_one_without_a_rest_length() -> None:
    """This is the convention for a spring without direction."""
    position = tensor([[0.0, 0.0]], requires_grad=True)
    params = [tensor([each], requires_grad=True) for each in (10.0, 3.0, 2.0)]
    wrench = spring_wrench(position, tensor([[1.0, 1.0]]), *params)
    (wrench * tensor([[1.0, 2.0, 0.0]])).sum().backward()
    assert not wrench.data.any()
    assert position.grad is not None
    np.testing.assert_array_equal(position.grad.data, [[-10.0, -20.0]])
    assert not any(each.grad.data.any() for each in params if each.grad is not None)
