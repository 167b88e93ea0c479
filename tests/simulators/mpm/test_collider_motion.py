"""The motion of colliders, and its adjoint over a step and over a horizon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.simulators.mpm import collider_motion
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.collider_motion import MoveColliders
from simphys.simulators.mpm.model import MPM

from .grids import grid


def bodies(dim: int, count: int = 2) -> MPM:
    return grid((8,) * dim, *[Collider("sphere", (0.1,))] * count)


def motion_of(model: MPM) -> Any:
    def moved(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        return MoveColliders.apply(model, *inputs)

    return moved


def inputs_of(model: MPM, *, spin: float = 20.0) -> list[Tensor]:
    """Draw poses, velocities and spins; the quaternions are not of unit length."""
    random, K = np.random.default_rng(0), len(model.colliders)
    widths = (model.dim, model.rotations, model.dim, model.spins)
    values = [random.normal(size=(K, width)) for width in widths]
    values[3] *= spin
    return [tensor(value, requires_grad=True) for value in values]


@pytest.mark.parametrize("spin", [20.0, 1.0, 0.0], ids=["fast", "slow", "none"])
@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int, spin: float) -> None:
    """Zero spin is included: the axis of rotation is undefined there, but the rotation is smooth."""
    model = bodies(dim)
    gradcheck(motion_of(model), inputs_of(model, spin=spin), tolerance=1e-6)
    dot_product_test(motion_of(model), inputs_of(model, spin=spin), tolerance=1e-13)


def test_the_centre_drifts_and_an_angle_grows() -> None:
    model = bodies(2)
    c, q, v, omega = inputs_of(model)
    position, rotation = motion_of(model)(c, q, v, omega)
    np.testing.assert_allclose(position.data, c.data + model.dt * v.data, rtol=1e-15)
    np.testing.assert_allclose(rotation.data, q.data + model.dt * omega.data, rtol=1e-15)


@pytest.mark.gpu
def test_a_body_that_spins_about_an_axis_turns_by_the_angle_about_it() -> None:
    """The angle about z grows from 0.4 to 0.4 + 60 * 0.02 * 1.5, exactly for any number of steps."""
    model = bodies(3, 1)
    q = tensor([[np.cos(0.2), 0.0, 0.0, np.sin(0.2)]])
    c, still, spin = tensor(np.zeros((1, 3))), tensor(np.zeros((1, 3))), tensor([[0.0, 0.0, 1.5]])
    for _ in range(60):
        c, q = motion_of(model)(c, q, still, spin)
    angle = 0.4 + 60 * model.dt * 1.5
    np.testing.assert_allclose(q.data[0], [np.cos(angle / 2), 0, 0, np.sin(angle / 2)], atol=1e-5)


def test_a_quaternion_stays_of_length_one() -> None:
    model = bodies(3)
    inputs = inputs_of(model)
    for _ in range(100):
        inputs[:2] = motion_of(model)(*inputs)
    np.testing.assert_allclose(np.linalg.norm(inputs[1].data, axis=1), 1.0, rtol=1e-15)


def test_spin_is_in_the_frame_of_the_world() -> None:
    """Rotate a body that lies on its side by a quarter turn about the world's z axis."""
    model = bodies(3, 1)
    side = tensor([[np.cos(np.pi / 4), np.sin(np.pi / 4), 0.0, 0.0]])
    spin = tensor([[0.0, 0.0, np.pi / 2 / model.dt]])
    _, q = motion_of(model)(tensor(np.zeros((1, 3))), side, tensor(np.zeros((1, 3))), spin)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(q.data[0], [half * half, half * half, half * half, half * half], rtol=1e-14)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_horizon_in_two_launches_is_its_steps(dim: int) -> None:
    """Check forward, adjoint (with direct adjoints of each state) and tangent, as the fused loops launch them."""
    model, steps, K = bodies(dim), 5, 2
    c, q, *_ = inputs_of(model)
    random = np.random.default_rng(1)
    v = tensor(random.normal(size=(steps, K, dim)), requires_grad=True)
    omega = tensor(5 * random.normal(size=(steps, K, model.spins)), requires_grad=True)
    poses = [(c, q)]
    for t in range(steps):
        poses.append(motion_of(model)(*poses[-1], v[t], omega[t]))
    seeds = [random.normal(size=(steps + 1, *x.shape)) for x in (c, q)]
    total = sum(
        ((x * s[t]).sum() for t, pose in enumerate(poses) for x, s in zip(pose, seeds, strict=True)), tensor(0.0)
    )
    total.backward()

    kernels = collider_motion.kernels(runtime.real(), dim)
    position, rotation = (np.zeros((steps + 1, *x.shape)) for x in (c, q))
    position[0], rotation[0] = c.data, q.data
    flatten = [x.reshape(-1) for x in (position, rotation, v.data, omega.data)]
    for start, count in ((0, 2), (2, 3)):
        kernels.forward(*flatten, model.dt, K, start, count)
    np.testing.assert_allclose(position[-1], poses[-1][0].data, rtol=1e-14)
    np.testing.assert_allclose(rotation[-1], poses[-1][1].data, rtol=1e-14)

    adj = [seed.reshape(-1).copy() for seed in seeds] + [np.zeros(v.data.size), np.zeros(omega.data.size)]
    for start, count in ((2, 3), (0, 2)):
        kernels.adjoint(flatten[1], flatten[3], model.dt, K, start, count, *adj)
    gradients = [x.grad.data.ravel() for x in (c, q, v, omega) if x.grad is not None]
    for found, expected in zip(adj, gradients, strict=True):
        np.testing.assert_allclose(found[: expected.size], expected, rtol=1e-12, atol=1e-14)

    d = [np.zeros_like(x) for x in flatten]
    for x in d[2:]:
        x[:] = random.normal(size=x.shape)
    for x, first in ((d[0], c), (d[1], q)):
        x[: first.data.size] = random.normal(size=first.data.size)
    given = [x[: g.size].copy() for x, g in zip(d, gradients, strict=True)]
    for start, count in ((0, 2), (2, 3)):
        kernels.tangent(flatten[1], flatten[3], model.dt, K, start, count, *d)
    pushed = sum(float(x @ seed.ravel()) for x, seed in zip(d[:2], seeds, strict=True))
    np.testing.assert_allclose(pushed, sum(float(x @ g) for x, g in zip(given, gradients, strict=True)), rtol=1e-12)


def test_a_forgotten_term_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    backward = MoveColliders.__dict__["backward"].__func__

    def forgetful(ctx: Any, *adj: Tensor) -> Any:
        *others, adj_spin = backward(ctx, *adj)
        return *others, adj_spin * (1 + 1e-4)

    monkeypatch.setattr(MoveColliders, "backward", staticmethod(forgetful))
    model = bodies(3)
    with pytest.raises(GradcheckError, match="input 3"):
        gradcheck(motion_of(model), inputs_of(model), tolerance=1e-6)
