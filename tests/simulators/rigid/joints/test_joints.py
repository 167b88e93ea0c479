"""Effects of joints on a motion, whichever method computes it."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from simphys.autograd import Tensor, no_grad, tensor
from simphys.rollout import rollout
from simphys.simulators.rigid import WORLD, Joint, Params, RigidBodies, State
from simphys.simulators.rigid.joints.joint_constraints import JointRows

from ..free_bodies import arms

Array = np.ndarray[Any, Any]
GRAVITY = 9.81
MASS, LENGTH = np.array([1.0, 0.6]), np.array([0.8, 1.1])
"""Mass [kg] and length [m] of two rods."""


def make_params(model: RigidBodies, **given: Any) -> Params:
    """Return parameters; those that are not given are 0."""
    return Params(**{name: tensor(given.get(name, np.zeros(shape))) for name, shape in model.param_shapes().items()})


def make_state(model: RigidBodies, **given: Any) -> State:
    """Return a state; fields that are not given are 0, or the identity."""
    values = {name: np.zeros(shape) for name, shape in model.state_shapes().items()}
    if model.dim == 3:
        values["orientation"][:, 0] = 1
    return State(**{name: tensor(given.get(name, value)) for name, value in values.items()})


def run(
    model: RigidBodies, params: Params, state: State, steps: int, control: Tensor | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return all states."""
    with no_grad():
        result = rollout(model, params, state, steps=steps, control=control)
    x, q, v, w = (each.data for each in result.states.tensors())
    return x, q, v, w


def rods(dt: float) -> tuple[RigidBodies, Params, State]:
    """Return a double pendulum in the plane; the axis of a rod points from its upper end to its lower one."""
    half = LENGTH / 2
    joints = (
        Joint("revolute", 0, WORLD, (-half[0], 0.0), (0.0, 0.0)),
        Joint("revolute", 1, 0, (-half[1], 0.0), (half[0], 0.0)),
    )
    model = RigidBodies(2, dt, ((), ()), joints=joints)
    params = make_params(model, mass=MASS, inertia=(MASS * LENGTH**2 / 12)[:, None], gravity=[0.0, -GRAVITY])
    q = np.array(ANGLES) - np.pi / 2
    along = np.stack([np.cos(q), np.sin(q)], axis=1) * LENGTH[:, None]
    return model, params, make_state(model, position=[along[0] / 2, along[0] + along[1] / 2], orientation=q[:, None])


ANGLES = (1.2, 0.4)
"""Initial angles of the rods to the vertical; they start at rest."""


def exact_angles(end: float) -> Array:
    """Integrate Lagrange's equations of the two angles."""
    (m1, m2), (l1, l2) = MASS, LENGTH

    def rate(_: float, state: Array) -> list[float]:
        (a, b), (da, db) = state[:2], state[2:]
        coupling = m2 * l1 * l2 / 2
        matrix = np.array([[(m1 / 3 + m2) * l1**2, coupling * np.cos(a - b)], [0, m2 * l2**2 / 3]])
        matrix[1, 0] = matrix[0, 1]
        force = [
            -coupling * np.sin(a - b) * db**2 - (m1 / 2 + m2) * GRAVITY * l1 * np.sin(a),
            coupling * np.sin(a - b) * da**2 - m2 * GRAVITY * l2 / 2 * np.sin(b),
        ]
        return [da, db, *np.linalg.solve(matrix, force)]

    found: Array = solve_ivp(rate, (0, end), [*ANGLES, 0, 0], rtol=1e-10, atol=1e-10).y[:2, -1]
    return found


def test_a_double_pendulum_follows_lagranges_equations_to_second_order_and_stays_joined() -> None:
    expected, errors, gaps = exact_angles(0.8), [], []
    for steps in (800, 1600, 3200):
        x, q, _, _ = run(*rods(0.8 / steps), steps)
        errors.append(np.linalg.norm(q[-1, :, 0] + np.pi / 2 - expected))
        half = np.stack([np.cos(q[:, :, 0]), np.sin(q[:, :, 0])], axis=-1) * LENGTH[:, None] / 2
        gaps.append(np.linalg.norm(x - half - np.stack([np.zeros_like(x[:, 0]), x[:, 0] + half[:, 0]], 1), axis=-1))
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([4, 4], rel=0.1)
    assert errors[-1] < 2e-5
    assert [a.max() / b.max() for a, b in itertools.pairwise(gaps)] == pytest.approx([4, 4], rel=0.1)
    assert gaps[0].max() < 1e-4


