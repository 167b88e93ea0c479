"""The acceleration of a chain is that of Lagrange's equations, and its adjoint the transpose of its Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.pendulum.chain import Chain, Params, State
from simphys.simulators.pendulum.chain.acceleration import Acceleration
from simphys.simulators.pendulum.chain.friction import SlowDown
from simphys.simulators.pendulum.chain.loads import TurnJoints
from simphys.simulators.pendulum.integrators import make_zeros

from ....helpers.rounding import assert_equal_but_for_rounding
from ..chains import chain, energy, friction_of, mass_matrix, moments, numbers


def accelerate(model: Chain, params: Params, state: State, torque: Tensor) -> np.ndarray:
    """The acceleration under motor torques, by the sub-steps of a step."""
    load = TurnJoints.apply(model, state.rate, torque, params.damping)
    if model.friction:
        load = load + SlowDown.apply(model, state.rate, *friction_of(params))
    inertia = params.length, *moments(model, params)
    found = Acceleration.apply(model, *state.tensors(), load, *inertia, params.gravity, params.tilt)
    return np.asarray(found.data)


@pytest.mark.parametrize("links", [1, 2, 5])
def test_every_element_of_the_jacobian_is_right(links: int) -> None:
    model, params, state = chain(links)
    inertia = params.length, *moments(model, params)
    check(
        lambda *x: Acceleration.apply(model, *x),
        *state.tensors(), numbers(links), *inertia, params.gravity, params.tilt,
    )  # fmt: skip
    check(lambda *x: TurnJoints.apply(model, *x), state.rate, numbers(links), params.damping)


def check(function: Any, *inputs: Tensor) -> None:
    gradcheck(function, inputs, tolerance=1e-6)
    dot_product_test(function, inputs, tolerance=1e-12)


@pytest.mark.parametrize("links", [1, 2, 5, 16])
def test_it_is_that_of_lagranges_equations(links: int) -> None:
    """Check d/dt dL/dv = dL/dx + torques, with L from the positions of the masses, differentiated numerically."""
    model, params, state = chain(links, friction=True)
    torque = numbers(links)
    x, v, u, c = (each.data for each in (state.angle, state.rate, torque, params.damping))
    F, w, a = (each.data for each in friction_of(params))
    found = accelerate(model, params, state, torque)

    def momentum(x: np.ndarray) -> np.ndarray:
        return mass_matrix(params, x) @ v

    def lagrangian(x: np.ndarray) -> float:
        return float(v @ momentum(x) - energy(params, x, v))

    eps = 1e-5
    steps = eps * np.eye(links)
    force = np.array([(lagrangian(x + step) - lagrangian(x - step)) / (2 * eps) for step in steps])
    moving = (momentum(x + eps * v) - momentum(x - eps * v)) / (2 * eps)
    turn = np.diff(v, prepend=0.0)
    joints = u - c * turn - 2 / np.pi * F * np.arctan(turn / w)
    load = joints - np.append(joints[1:], 0.0) - a * abs(v) * v
    expected = np.linalg.solve(mass_matrix(params, x), force + load - moving)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * abs(expected).max())


def test_one_link_is_a_damped_pendulum() -> None:
    model, params, state = chain(1, centre=1.0, inertia=0.0)
    L, m, c, g, e = (float(each.data.reshape(())) for each in params.tensors()[:5])
    x, v = state.angle.data, state.rate.data
    found = accelerate(model, params, state, make_zeros(1))
    falls, slows = -g / L * np.sin(x - e), -c / (m * L * L) * v
    assert_equal_but_for_rounding(found, falls + slows, ulps=64, size=max(abs(falls), abs(slows)).item())


def test_a_rod_swings_as_a_point_mass_at_two_thirds_of_its_length() -> None:
    model, params, state = chain(1, length=0.9, mass=2.0, centre=0.5, inertia=2.0 * 0.9**2 / 12, damping=0.0)
    expected = -params.gravity.data / 0.6 * np.sin(state.angle.data - params.tilt.data)
    assert_equal_but_for_rounding(accelerate(model, params, state, make_zeros(1)), expected, ulps=64)


def test_a_chain_that_hangs_still_stays_so_and_a_motor_moves_two_links_apart() -> None:
    model, params, _ = chain(3, tilt=0.2, friction=True)
    still = State(tensor([0.2] * 3), tensor([0.0] * 3))
    rest = accelerate(model, params, still, make_zeros(3))
    pull = params.gravity.data / params.length.data.min()
    assert_equal_but_for_rounding(rest, 0 * rest, ulps=64, size=pull.item())
    apart = accelerate(model, params, still, tensor([0.0, 1.0, 0.0]))
    assert apart[0] < 0 < apart[1]
