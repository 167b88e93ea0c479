"""The acceleration of a chain is that of Lagrange's equations, and its adjoint the transpose of its Jacobian."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.pendulum.chain import Params, State
from simphys.simulators.pendulum.chain.acceleration import Acceleration
from simphys.simulators.pendulum.integrators import make_zeros

from ....helpers.rounding import assert_equal_but_for_rounding
from ..chains import chain, energy, leaves, mass_matrix, numbers, unpacked


@pytest.mark.parametrize("links", [1, 2, 5])
def test_every_element_of_the_jacobian_is_right(links: int) -> None:
    model, params, state = chain(links)

    def acceleration(torque: Tensor, *inputs: Tensor) -> Tensor:
        params, state = unpacked(*inputs)
        return Acceleration.apply(model, *state.tensors(), torque, *params.tensors())

    inputs = (numbers(links), *leaves(params, state))
    gradcheck(acceleration, inputs, tolerance=1e-6)
    dot_product_test(acceleration, inputs, tolerance=1e-12)


def test_without_motors_too() -> None:
    model, params, state = chain(2)
    gradcheck(
        lambda *x: Acceleration.apply(model, *x[:2], make_zeros(2), *x[2:]), leaves(params, state), tolerance=1e-6
    )


@pytest.mark.parametrize("links", [1, 2, 5, 16])
def test_it_is_that_of_lagranges_equations(links: int) -> None:
    """Check d/dt dL/dv = dL/dx + torques, with L from the positions of the masses, differentiated numerically."""
    model, params, state = chain(links)
    torque = numbers(links)
    x, v, u, c = (each.data for each in (state.angle, state.rate, torque, params.damping))
    found = Acceleration.apply(model, state.angle, state.rate, torque, *params.tensors()).data

    def momentum(x: np.ndarray) -> np.ndarray:
        return mass_matrix(params, x) @ v

    def lagrangian(x: np.ndarray) -> float:
        return float(v @ momentum(x) - energy(params, x, v))

    eps = 1e-5
    steps = eps * np.eye(links)
    force = np.array([(lagrangian(x + step) - lagrangian(x - step)) / (2 * eps) for step in steps])
    moving = (momentum(x + eps * v) - momentum(x - eps * v)) / (2 * eps)
    joints = u - c * np.diff(v, prepend=0.0)
    expected = np.linalg.solve(mass_matrix(params, x), force + joints - np.append(joints[1:], 0.0) - moving)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * abs(expected).max())


def test_one_link_is_a_damped_pendulum() -> None:
    model, params, state = chain(1)
    L, m, c, g, e = (float(each.data.reshape(())) for each in params.tensors())
    x, v = state.angle.data, state.rate.data
    found = Acceleration.apply(model, state.angle, state.rate, make_zeros(1), *params.tensors()).data
    falls, slows = -g / L * np.sin(x - e), -c / (m * L * L) * v
    assert_equal_but_for_rounding(found, falls + slows, ulps=64, size=max(abs(falls), abs(slows)).item())


def test_a_chain_that_hangs_still_stays_so_and_a_motor_moves_two_links_apart() -> None:
    model, params, _ = chain(3, tilt=0.2)
    still = State(tensor([0.2] * 3), tensor([0.0] * 3))
    rest = Acceleration.apply(model, *still.tensors(), make_zeros(3), *params.tensors()).data
    pull = params.gravity.data / params.length.data.min()
    assert_equal_but_for_rounding(rest, 0 * rest, ulps=64, size=pull.item())
    params = Params(*[tensor(each.data) for each in params.tensors()])
    apart = Acceleration.apply(model, *still.tensors(), tensor([0.0, 1.0, 0.0]), *params.tensors()).data
    assert apart[0] < 0 < apart[1]