@pytest.mark.parametrize("dim", [2, 3])
def test_a_block_slides_along_its_axis_alone(dim: int) -> None:
    """Down a slope without friction it moves by a t^2 / 2."""
    axis = np.array([0.6, -0.8, 0.0][:dim])
    joint = Joint("prismatic", 0, WORLD, (0.0,) * dim, (0.0,) * dim, axis=tuple(axis))
    model = RigidBodies(dim, 0.01, ((),), joints=(joint,))
    params = make_params(model, mass=[2.0], inertia=np.full((1, model.spins), 0.1), gravity=np.eye(dim)[1] * -GRAVITY)
    x, q, _, w = run(model, params, make_state(model), 100)
    t = 0.01 * np.arange(101)
    np.testing.assert_allclose(x[:, 0], (0.8 * GRAVITY * t**2 / 2)[:, None] * axis, atol=1e-12)
    np.testing.assert_allclose(q, np.broadcast_to(q[0], q.shape), atol=1e-12)
    np.testing.assert_allclose(w[1:], 0, atol=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_dry_friction_stops_a_hinge_and_a_slide_at_a_constant_rate(dim: int) -> None:
    """A rod turns on a hinge at its end until w J / F, with J its inertia there, and a block slides until v m / F."""
    axis, none = (0.0, 1.0, 0.0)[:dim], (0.0,) * dim
    hinge = Joint("revolute", 0, WORLD, (-0.5, *none[1:]), none, axis=None if dim == 2 else (0.0, 0.0, 1.0))
    joints = (hinge, Joint("prismatic", 1, WORLD, none, none, axis=axis))
    model = RigidBodies(dim, 0.002, ((), ()), joints=joints, joint_friction=True)
    own = np.full((2, model.spins), 2.0 / 12)
    dry: dict[str, Any] = {"joint_dry_friction": [0.8, 3.0], "joint_transition_rate": [4e-3, 4e-3]}
    params = make_params(model, mass=[2.0, 1.5], inertia=own, **dry)
    spin, speed, J = 1.2, 1.6, 2.0 / 12 + 2.0 * 0.5**2
    turning = np.zeros((2, model.spins))
    turning[0, -1] = spin
    place = np.array([[0.5, *none[1:]], none])
    velocity = np.array([[0.0, spin * 0.5, 0.0][:dim], speed * np.array(axis)])
    state = make_state(model, position=place, velocity=velocity, angular_velocity=turning)
    x, _, v, w = run(model, params, state, 600)
    t = 0.002 * np.arange(601)
    for rate, begun, slowing in ((w[:, 0, -1], spin, 0.8 / J), (v[:, 1] @ np.array(axis), speed, 3.0 / 1.5)):
        coulomb = np.maximum(0.0, begun - slowing * t)
        np.testing.assert_allclose(rate, coulomb, rtol=0, atol=0.02 * begun)
        assert t[np.argmax(rate < 0.05 * begun)] == pytest.approx(0.95 * begun / slowing, rel=0.01)
        assert abs(rate[-1]) < 1e-3 * begun
    assert x[-1, 1] @ np.array(axis) == pytest.approx(speed**2 / (2 * 3.0 / 1.5), rel=0.01)


def test_the_angle_at_which_dry_friction_stops_a_hinge_has_the_derivative_of_the_closed_form() -> None:
    """A flywheel turns by w^2 J / 2 F in all, so that a fit finds F: the derivative is -w^2 J / 2 F^2."""
    joint = Joint("revolute", 0, WORLD, (0.0, 0.0), (0.0, 0.0))
    model = RigidBodies(2, 0.001, ((),), joints=(joint,), joint_friction=True)
    dry = tensor([0.5], requires_grad=True)
    params = make_params(model, mass=[1.0], inertia=[[0.2]], joint_transition_rate=[2e-3])
    start = make_state(model, angular_velocity=[[1.5]])
    end = rollout(model, params.replace(joint_dry_friction=dry), start, steps=800, keep="final").final.orientation
    end.sum().backward()
    assert end.data[0, 0] == pytest.approx(1.5**2 * 0.2 / (2 * 0.5), rel=0.01)
    assert dry.grad is not None and dry.grad.data[0] == pytest.approx(-(1.5**2) * 0.2 / (2 * 0.5**2), rel=0.01)


def chain(dim: int) -> tuple[RigidBodies, Params, State]:
    """Return four free bodies in a row, 0.4 m apart, with a fixed joint, a slide and a hinge; they move as one."""
    end, begin = (0.2, *(0.0,) * (dim - 1)), (-0.2, *(0.0,) * (dim - 1))
    across = (0.0, 1.0, 0.0)[:dim]
    joints = (
        Joint("fixed", 0, 1, end, begin),
        Joint("prismatic", 1, 2, end, begin, axis=across, motor=True),
        Joint("revolute", 2, 3, end, begin, axis=None if dim == 2 else across, motor=True),
    )
    model = RigidBodies(dim, 0.002, ((),) * 4, joints=joints, sweeps=50)
    params = make_params(
        model,
        mass=[1.0, 2.0, 1.5, 0.5],
        inertia=np.tile([0.02, 0.03, 0.04][: model.spins], (4, 1)),
        joint_damping=[0.0, 0.1, 0.01],
        motor_strength=[20.0, 0.5],
    )
    position = np.array([[0.4 * body, 0.0, 0.0][:dim] for body in range(4)])
    spin = np.array([0.4, -0.3, 0.9][3 - model.spins :])
    velocity = np.cross(np.array([0, 0, *spin])[-3:], np.pad(position, ((0, 0), (0, 3 - dim))))[:, :dim]
    state = make_state(model, position=position, velocity=velocity, angular_velocity=np.tile(spin, (4, 1)))
    return model, params, state


@functools.cache
def driven_chain(dim: int) -> tuple[RigidBodies, Params, tuple[Array, ...]]:
    """Return a motion of the chain under random actions of its motors."""
    model, params, state = chain(dim)
    actions = np.random.default_rng(1).uniform(-1, 1, (300, 2))
    return model, params, run(model, params, state, 300, tensor(actions))


@pytest.mark.parametrize("dim", [2, 3])
def test_joints_motors_and_damping_change_no_momentum(dim: int) -> None:
    """Steps that conserve angular momentum to rounding: all in the plane, the variational one in space."""
    _, params, (x, q, v, w) = driven_chain(dim)
    m, moments = params.mass.data, params.inertia.data
    momentum = (m[:, None] * v).sum(axis=1)
    # Roundings of 300 steps add up.
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), rtol=0, atol=1e-12)
    if dim == 2:
        angular = (m * (x[..., 0] * v[..., 1] - x[..., 1] * v[..., 0]) + (moments * w)[..., 0]).sum(axis=1)
    else:
        turns = Rotation.from_quat(np.roll(q, -1, axis=-1).reshape(-1, 4))
        of_turns = turns.apply(np.tile(moments, (len(x), 1)) * turns.inv().apply(w.reshape(-1, 3).copy()))
        angular = (m[:, None] * np.cross(x, v) + of_turns.reshape(x.shape)).sum(axis=1)
    np.testing.assert_allclose(angular, np.broadcast_to(angular[0], angular.shape), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_fixed_joint_allows_no_motion_and_a_slide_and_a_hinge_allow_one(dim: int) -> None:
    """Errors of constrained motions stay small, [m] or [rad]; free motions are large."""
    model, _, (x, q, _, w) = driven_chain(dim)
    errors = [
        JointRows.apply(model, model.joint_correction / model.dt, tensor(x[k]), tensor(q[k]), arms(model))[1].data
        for k in range(0, 301, 20)
    ]
    assert abs(np.array(errors)).max() * model.dt / model.joint_correction < 1e-5
    assert abs(w[:, 3] - w[:, 2]).max() > 0.1
    assert np.ptp(np.linalg.norm(x[:, 2] - x[:, 1], axis=-1)) > 0.01
