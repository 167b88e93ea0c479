"""Rows of contacts: their adjoint, and what they ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.gradcheck import gradcheck
from simphys.rigid import Plane, RigidBodies, Sphere
from simphys.rigid.checks import EULER, VARIATIONAL
from simphys.rigid.contact_rows import ContactRows
from simphys.rigid.meeting import IMPACT, NONE, REST

H = 0.1
WHAT = (IMPACT, IMPACT, IMPACT, REST, REST, NONE)
"""Of six contacts."""


def balls(dim: int) -> RigidBodies:
    up = (0.0, 1.0) if dim == 2 else (0.0, 0.0, 1.0)
    return RigidBodies(dim, H, ((Sphere(0.1),),) * 3, (Plane(up),), rest_speed=0.5)


def inputs_of(model: RigidBodies) -> list[Tensor]:
    """Random ones, off all kinks; one of the impacts has a target of 0."""
    random = np.random.default_rng(4)
    S, M = model.spins, model.contacts
    gap = np.array([0.0, 0.0, -0.3, 0.02, -0.9, 0.9])
    given = [gap, random.normal(size=(M, 3 * model.dim)), H * np.array([0.3, -0.4, -1, 0, 0, 0])]
    given += [random.normal(size=shape) for shape in ((3, model.dim + S), (3, model.dim), (3, S))]
    given += [random.normal(size=(3, model.rotations)), random.normal(size=(M, 2 * model.rotations))]
    given += [random.uniform(0.5, 1, (3, S)), random.uniform(0.2, 1, 3), random.uniform(0.2, 1, 3)]
    return [tensor(each, requires_grad=True) for each in given]


def of_one_ball(what: int, gap: float, u: float, *, before: float = -1.0, time: float = 0.0) -> list[Tensor]:
    """Inputs of a ball above a floor, its speed after and before the forces of the step."""
    contact = [gap], [[0.0, 1.0, 0.0, -0.1, 0.0, 0.0]], [time]
    numbers = (*contact, [[0.3, u, 0.2]], [[0.3, before]], [[0.2]], [[0.0]], [[0.0, 0.0]], [[1.0]], [0.4], [0.6])
    return [tensor([float(what)]), *[tensor(np.array(each, float), requires_grad=True) for each in numbers]]


def single() -> RigidBodies:
    return RigidBodies(2, H, ((Sphere(0.1),),), (Plane((0.0, 1.0)),), rest_speed=0.5)


@pytest.mark.parametrize(("dim", "integrator"), [(2, EULER), (3, EULER), (3, VARIATIONAL)])
def test_the_adjoint_is_right(dim: int, integrator: str) -> None:
    model, what = replace(balls(dim), integrator=integrator), tensor(np.array(WHAT, float))
    inputs = inputs_of(model)
    targets = ContactRows.apply(model, what, *inputs)[1].data[::dim]
    assert (targets[:3] > 0).any() and (targets[:3] == 0).any() and targets[4] == 0.5
    gradcheck(lambda *x: ContactRows.apply(model, what, *x), inputs)


def test_tangents_are_across_the_normal_in_space() -> None:
    model = balls(3)
    random = np.random.default_rng(4)
    n = random.normal(size=(model.contacts, 3))
    frame = np.zeros((model.contacts, 9))
    frame[:, :3] = n / np.linalg.norm(n, axis=1)[:, None]
    M = model.contacts
    zeros = [tensor(np.zeros(shape)) for shape in (M, (3, 6), (3, 3), (3, 3), (3, 4), (M, 8), (3, 3), 3, 3)]
    row = ContactRows.apply(model, tensor(np.full(M, float(REST))), tensor(-np.ones(M)), tensor(frame), *zeros)[0]
    T = row.data[:, :3].reshape(-1, 3, 3)
    np.testing.assert_allclose(T @ T.transpose(0, 2, 1), np.tile(np.eye(3), (len(T), 1, 1)), atol=1e-14)


def test_an_impact_has_the_speed_of_its_time() -> None:
    """Forces add 1 in a step, in whose middle the speed is 2: it is 1.8 at three tenths, and 0.2 is left from there."""
    _, target, limit = ContactRows.apply(single(), *of_one_ball(IMPACT, 0.0, -2.0, time=0.03))
    assert limit.data.tolist() == [0.4]
    np.testing.assert_allclose(target.data, [0.6 * 1.8 - 0.2, 0.0])


def test_what_sticks_in_an_impact_has_what_forces_add_afterwards() -> None:
    """Forces add 1 to the speed along the floor: where it sticks at three tenths of a step, it is 0.2 in the middle."""
    inputs = of_one_ball(IMPACT, 0.0, -2.0, before=-2.0, time=0.03)
    inputs[5] = tensor([[-0.7, -2.0]])  # the tangent is -x
    target = ContactRows.apply(single(), *inputs)[1]
    np.testing.assert_allclose(target.data[1], -0.2, rtol=1e-14)


def test_an_impact_on_the_border_of_two_steps_is_the_same_in_either() -> None:
    """At the end of one, and at the start of the next one, whose forces add 1 to the speeds at the first's end."""
    first = ContactRows.apply(single(), *of_one_ball(IMPACT, 0.0, -2.0, before=-1.0, time=H))[1]
    second = ContactRows.apply(single(), *of_one_ball(IMPACT, 0.0, -3.0, before=-2.0, time=0.0))[1]
    np.testing.assert_allclose(first.data[0] - 1, second.data[0], rtol=1e-14)


@pytest.mark.parametrize(
    ("gap", "target"),
    [
        (0.01, -0.1),  # lands
        (0.0, 0.0),
        (-0.01, 0.1),
        (-1.0, 0.5),  # a deep overlap goes at the threshold
    ],
)
def test_at_rest_features_touch_at_the_end_of_the_step(gap: float, target: float) -> None:
    found = ContactRows.apply(single(), *of_one_ball(REST, gap, -0.3))
    np.testing.assert_allclose(found[1].data, [target, 0], atol=1e-15)


def derivative(inputs: list[Tensor], by: int) -> float:
    target = ContactRows.apply(single(), *inputs)[1]
    target[0].backward()
    grad = inputs[by].grad
    return 0.0 if grad is None else float(grad.data.reshape(-1)[0])


def test_derivatives_at_kinks_are_those_that_are_said() -> None:
    assert derivative(of_one_ball(REST, -0.05, 0.0), 1) == 0.0  # -g / h = v_rest: the bound
    assert derivative(of_one_ball(REST, 0.0, -0.3), 1) == pytest.approx(-1 / H)  # g = 0 is none: the same on both sides
    assert derivative(of_one_ball(IMPACT, 0.0, 0.0, before=0.0), 11) == 0.0  # a target of 0
