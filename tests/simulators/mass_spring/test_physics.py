"""Physics of a mass-spring system, independent of the implementation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from simphys.autograd import no_grad, tensor
from simphys.rollout import rollout
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import springs_only, system

BOTH = pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])


def run(case: tuple[MassSpring, Params, State], steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity at all steps."""
    with no_grad():
        result = rollout(*case, steps=steps)
    return result.position.data, result.velocity.data


def oscillator(**options: Any) -> tuple[MassSpring, Params, State]:
    """A unit mass, 0.1 m from rest, on a spring of 25 N/m to a fixed point: angular frequency 5 1/s."""
    return springs_only([[0, 1]], [[1.6], [0.0]], pinned=[1], stiffness=25.0, rest_length=1.5, **options)


def energies(case: tuple[MassSpring, Params, State], x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential (elastic and gravitational) energy at all steps [J]."""
    model, params, _ = case
    mass, gravity = params.mass.data, params.gravity.data
    a, b = model.ends.T
    stretch = np.linalg.norm(x[:, b] - x[:, a], axis=-1) - params.rest_length.data
    elastic = (params.stiffness.data * stretch**2 / 2).sum(axis=-1)
    return (mass * (v**2).sum(axis=-1) / 2).sum(axis=-1), elastic - (mass * (x @ gravity)).sum(axis=-1)


@BOTH
def test_the_period_of_a_mass_on_a_spring(integrator: str) -> None:
    """The period is 2 pi sqrt(m/k), up to the discretization error (omega dt)^2 / 24."""
    dt = 0.002
    x, _ = run(oscillator(integrator=integrator, dt=dt), 6500)
    y = x[:, 0, 0] - 1.5
    before = np.flatnonzero((y[:-1] > 0) & (y[1:] <= 0))
    crossings = dt * (before + y[before] / (y[before] - y[before + 1]))
    period = (crossings[-1] - crossings[0]) / (len(crossings) - 1)
    exact = 2 * math.pi * math.sqrt(1 / 25.0)
    assert len(crossings) == 11
    assert period == pytest.approx(exact * (1 - (5.0 * dt) ** 2 / 24), rel=2e-7)


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit_euler", 1), ("velocity_verlet", 2)])
def test_the_error_falls_with_the_integrators_order(integrator: str, order: int) -> None:
    errors = []
    for steps in (200, 400, 800):
        x, _ = run(oscillator(integrator=integrator, dt=2.0 / steps), steps)
        errors.append(abs(x[-1, 0, 0] - 1.5 - 0.1 * math.cos(5.0 * 2.0)))
    ratios = [coarse / fine for coarse, fine in itertools.pairwise(errors)]
    assert ratios == pytest.approx([2.0**order] * 2, rel=0.05)


def measure_order(errors: list[float]) -> list[float]:
    """Slopes of errors that belong to time steps each half as long as the one before."""
    return [math.log2(coarse / fine) for coarse, fine in itertools.pairwise(errors)]


@pytest.mark.parametrize(("damping", "drag"), [(1.5, 0.0), (0.0, 1.5), (0.9, 0.6), (8.0, 4.0)])
def test_velocity_verlet_stays_of_second_order_with_dashpots_and_drag(damping: float, drag: float) -> None:
    """The displacement and speed of a damped oscillator, of unit mass and stiffness 25, are exp(A t) of the start."""
    end = 2.0
    exact = expm(end * np.array([[0.0, 1.0], [-25.0, -damping - drag]])) @ [0.1, 0.0]
    errors = []
    for steps in (200, 400, 800):
        x, v = run(oscillator(integrator="velocity_verlet", dt=end / steps, damping=damping, drag=drag), steps)
        errors.append([abs(x[-1, 0, 0] - 1.5 - exact[0]), abs(v[-1, 0, 0] - exact[1])])
    for each in zip(*errors, strict=True):
        assert measure_order(list(each)) == pytest.approx([2.0] * 2, abs=0.1)


def falling(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """A node that falls on the ground, a spring, and slides while it rubs, for half a second."""
    ground = {"ground_stiffness": 40.0, "ground_friction": 0.3, "ground_height": 0.0}
    options: dict[str, Any] = {"velocity": [[1.0, 0.0]], "gravity": [0.0, -10.0], "integrator": "velocity_verlet"}
    return run(springs_only([], [[0.0, -0.05]], dt=0.5 / steps, **options | ground), steps)


def test_friction_with_the_ground_is_of_second_order_with_velocity_verlet() -> None:
    """Of a node with dv_x/dt = -mu k p v_x, v_x = exp(-mu k int p dt), at the depth p = g/k + (p_0 - g/k) cos(w t)."""
    w, still, end = math.sqrt(40.0), 10.0 / 40.0, 0.5
    exact = math.exp(-0.3 * 40.0 * (still * end + (0.05 - still) * math.sin(w * end) / w))
    errors = [abs(falling(steps)[1][-1, 0, 0] - exact) for steps in (20, 40, 80)]
    assert measure_order(errors) == pytest.approx([2.0] * 2, abs=0.1)


def test_strong_friction_with_the_ground_stops_a_node_without_a_blow_up() -> None:
    ground = {"ground_stiffness": 1000.0, "ground_friction": 1e3, "ground_height": 0.01}
    options: dict[str, Any] = {"velocity": [[1.0, 0.0]], "gravity": [0.0, -10.0], "integrator": "velocity_verlet"}
    x, v = run(springs_only([], [[0.0, 0.0]], dt=0.05, **options | ground), 20)
    assert abs(v[1:, 0, 0]).max() < 1e-100 and abs(x[-1, 0]).max() < 1e-12


@BOTH
def test_the_energy_of_an_undamped_system_stays_bounded(integrator: str) -> None:
    """The integrators are symplectic: over 10,000 steps the energy fluctuates without a trend."""
    case = springs_only(
        [[0, 1], [1, 2], [2, 0], [0, 3]],
        [[0.0, 0.0], [1.1, 0.0], [0.5, 0.8], [0.0, 1.0]],
        pinned=[3],
        stiffness=30.0,
        rest_length=1.0,
        gravity=[0.0, -1.0],
        integrator=integrator,
        dt=0.004,
    )
    kinetic, potential = energies(case, *run(case, 10_000))
    error = (kinetic + potential - kinetic[0] - potential[0]) / kinetic.max()
    assert abs(error).max() < 0.05
    assert abs(error[-1000:].mean() - error[:1000].mean()) < 0.005


@BOTH
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_springs_and_dashpots_conserve_momentum(integrator: str, dim: int) -> None:
    model, params, state = system(dim, integrator=integrator, ground=0.0, free=True)
    nodes = model.nodes
    params = params.replace(gravity=tensor(np.zeros(dim)), drag=tensor(np.zeros(nodes)))
    _, v = run((model, params, state), 500)
    momentum = (params.mass.data[:, None] * v).sum(axis=1)
    np.testing.assert_allclose(momentum, momentum[[0]].repeat(501, axis=0), rtol=0, atol=1e-13 * nodes)


@pytest.mark.parametrize(("integrator", "excess"), [("semi_implicit_euler", 1), ("velocity_verlet", 0)])
def test_free_fall(integrator: str, excess: int) -> None:
    """Velocity Verlet gives the exact g t^2 / 2; semi-implicit Euler falls further by g dt t / 2."""
    x, v = run(springs_only([], [[0.0, 0.0]], gravity=[0.0, -9.8], dt=0.01, integrator=integrator), 100)
    t = 0.01 * np.arange(101)
    assert_equal_but_for_rounding(x[:, 0, 1], -9.8 * t * (t + excess * 0.01) / 2, ulps=200)  # sums of 100 steps
    assert_equal_but_for_rounding(v[:, 0, 1], -9.8 * t, ulps=200)


@BOTH
def test_drag_slows_exponentially_and_exactly(integrator: str) -> None:
    case = springs_only([], [[0.0, 0.0, 0.0]], velocity=[[1.0, -2.0, 3.0]], drag=0.7, dt=0.1, integrator=integrator)
    _, v = run(case, 50)
    decay = np.exp(-0.7 * 0.1 * np.arange(51))
    np.testing.assert_allclose(v[:, 0], decay[:, None] * [[1.0, -2.0, 3.0]], rtol=1e-13)


@BOTH
def test_a_dashpot_makes_the_amplitude_decay(integrator: str) -> None:
    """The amplitude decays as exp(-c t / 2 m), at the damped frequency."""
    dt, c = 1e-4, 0.8
    x, _ = run(oscillator(integrator=integrator, dt=dt, damping=c), 20_000)
    t, rate = dt * np.arange(20_001), c / 2
    omega = math.sqrt(25.0 - rate**2)
    exact = 0.1 * np.exp(-rate * t) * (np.cos(omega * t) + rate / omega * np.sin(omega * t))
    np.testing.assert_allclose(x[:, 0, 0] - 1.5, exact, rtol=0, atol=1e-4)


@BOTH
def test_a_resting_node_sinks_into_the_ground_by_its_weight_over_the_stiffness(integrator: str) -> None:
    case = springs_only(
        [],
        [[0.0, 0.5]],
        gravity=[0.0, -9.8],
        drag=5.0,
        integrator=integrator,
        ground_height=0.4,
        ground_stiffness=490.0,
    )
    x, v = run(case, 2000)
    assert x[-1, 0].tolist() == pytest.approx([0.0, 0.4 - 9.8 / 490.0], rel=1e-12)
    assert abs(v[-1]).max() < 1e-12


def test_friction_slows_a_sliding_node_in_proportion_to_the_normal_force() -> None:
    """A node at its equilibrium depth slows down as dv/dt = -mu g v."""
    ground: dict[str, Any] = {"ground_height": 0.02, "ground_stiffness": 490.0, "ground_friction": 0.3}
    case = springs_only([], [[0.0, 0.0, 0.0]], velocity=[[2.0, -1.0, 0.0]], gravity=[0.0, 0.0, -9.8], **ground)
    _, v = run(case, 100)
    slowed = (1 - 0.01 * 0.3 * 9.8) ** np.arange(101)
    np.testing.assert_allclose(v[:, 0, :2], slowed[:, None] * [[2.0, -1.0]], rtol=1e-9)
    frictionless = case[0], case[1].replace(ground_friction=tensor(0.0)), case[2]
    np.testing.assert_array_equal(run(frictionless, 100)[1][:, 0, :2], [[2.0, -1.0]] * 101)


@BOTH
def test_pinned_nodes_never_move(integrator: str) -> None:
    """Their initial velocity has no effect."""
    model, params, state = system(3, integrator=integrator)
    x, v = run((model, params, state), 200)
    pinned = model.pinned
    np.testing.assert_array_equal(x[:, pinned], state.position.data[None, pinned].repeat(201, axis=0))
    assert not v[1:, pinned].any()
    assert abs(x[-1, ~pinned] - x[0, ~pinned]).min() > 0
