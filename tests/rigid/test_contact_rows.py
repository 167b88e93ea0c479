"""Rows of contacts: their adjoint, and what counts when."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.gradcheck import gradcheck
from simphys.rigid import Plane, RigidBodies, Sphere
from simphys.rigid.contact_rows import ContactRows

H = 0.1


def balls(dim: int) -> RigidBodies:
    up = (0.0, 1.0) if dim == 2 else (0.0, 0.0, 1.0)
    return RigidBodies(dim, H, ((Sphere(0.1),),) * 3, (Plane(up),), rest_speed=0.5)


def one_ball(gap: float, u: float, *, before: float | None = None, e: float = 0.6) -> list[Tensor]:
    """Inputs of a ball above a floor, its speed after and before the forces of the step."""
    before = u if before is None else before
    numbers = ([gap], [[0.0, 1.0, 0.0, -0.1, 0.0, 0.0]], [[0.3, u, 0.2]], [[0.3, before]], [[0.2]], [0.4], [e])
    return [tensor(np.array(each, float), requires_grad=True) for each in numbers]


def single() -> RigidBodies:
    return RigidBodies(2, H, ((Sphere(0.1),),), (Plane((0.0, 1.0)),), rest_speed=0.5)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_adjoint_is_right(dim: int) -> None:
    """Of impacts, before and after their moment, of rest, and of deep overlaps."""
    model = balls(dim)
    random = np.random.default_rng(dim)
    S, M = model.spins, model.contacts
    gap = np.array([0.045, -0.03, -0.3, 0.02, -0.04, 0.9])
    inputs = [gap, *(random.normal(size=shape) for shape in ((M, 3 * dim), (3, dim + S), (3, dim), (3, S)))]
    inputs += [random.uniform(0.2, 1, 3), random.uniform(0.2, 1, 3)]
    leaves = [tensor(each, requires_grad=True) for each in inputs]
    active = ContactRows.apply(model, *leaves)[4].data
    assert 0 < active.sum() < M
    gradcheck(lambda *x: ContactRows.apply(model, *x)[:4], leaves)


def test_tangents_are_across_the_normal_in_space() -> None:
    model = balls(3)
    random = np.random.default_rng(4)
    n = random.normal(size=(model.contacts, 3))
    frame = np.zeros((model.contacts, 9))
    frame[:, :3] = n / np.linalg.norm(n, axis=1)[:, None]
    zeros = [np.zeros(shape) for shape in ((3, 6), (3, 3), (3, 3), 3, 3)]
    row = ContactRows.apply(model, *[tensor(each) for each in (-np.ones(model.contacts), frame, *zeros)])[0]
    T = row.data[:, :3].reshape(-1, 3, 3)
    np.testing.assert_allclose(T @ T.transpose(0, 2, 1), np.tile(np.eye(3), (len(T), 1, 1)), atol=1e-14)


def test_an_impact_is_at_its_time_with_its_speed() -> None:
    """Speed 1 at the step's start, 2 after its forces: at three tenths of it the speed is 1.3, and 0.7 is left."""
    _, target, limit, time, active = ContactRows.apply(single(), *one_ball(0.06, -2.0, before=-1.0))
    assert active.data.tolist() == [1.0] and limit.data.tolist() == [0.4]
    np.testing.assert_allclose(time.data, [0.03])
    np.testing.assert_allclose(target.data, [0.6 * 1.3 - 0.7, 0.0])


@pytest.mark.parametrize(
    ("gap", "u", "target", "time"),
    [
        (0.01, -0.3, -0.1, 0.0),  # lands
        (0.0, -0.3, 0.0, 0.0),
        (-0.01, 0.2, 0.1, 0.0),
        (-1.0, 0.2, 0.5, 0.0),  # a deep overlap goes at the threshold
        (-1.0, -2.0, 1.2, -H),
    ],
)
def test_at_rest_features_touch_at_the_end_of_the_step(gap: float, u: float, target: float, time: float) -> None:
    found = ContactRows.apply(single(), *one_ball(gap, u))
    assert found[4].data.tolist() == [1.0]
    np.testing.assert_allclose((found[1].data[0], found[3].data[0]), (target, time), atol=1e-15)


@pytest.mark.parametrize(("gap", "u"), [(0.2, -2.0), (0.05, 3.0), (0.06, -0.3)])
def test_what_does_not_come_near_or_just_not_does_not_count(gap: float, u: float) -> None:
    """At the kink g = h max(-u, v_rest) there is no contact."""
    assert ContactRows.apply(single(), *one_ball(gap, u))[4].data.tolist() == [0.0]


def derivative(inputs: list[Tensor], by: int) -> float:
    target = ContactRows.apply(single(), *inputs)[1]
    target[0].backward()
    grad = inputs[by].grad
    return 0.0 if grad is None else float(grad.data.reshape(-1)[1 if by == 2 else 0])


def test_derivatives_at_kinks_are_those_that_are_said() -> None:
    assert derivative(one_ball(0.0, -0.5), 6) == 0.0  # exactly at the threshold: it does not bounce
    assert derivative(one_ball(-0.05, 0.0), 0) == 0.0  # -g / h = v_rest: the bound
    assert derivative(one_ball(0.0, -0.3), 0) == pytest.approx(-1 / H)  # g = 0 is none: the same on both sides
