"""Rows of contacts: their adjoint and their targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import Plane, RigidBodies, Sphere
from simphys.simulators.rigid.contacts.contact_rows import ContactRows
from simphys.simulators.rigid.contacts.islands import IMPACT, NONE, REST

from ....helpers.rounding import assert_equal_but_for_rounding

H = 0.1
WHAT = (IMPACT, IMPACT, IMPACT, REST, REST, NONE)
"""States of six contacts."""


def balls(dim: int) -> RigidBodies:
    up = (0.0, 1.0) if dim == 2 else (0.0, 0.0, 1.0)
    return RigidBodies(dim, H, ((Sphere(0.1),),) * 3, (Plane(up),), rest_speed=0.5)


def make_inputs(model: RigidBodies) -> list[Tensor]:
    """Return random inputs, away from all kinks."""
    random = np.random.default_rng(4)
    gap, M = np.array([0.0, 0.0, -0.3, 0.02, -0.3, 0.9]), model.contacts
    given = [gap, random.normal(size=(M, 3 * model.dim)), random.uniform(0.2, 1, 3), random.uniform(0.2, 1, 3)]
    return [tensor(each, requires_grad=True) for each in given]


def one_ball_inputs(what: int, gap: float) -> list[Any]:
    """Return the inputs for a ball above a floor."""
    values = ([gap], [[0.0, 1.0, 0.0, -0.1, 0.0, 0.0]], [0.4], [0.6])
    return [tensor([float(what)]), H, 0.5, *[tensor(np.array(each, float), requires_grad=True) for each in values]]


def single() -> RigidBodies:
    return RigidBodies(2, H, ((Sphere(0.1),),), (Plane((0.0, 1.0)),), rest_speed=0.5)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_adjoint_is_right(dim: int) -> None:
    model, what = balls(dim), tensor(np.array(WHAT, float))
    inputs = make_inputs(model)
    targets = ContactRows.apply(model, what, H, 0.5, *inputs)[1].data[:, 0]
    assert not targets[:3].any() and targets[3] == pytest.approx(-0.2) and targets[4] == 0.5
    gradcheck(lambda *x: ContactRows.apply(model, what, H, 0.5, *x), inputs)


def test_tangents_are_across_the_normal_in_space() -> None:
    model = balls(3)
    random = np.random.default_rng(4)
    n = random.normal(size=(model.contacts, 3))
    frame = np.zeros((model.contacts, 9))
    frame[:, :3] = n / np.linalg.norm(n, axis=1)[:, None]
    what, gap, zeros = np.full(model.contacts, float(REST)), -np.ones(model.contacts), np.zeros((2, 3))
    row = ContactRows.apply(model, tensor(what), H, 0.5, *[tensor(each) for each in (gap, frame, *zeros)])[0]
    T = row.data.reshape(-1, 3, 9)[:, :, :3]
    assert_equal_but_for_rounding(T @ T.transpose(0, 2, 1), np.tile(np.eye(3), (len(T), 1, 1)), ulps=64)


def test_a_pair_has_mean_friction_and_restitution_and_a_body_against_the_world_its_own() -> None:
    model = balls(2)
    values = [*make_inputs(model)[:2], tensor([0.1, 0.3, 0.7]), tensor([0.2, 0.4, 0.8])]
    _, _, limit, bounce = ContactRows.apply(model, tensor(np.full(model.contacts, float(REST))), H, 0.5, *values)
    bodies = model.row_bodies.reshape(-1, 2).tolist()
    assert any(b < 0 for _, b in bodies) and any(b >= 0 for _, b in bodies)
    for c, (a, b) in enumerate(bodies):
        both = [a, b] if b >= 0 else [a]
        np.testing.assert_allclose(limit.data[c], values[2].data[both].mean())
        np.testing.assert_allclose(bounce.data[c], values[3].data[both].mean())


@pytest.mark.parametrize(
    ("gap", "target"),
    [
        (0.01, -0.1),  # lands
        (0.0, 0.0),
        (-0.01, 0.1),
        (-1.0, 0.5),  # the correction of a deep overlap is limited by the threshold
    ],
)
def test_at_rest_features_touch_at_the_end_of_the_step(gap: float, target: float) -> None:
    found = ContactRows.apply(single(), *one_ball_inputs(REST, gap))
    assert_equal_but_for_rounding(found[1].data, [[target, 0]], size=1.0)


def derivative(inputs: list[Any], by: int) -> float:
    target = ContactRows.apply(single(), *inputs)[1]
    target[0, 0].backward()
    grad = inputs[by].grad
    return 0.0 if grad is None else float(grad.data.reshape(-1)[0])


def test_derivatives_at_kinks_follow_the_convention() -> None:
    assert derivative(one_ball_inputs(REST, -0.05), 3) == 0.0  # at the kink -g / h = v_rest
    assert derivative(one_ball_inputs(REST, 0.0), 3) == pytest.approx(-1 / H)  # no kink at g = 0
