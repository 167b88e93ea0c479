"""Drag of the air against closed forms, with its derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, no_grad, tensor
from simphys.autograd.compose.functional import jacobian
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout
from simphys.simulators.mass_spring.air import Resist
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from .systems import system


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model, params, state = system(dim, air=True)

    def resist(v: Tensor, m: Tensor, k: Tensor) -> Tensor:
        return Resist.apply(model, v, m, k, 0.3)

    inputs = state.velocity, params.mass, params.air_drag
    gradcheck(resist, inputs, tolerance=1e-7)
    dot_product_test(resist, inputs, tolerance=1e-13)


def test_the_derivative_of_a_node_at_rest_is_that_without_air() -> None:
    model, params, _ = system(2, nodes=2, springs=1, air=True)
    at_rest = tensor(np.zeros((2, 2)), requires_grad=True)
    for mode in ("forward", "reverse"):
        by_v, by_k = jacobian(
            lambda v, k: Resist.apply(model, v, params.mass, k, 0.3), (at_rest, params.air_drag), mode=mode
        )
        np.testing.assert_array_equal(by_v.reshape(4, 4), np.eye(4))
        assert not by_k.any()


def fall(dt: float, steps: int, *, integrator: str = "velocity_verlet", velocity: tuple[float, float]) -> State:
    """A ball of 3 g with a drag of 2e-3 kg/m, which is thrown: its states, [steps + 1, 1, 2]."""
    model = MassSpring(np.zeros((0, 2), np.int32), np.array([False]), 2, dt, integrator, air=True)
    none = tensor(np.zeros(0))
    params = Params(none, none, none, tensor([3e-3]), tensor([0.0]), tensor([0.0, -9.81]), air_drag=tensor([2e-3]))
    with no_grad():
        return rollout(model, params, State(tensor([[0.0, 0.0]]), tensor([velocity])), steps=steps).states


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit_euler", 1), ("velocity_verlet", 2)])
def test_a_falling_ball_approaches_its_terminal_speed(integrator: str, order: int) -> None:
    """v = -u tanh(g t / u) with u^2 = m g / k; the error falls with the integrator's order."""
    u, time = np.sqrt(3e-3 * 9.81 / 2e-3), 0.8
    errors = []
    for steps in (80, 160):
        v = fall(time / steps, steps, integrator=integrator, velocity=(0.0, 0.0)).velocity.data[-1, 0, 1]
        errors.append(abs(v + u * np.tanh(9.81 * time / u)))
    assert 0.8 * 2**order < errors[0] / errors[1] < 1.2 * 2**order and errors[1] < 0.02 * u


def test_a_throw_with_drag_is_of_second_order() -> None:
    """Both components slow each other down; the reference has a step of an eighth."""
    ends = [fall(0.4 / n, n, velocity=(9.0, 6.0)).position.data[-1, 0] for n in (20, 40, 320)]
    errors = [np.linalg.norm(each - ends[2]) for each in ends[:2]]
    assert 3.5 < errors[0] / errors[1] < 4.6 and errors[1] < 1e-3


def test_drag_stays_stable_however_strong_it_is() -> None:
    states = fall(10.0, 50, velocity=(1e4, 0.0))
    speed = abs(states.velocity.data[:, 0, 0])
    assert (np.diff(speed) <= 0).all() and speed[-1] < 1.0
