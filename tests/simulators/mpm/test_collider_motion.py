"""The motion of colliders over a step, and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.collider_motion import MoveColliders
from simphys.simulators.mpm.model import MPM

from ...helpers.rounding import assert_equal_but_for_rounding
from . import substeps
from .grids import grid


def bodies(dim: int, count: int = 2) -> MPM:
    return grid((8,) * dim, *[Collider("sphere", (0.1,))] * count)


def motion_of(model: MPM) -> Any:
    def moved(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        return substeps.move_colliders(model, *inputs)

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
    assert_equal_but_for_rounding(position.data, c.data + model.dt * v.data, ulps=4)
    assert_equal_but_for_rounding(rotation.data, q.data + model.dt * omega.data, ulps=4)


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
    assert_equal_but_for_rounding(np.linalg.norm(inputs[1].data, axis=1), np.ones(2))


def test_spin_is_in_the_frame_of_the_world() -> None:
    """Rotate a body that lies on its side by a quarter turn about the world's z axis."""
    model = bodies(3, 1)
    side = tensor([[np.cos(np.pi / 4), np.sin(np.pi / 4), 0.0, 0.0]])
    spin = tensor([[0.0, 0.0, np.pi / 2 / model.dt]])
    _, q = motion_of(model)(tensor(np.zeros((1, 3))), side, tensor(np.zeros((1, 3))), spin)
    half = np.sqrt(0.5)
    assert_equal_but_for_rounding(q.data[0], [half * half] * 4, ulps=64)


def test_a_forgotten_term_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    backward = MoveColliders.backward

    def forgetful(ctx: Any, *adj: Tensor) -> Any:
        *others, adj_spin, _ = backward(ctx, *adj)
        return *others, adj_spin * (1 + 1e-4), None

    monkeypatch.setattr(MoveColliders, "backward", staticmethod(forgetful))
    model = bodies(3)
    with pytest.raises(GradcheckError, match="input 3"):
        gradcheck(motion_of(model), inputs_of(model), tolerance=1e-6)
