"""Physics of point charges, independent of the implementation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from simphys.autograd import Tensor, no_grad, tensor
from simphys.rollout import rollout
from simphys.simulators.charges import Charges, Params, State, step

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import system, two_bodies

BOTH = pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
Case = tuple[Charges, Params, State]


def run(case: Case, steps: int, control: Tensor | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity at all steps."""
    with no_grad():
        result = rollout(*case, steps=steps, control=control)
    return result.position.data, result.velocity.data


def energy(case: Case, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Kinetic and potential energy at all steps [J]."""
    q, m, k, s = (value.data for value in case[1].tensors())
    d = x[:, :, None] - x[:, None, :]
    potential = k * q[:, None] * q / np.sqrt((d * d).sum(axis=-1) + s**2)
    pairs = np.triu(np.ones((len(q), len(q)), bool), 1)
    return (m * (v * v).sum(axis=-1)).sum(axis=-1) / 2 + potential[:, pairs].sum(axis=-1)


@BOTH
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_momentum_is_conserved_to_rounding(integrator: str, dim: int) -> None:
    case = system(dim, bodies=20, integrator=integrator)
    _, v = run(case, 500)
    momentum = (case[1].mass.data[:, None] * v).sum(axis=1)
    np.testing.assert_allclose(momentum, momentum[[0]].repeat(501, axis=0), rtol=0, atol=5e-13)


@BOTH
def test_angular_momentum_is_conserved_to_rounding(integrator: str) -> None:
    case = system(2, bodies=10, integrator=integrator)
    x, v = run(case, 500)
    spin = (case[1].mass.data * (x[..., 0] * v[..., 1] - x[..., 1] * v[..., 0])).sum(axis=1)
    np.testing.assert_allclose(spin, spin[0], rtol=0, atol=1e-11)


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit_euler", 1), ("velocity_verlet", 2)])
def test_the_energy_error_is_bounded_and_falls_with_the_integrators_order(integrator: str, order: int) -> None:
    """Over some ten revolutions of an eccentric pair, the error comes and goes with each, without a trend."""
    errors = []
    for dt in (0.004, 0.002, 0.001):
        case = two_bodies(1.0, softening=0.2, speed=0.5, dt=dt, integrator=integrator)
        error = energy(case, *run(case, round(20 / dt)))
        error -= error[0]
        half = len(error) // 2
        assert abs(error[half:]).max() < 1.1 * abs(error[:half]).max()
        errors.append(abs(error).max())
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([2.0**order] * 2, rel=0.05)


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit_euler", 1), ("velocity_verlet", 2)])
def test_the_error_falls_with_the_integrators_order_on_a_circle(integrator: str, order: int) -> None:
    """Bodies of unit mass and opposite charge at distance d circle each other at w^2 = 2 / (d^2 + s^2)^(3/2)."""
    distance, softening, end = 1.0, 0.1, 2.0
    rate = math.sqrt(2 / (distance**2 + softening**2) ** 1.5)
    angle = rate * end
    exact = distance / 2 * np.array([math.cos(angle), math.sin(angle)])
    errors = []
    for steps in (400, 800, 1600):
        case = two_bodies(
            distance, softening=softening, speed=rate * distance / 2, dt=end / steps, integrator=integrator
        )
        errors.append(np.linalg.norm(run(case, steps)[0][-1, 1] - exact))
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([2.0**order] * 2, rel=0.05)


def test_velocity_verlet_runs_back_to_where_it_came_from() -> None:
    model, params, state = system(3, bodies=6, integrator="velocity_verlet")
    x, v = run((model, params, state), 100)
    back, _ = run((model, params, State(tensor(x[-1]), tensor(-v[-1]))), 100)
    np.testing.assert_allclose(back[-1], x[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("integrator", "excess"), [("semi_implicit_euler", 1), ("velocity_verlet", 0)])
def test_one_charge_falls_in_a_field(integrator: str, excess: int) -> None:
    """Velocity Verlet gives the exact q E t^2 / 2 m; semi-implicit Euler falls further by q E dt t / 2 m."""
    params = Params(tensor([-2.0]), tensor([0.5]), tensor(1.0), tensor(0.1))
    case = Charges(1, 2, 0.01, integrator), params, State(tensor([[0.0, 0.0]]), tensor([[0.0, 0.0]]))
    x, v = run(case, 100, tensor(np.tile([0.0, 3.0], (100, 1))))
    t, a = 0.01 * np.arange(101), -2.0 * 3.0 / 0.5
    assert_equal_but_for_rounding(x[:, 0, 1], a * t * (t + excess * 0.01) / 2, ulps=200)  # sums of 100 steps
    assert_equal_but_for_rounding(v[:, 0, 1], a * t, ulps=200)
    assert not x[:, 0, 0].any()


@BOTH
def test_a_field_of_one_step_acts_in_that_step(integrator: str) -> None:
    model, params, state = system(2, bodies=3, integrator=integrator)
    pulse = np.zeros((10, 2))
    pulse[4] = [1.0, -2.0]
    x, v = run((model, params, state), 10, tensor(pulse))
    undisturbed, _ = run((model, params, state), 10, tensor(0 * pulse))
    np.testing.assert_array_equal(x[:5], undisturbed[:5])
    kick = (model.dt * params.charge.data / params.mass.data)[:, None] * pulse[4]
    before, after = (each.data for each in run_of_one_step(model, params, x[4], v[4]))
    np.testing.assert_allclose(v[5] - after, kick, rtol=0, atol=2e-3 * abs(kick).max())
    assert abs(x[5] - before).max() > 0


def run_of_one_step(model: Charges, params: Params, x: np.ndarray, v: np.ndarray) -> tuple[Tensor, Tensor]:
    with no_grad():
        state = step(model, params, State(tensor(x), tensor(v)))
    return state.position, state.velocity
