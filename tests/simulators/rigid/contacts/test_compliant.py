"""Compliant contacts: the adjoint is the transpose of the Jacobian, and impacts follow Hunt and Crossley."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from simphys.autograd import Tensor, grad
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import Plane, RigidBodies, Sphere
from simphys.simulators.rigid.contacts.compliant import CompliantContact, ContactWrench

from ....helpers.rounding import assert_equal_but_for_rounding
from .poses import leaf, measure, random_turns

DIMS = pytest.mark.parametrize("dim", [2, 3])
Array = np.ndarray[Any, Any]


def two_balls(dim: int, *, slip_speed: float = 0.2) -> RigidBodies:
    """Two balls of radius 0.3 and 0.2 over a floor: three candidates."""
    floor = Plane((0.0, 1.0, 0.0)[:dim])
    return RigidBodies(dim, 0.01, ((Sphere(0.3),), (Sphere(0.2),)), (floor,), slip_speed=slip_speed)


def leaves(*values: Any) -> tuple[Tensor, ...]:
    return tuple([leaf(value) for value in values])


def sum_contacts(model: RigidBodies, *inputs: Tensor) -> Tensor:
    """Return the wrench on each body."""
    wrench: Tensor = ContactWrench.apply(model, *CompliantContact.apply(model, model.slip_speed, *inputs))
    return wrench


@DIMS
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    """One contact is with the floor, one with another body, for arbitrary frames; a third pair does not touch."""
    model, random = two_balls(dim), np.random.default_rng(dim)
    assert model.candidates.body_b.tolist() == [-1, -1, 1]
    inputs = leaves(
        (-0.3, 0.1, -0.2),
        random.standard_normal((3, 3 * dim)),
        *[random.standard_normal((2, size)) for size in (dim, model.spins)],
        2.0, 0.1, (0.4, 0.7),
    )  # fmt: skip
    report = gradcheck(lambda *x: sum_contacts(model, *x), inputs, tolerance=1e-7)
    assert report
    assert sum_contacts(model, *inputs).data.any(axis=1).all()


@DIMS
def test_action_is_reaction(dim: int) -> None:
    """Two spinning balls that slide on each other conserve momentum and angular momentum, to rounding."""
    random = np.random.default_rng(0)
    model = RigidBodies(dim, 0.01, ((Sphere(0.3),), (Sphere(0.2),)))
    x, q = np.array([[0.1, 0.2, 0.3], [0.4, 0.35, 0.1]])[:, :dim], random_turns(dim, 2, random)
    motion = [random.standard_normal((2, size)) for size in (dim, model.spins)]
    wrench = sum_contacts(model, *measure(model, *leaves(x, q)), *leaves(*motion, 90, 0.1, (0.4, 0.7)))
    force, torque = wrench.data[:, :dim], wrench.data[:, dim:]
    assert abs(force).min() > 0.1
    assert abs(torque).min() > 0.1
    moment = np.cross(x, force) if dim == 3 else (x[:, :1] * force[:, 1:] - x[:, 1:] * force[:, :1])
    about_origin = (moment + torque).sum(axis=0)
    assert_equal_but_for_rounding(force.sum(axis=0), np.zeros(dim), size=abs(force).max())
    assert_equal_but_for_rounding(about_origin, np.zeros_like(about_origin), ulps=64, size=abs(force).max())


def floor_force(
    depth: float, velocity: tuple[float, float], *, k: float = 100.0, c: float = 0.0, spin: float = 0.0
) -> Array:
    """Force on the first of two balls in the plane, at a depth in the floor; friction 0.5, with v_s = 0.2."""
    x = [[0.0, 0.3 - depth], [9.0, 9.0]]
    model = two_balls(2)
    contact = measure(model, *leaves(x, np.zeros((2, 1))))
    wrench = sum_contacts(
        model, *contact, *leaves([velocity, (0, 0)], [[spin], [0]], k, c, (0.5, 0.1))
    )  # fmt: skip
    force: Array = wrench.data[0]
    return force


@pytest.mark.gpu
def test_a_contact_at_rest_is_a_spring() -> None:
    found = floor_force(0.02, (0.0, 0.0))
    assert_equal_but_for_rounding(found, np.array((0, 2.0, 0), found.dtype), size=30.0)  # the depth is a difference
    assert not floor_force(0.0, (0.0, -1.0)).any()


@pytest.mark.parametrize("slip", [-3.0, -0.2, 0.05, 1.0])
def test_friction_reaches_its_limit_smoothly(slip: float) -> None:
    force = floor_force(0.02, (slip, 0.0))
    # The depth, a hundredth of the height, is a difference.
    np.testing.assert_allclose(force[0], -0.5 * 2.0 * slip / np.hypot(slip, 0.2), rtol=1e-12)
    np.testing.assert_allclose(force[2], (0.3 - 0.01) * force[0], rtol=1e-12)  # midway between both surfaces


def test_a_ball_that_rolls_feels_no_friction() -> None:
    assert abs(floor_force(0.02, (1.0, 0.0), spin=-1.0 / 0.29)[[0, 2]]).max() < 1e-13


def test_damping_resists_approach_and_never_pulls() -> None:
    assert_equal_but_for_rounding(floor_force(0.02, (0.0, -1.0), c=0.5)[1], 2.0 * 1.5, size=30.0)
    assert_equal_but_for_rounding(floor_force(0.02, (0.0, 1.0), c=0.5)[1], 2.0 * 0.5, size=30.0)
    assert not floor_force(0.02, (0.3, 2.0), c=0.5).any()
    assert not floor_force(0.02, (0.3, 3.0), c=0.5).any()


@pytest.mark.parametrize(("gap", "speed"), [(0.0, -1.0), (-0.1, 2.0)])
def test_at_its_kinks_there_is_no_contact_and_no_derivative(gap: float, speed: float) -> None:
    """Features just touch, or damping just cancels the force."""
    model = RigidBodies(2, 0.01, ((Sphere(0.3),),), (Plane((0.0, 1.0)),))
    inputs = leaves([gap], [[0, 1, 0, -0.3, 0, 0]], [[1.0, speed]], [[0.5]], 100.0, 0.5, [0.5])
    wrench = sum_contacts(model, *inputs)
    assert not wrench.data.any()
    assert not any(adj.data.any() for adj in grad(wrench.sum(), inputs))


# --- impacts


def impact(*, m: float, k: float, c: float, v: float) -> tuple[float, float]:
    """Return the duration of a contact and the rebound speed, for a ball of mass m and speed v on the floor."""

    def rate(_: float, state: Array) -> tuple[float, float]:
        return state[1], floor_force(-state[0], (0.0, state[1]), k=k, c=c)[1] / m

    def leaves_floor(t: float, state: Array) -> float:
        return float(state[0]) if t > 0 else -1.0

    leaves_floor.terminal = True  # type: ignore[attr-defined]
    course = solve_ivp(rate, (0, 10), (0.0, -v), events=leaves_floor, rtol=1e-10, atol=1e-12)
    return float(course.t[-1]), float(course.y[1, -1])


def test_without_damping_a_contact_lasts_half_a_period_and_keeps_the_speed() -> None:
    m, k = 0.7, 300.0
    for v in (0.1, 1.3):
        np.testing.assert_allclose(impact(m=m, k=k, c=0.0, v=v), (np.pi * np.sqrt(m / k), v), rtol=1e-7)


@pytest.mark.parametrize("v", [0.05, 0.5, 2.0])
def test_damping_reduces_the_speed_as_predicted(v: float) -> None:
    """The rebound solves G(v) = G(-e v) for any mass and stiffness; e = 1 - 2/3 c v for slow impacts."""
    c = 0.4

    def G(speed: float) -> float:
        return c * speed - np.log1p(c * speed)

    e = brentq(lambda e: G(v) - G(-e * v), 1e-3, 1, xtol=1e-14)
    for m, k in ((0.7, 300.0), (2.0, 50.0)):
        np.testing.assert_allclose(impact(m=m, k=k, c=c, v=v)[1], e * v, rtol=1e-7)
    np.testing.assert_allclose(e, 1 - 2 / 3 * c * v, atol=0.5 * (c * v) ** 2)
