"""A whole step of rigid bodies against known results: impacts, rest, friction, rotations, joints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import grad, tensor
from simphys.rollout import rollout
from simphys.simulators.rigid import Box, Capsule, Params, Plane, RigidBodies, Sphere, State

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import GRAVITY, System, chain, controls, system, tolerance

FLOOR = {2: Plane((0.0, 1.0)), 3: Plane((0.0, 0.0, 1.0))}


def at_rest(model: RigidBodies, position: Any, **params: Any) -> System:
    state = {"position": position, "velocity": 0.0, "angular_velocity": 0.0}
    return system(model, state=state, **params)


@pytest.mark.parametrize("e", [0.9, 0.5])
def test_the_height_after_a_bounce_falls_with_the_height_before(e: float) -> None:
    """Without gravity the derivative is -e; it has the wrong sign if impulses act at the start of their step."""
    model = RigidBodies(2, 0.01, ((Sphere(0.1),),), (FLOOR[2],))
    state = {"position": [[0.0, 0.1537]], "velocity": [[0.4, -1.0]], "angular_velocity": 0.0}
    model, params, start = system(model, state=state, gravity=0.0, friction=0.0, restitution=e)
    final = rollout(model, params, start, steps=12).final
    by_position, by_velocity = grad(final.position[0, 1], (start.position, start.velocity))
    met = 0.0537
    np.testing.assert_allclose(final.position.data[0, 1], 0.1 + e * (0.12 - met), rtol=1e-12)
    np.testing.assert_allclose(by_position.data[0, 1], -e, rtol=1e-10)
    np.testing.assert_allclose(by_velocity.data[0, 1], -e * 0.12, rtol=1e-10)


@pytest.mark.gpu  # few steps: Mesa's driver ends a thread's loops after 65,535 rounds
def test_a_box_lands_and_rests_independently_of_its_fall() -> None:
    """It stands on the floor to rounding and no longer moves; its height does not depend on the past."""
    model = RigidBodies(2, 0.01, ((Box((0.2, 0.1)),),), (FLOOR[2],))
    state = {"position": [[0.0, 0.2]], "velocity": [[0.3, -0.5]], "angular_velocity": 0.2}
    model, params, start = system(model, state=state, friction=0.5, mass=1.0, inertia=0.05 / 3)
    final = rollout(model, params, start, steps=20).final
    np.testing.assert_allclose(final.position.data[0, 1], 0.1, atol=tolerance(1e-10, 1e-5))
    np.testing.assert_allclose(final.velocity.data, 0, atol=tolerance(1e-6, 1e-4))  # a residual of the sweeps
    np.testing.assert_allclose(final.orientation.data, 0, atol=tolerance(1e-8, 1e-4))
    (by_position,) = grad(final.position[0, 1], (start.position,))
    np.testing.assert_allclose(by_position.data, 0, atol=tolerance(1e-8, 1e-3))


def test_a_stack_of_boxes_stands() -> None:
    model = RigidBodies(2, 0.01, tuple((Box((0.2 - 0.03 * k, 0.1)),) for k in range(3)), (FLOOR[2],), sweeps=50)
    places = [[0.02 * k, 0.1 + 0.2 * k] for k in range(3)]
    model, params, start = at_rest(model, places, friction=0.5, restitution=0.3)
    final = rollout(model, params, start, steps=200).final
    np.testing.assert_allclose(final.position.data, places, atol=1e-3)
    np.testing.assert_allclose(final.velocity.data, 0, atol=1e-3)


@pytest.mark.parametrize(("mu", "slides"), [(0.35, False), (0.25, True)])
def test_on_a_slope_a_box_slides_where_friction_is_less_than_the_slope(mu: float, slides: bool) -> None:
    """On a slope of 0.3 the acceleration is g (sin - mu cos)."""
    angle = np.arctan(0.3)
    up, down = np.array([np.sin(angle), np.cos(angle)]), np.array([np.cos(angle), -np.sin(angle)])
    model = RigidBodies(2, 0.005, ((Box((0.2, 0.1)),),), (Plane(tuple(up.tolist())),), sweeps=60)
    model, params, start = system(
        model,
        state={"position": [0.1 * up], "orientation": [[-angle]], "velocity": 0.0, "angular_velocity": 0.0},
        friction=mu,
        inertia=0.05 / 3,
        mass=1.0,
    )
    final = rollout(model, params, start, steps=100).final
    expected = GRAVITY * (np.sin(angle) - mu * np.cos(angle)) * 0.5 if slides else 0.0
    np.testing.assert_allclose(final.velocity.data[0] @ down, expected, atol=1e-6)
    np.testing.assert_allclose(final.velocity.data[0] @ up, 0, atol=1e-9)


def test_quaternions_stay_of_unit_length() -> None:
    """The motion has 10^4 steps, with impacts."""
    shapes = ((Capsule(0.1, 0.15),), (Box((0.2, 0.15, 0.1)),))
    model = RigidBodies(3, 0.005, shapes, (FLOOR[3],), sweeps=4)
    q = [[0.9, 0.1, 0.2, -0.3], [1.0, 0.0, 0.0, 0.0]]
    q = [np.array(each) / np.linalg.norm(each) for each in q]
    state = {"position": [[0, 0, 1], [0.5, 0, 0.7]], "orientation": q, "angular_velocity": [[3, 2, 1], [-1, 5, 2]]}
    model, params, start = system(model, state=state)
    final = rollout(model, params, start, steps=10_000, keep="final").final
    np.testing.assert_allclose(np.linalg.norm(final.orientation.data, axis=1), 1, atol=1e-10)  # roundings add up
    assert np.isfinite(final.position.data).all()


@pytest.mark.parametrize("dim", [2, 3])
def test_joints_hold(dim: int) -> None:
    """Two bodies with a fixed joint keep their distance and relative angle while they swing and slide."""
    model, params, start = chain(dim)
    states = rollout(model, params, start, steps=200, control=controls(model, 200)).states
    apart = np.linalg.norm(states.position.data[100:, 2] - states.position.data[100:, 1], axis=1)
    middle = (apart.max() + apart.min()) / 2
    np.testing.assert_allclose(apart, middle, atol=0.01)
    anchors = np.linalg.norm(states.position.data[100:, 0], axis=1)
    np.testing.assert_allclose(anchors, 0.2, atol=0.01)


def test_a_fixed_body_is_not_moved_and_others_bounce_off_it() -> None:
    model = RigidBodies(2, 0.01, ((Sphere(0.1),), (Box((0.3, 0.1)),)), fixed=(1,))
    model, params, start = at_rest(model, [[0.05, 0.4], [0.0, 0.0]], friction=0.0, restitution=1.0)
    states = rollout(model, params, start, steps=60).states
    assert (states.position.data[:, 1] == 0).all() and (states.velocity.data[:, 1] == 0).all()
    assert states.position.data[:, 0, 1].min() > 0.19 and states.velocity.data[:, 0, 1].max() > 1


def test_batch_members_agree_with_single_runs() -> None:
    """Roundings of thirty steps and their sweeps grow in impacts."""
    model = RigidBodies(2, 0.01, ((Box((0.2, 0.1)),),), (FLOOR[2],))
    model, params, start = at_rest(model, [[0.0, 0.3]])
    friction = tensor(np.array([[0.1], [0.4], [0.9]]), requires_grad=True)
    moving = start.replace(velocity=tensor([[1.0, -1.0]], requires_grad=True))
    together = rollout(model, params.replace(friction=friction), moving, steps=30).final
    together.position.sum().backward()
    found, shared = friction.grad, moving.velocity.grad
    assert found is not None and shared is not None
    alone = []
    for member in range(3):
        own = tensor(friction.data[member], requires_grad=True)
        start_own = start.replace(velocity=tensor([[1.0, -1.0]], requires_grad=True))
        final = rollout(model, params.replace(friction=own), start_own, steps=30).final
        assert_equal_but_for_rounding(together.position.data[member], final.position.data, ulps=4096)
        final.position.sum().backward()
        assert own.grad is not None and start_own.velocity.grad is not None
        assert_equal_but_for_rounding(found.data[member], own.grad.data, ulps=4096, size=abs(found.data).max())
        alone.append(start_own.velocity.grad.data)
    assert_equal_but_for_rounding(shared.data, sum(alone), ulps=4096)


def test_a_motion_is_the_same_again() -> None:
    model, params, start = chain()
    first, second = (rollout(model, params, start, steps=50, control=controls(model, 50)) for _ in range(2))
    assert first.position.data.tobytes() == second.position.data.tobytes()


def test_a_step_works_without_gradients() -> None:
    """No tensor requires a gradient."""
    model, params, start = chain()
    plain = (
        Params(*[tensor(each.data) for each in params.tensors()]),
        State(*[tensor(each.data) for each in start.tensors()]),
    )
    moved: Any = model.step(*plain)
    assert np.isfinite(moved.position.data).all()
