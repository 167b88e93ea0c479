"""Physics of pendulums, independent of the implementation."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import ellipk

from simphys.autograd import Tensor, no_grad, tensor
from simphys.rollout import rollout
from simphys.simulators.pendulum import Chain, Spherical, chain, spherical

from ...helpers.rounding import assert_equal_but_for_rounding
from .chains import chain as random_chain
from .chains import energy
from .sphericals import spherical as random_spherical

AT_THE_END: dict[str, Any] = {"centre": 1.0, "inertia": 0.0}
ORDERS = pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("variational", 2)])


def run(case: Any, steps: int, control: Tensor | None = None) -> Any:
    """Compute all states."""
    with no_grad():
        return rollout(*case, steps=steps, control=control)


def swing(integrator: str, dt: float, *, amplitude: float, k: float = 2.0) -> tuple[Chain, chain.Params, chain.State]:
    """Make one link of length 0.5 m and mass 3 kg, released at rest: theta'' = -k sin(theta)."""
    params = chain.Params(*[tensor(each) for each in ([0.5], [3.0], [0.0], 0.5 * k, 0.0)])
    return Chain(1, dt, integrator), params, chain.State(tensor([amplitude]), tensor([0.0]))


@ORDERS
def test_one_swing_takes_the_period_of_the_elliptic_integral(integrator: str, order: int) -> None:
    """The period is T = 4 K(sin^2(amplitude / 2)) / sqrt(k); the error falls with the integrator's order."""
    amplitude, k = 2.5, 2.0
    period = 4 * ellipk(np.sin(amplitude / 2) ** 2) / np.sqrt(k)
    errors = []
    for steps in (800, 1600, 3200):
        after = run(swing(integrator, period / steps, amplitude=amplitude), steps).final
        errors.append(np.hypot(after.angle.data[0] - amplitude, after.rate.data[0]))
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([2.0**order] * 2, rel=0.1)
    assert errors[-1] < {4: 1e-10, 2: 1e-4}[order]


def test_one_link_moves_as_a_pendulum_with_k_and_c_by_its_length_and_mass() -> None:
    """Only g/l and c/(m L^2) matter, and a tilt rotates everything."""
    start = chain.State(tensor([1.3]), tensor([-0.4]))
    tilted = chain.State(tensor([1.5]), tensor([-0.4]))
    model = Chain(1, 0.05)
    heavy = chain.Params(*[tensor(each) for each in ([2.0], [0.5], [0.2], 3.0, 0.2)])
    unit = chain.Params(*[tensor(each) for each in ([1.0], [1.0], [0.1], 1.5, 0.0)])
    found, expected = run((model, heavy, tilted), 100), run((model, unit, start), 100)
    # A hundred steps of four evaluations.
    assert_equal_but_for_rounding(found.angle.data - 0.2, expected.angle.data, ulps=2000)
    assert_equal_but_for_rounding(found.rate.data, expected.rate.data, ulps=2000)


@ORDERS
@pytest.mark.parametrize("friction", [False, True])
def test_the_error_of_a_driven_and_damped_chain_falls_with_the_integrators_order(
    integrator: str, order: int, friction: bool
) -> None:
    end, finals = 0.4, []
    for steps in (16, 32, 64, 128):
        case = random_chain(3, integrator, dt=end / steps, friction=friction)
        torque = tensor(np.tile([1.0, -2.0, 0.5], (steps, 1)))
        after = run(case, steps, torque).final
        finals.append(np.concatenate([after.angle.data, after.rate.data]))
    errors = [np.linalg.norm(a - b) for a, b in itertools.pairwise(finals)]
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([2.0**order] * 2, rel=0.2)


def test_dry_friction_and_drag_slow_a_flywheel_down_as_their_formulas_say() -> None:
    """Without gravity, J w' = -F takes equal amounts in equal times, and J w' = -a w^2 gives 1 / w the slope a / J."""
    J, steps = 0.4, 2000
    still = {"length": 1.0, "mass": 1.0, "centre": 0.0, "inertia": J, "damping": 0.0, "gravity": 0.0, "rate": 3.0}
    for integrator in ("rk4", "variational"):
        options: dict[str, Any] = {"dt": 0.001, "friction": True, **still}
        dry = random_chain(1, integrator, dry_friction=0.2, transition_rate=1e-5, drag=0.0, **options)
        wet = random_chain(1, integrator, dry_friction=0.0, drag=0.1, **options)
        assert run(dry, steps).final.rate.data == pytest.approx(3.0 - 0.2 / J * 2.0, abs=1e-4)
        assert run(wet, steps).final.rate.data == pytest.approx(1 / (1 / 3.0 + 0.1 / J * 2.0), rel=1e-6)


def chain_energies(integrator: str, steps: int) -> np.ndarray:
    """Energies of a free double pendulum with large but regular motion, in steps of 0.05 s."""
    model, params, _ = random_chain(
        2, integrator, dt=0.05, damping=0.0, length=1.0, mass=1.0, gravity=9.8, **AT_THE_END
    )
    motion = run((model, params, chain.State(tensor([0.9, 1.2]), tensor([0.0, 0.0]))), steps)
    return energy(params, motion.angle.data, motion.rate.data)


def test_without_damping_the_variational_integrator_keeps_the_energy_and_runge_kutta_loses_it() -> None:
    """Over 1000 s, the error of the variational integrator comes and goes, without a trend."""
    steps = 20000
    kept, faded = chain_energies("variational", steps), chain_energies("rk4", steps)
    scale = abs(kept[0])
    early, late = (abs(part - kept[0]).max() / scale for part in (kept[: steps // 4], kept[-steps // 4 :]))
    assert late < 1.2 * early < 0.05
    half, whole = (faded[0] - faded[steps // 2]) / scale, (faded[0] - faded[-1]) / scale
    assert whole > 1.4 * half > 0.002


@pytest.mark.parametrize("integrator", ["rk4", "variational"])
@pytest.mark.parametrize("friction", [False, True])
def test_joints_take_energy_where_they_turn_and_the_air_where_links_do(integrator: str, friction: bool) -> None:
    """Check dE/dt = -sum c_i (v_i - v_{i-1})^2 with further terms, integrated by the trapezoidal rule."""
    model, params, state = random_chain(3, integrator, dt=0.001, friction=friction)
    motion = run((model, params, state), 1000)
    turns = np.diff(motion.rate.data, prepend=0.0, axis=1)
    power = (params.damping.data * turns**2).sum(axis=1)
    if friction:
        rubbed = 2 / np.pi * params.dry_friction.data * np.arctan(turns / params.transition_rate.data) * turns
        power += (rubbed + params.drag.data * abs(motion.rate.data) ** 3).sum(axis=1)
    lost = np.sum(power[1:] + power[:-1]) / 2 * model.dt
    found = energy(params, motion.angle.data, motion.rate.data)
    assert found[0] - found[-1] == pytest.approx(lost, rel=1e-4)


def free(integrator: str, dt: float) -> tuple[Spherical, spherical.Params, spherical.State]:
    """Make a spherical pendulum without damping, under vertical gravity, that moves on an inclined orbit."""
    params = spherical.Params(*[tensor(each) for each in (0.7, 1.3, 0.0, [0.0, 0.0, -9.81])])
    direction = np.array([0.8, 0.0, -0.6])
    rate = np.array([1.5, 2.0, 2.0])  # perpendicular to it
    return Spherical(dt, integrator), params, spherical.State(tensor(direction), tensor(rate))


def spherical_energy(params: spherical.Params, motion: Any) -> np.ndarray:
    L, m, _, G = (each.data for each in params.tensors())
    return m * L * L * (motion.rate.data**2).sum(axis=1) / 2 - m * L * motion.direction.data @ G


@ORDERS
def test_the_error_of_the_spherical_pendulum_falls_with_the_integrators_order(integrator: str, order: int) -> None:
    end, finals = 0.6, []
    for steps in (20, 40, 80, 160):
        model, params, state = random_spherical(integrator, dt=end / steps)
        torque = tensor(np.tile([1.0, -2.0, 0.5], (steps, 1)))
        after = run((model, params, state), steps, torque).final
        finals.append(np.concatenate([after.direction.data, after.rate.data]))
    errors = [np.linalg.norm(a - b) for a, b in itertools.pairwise(finals)]
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([2.0**order] * 2, rel=0.2)


def test_the_variational_spherical_pendulum_keeps_the_invariants_of_the_motion() -> None:
    """Over 500 s, the sphere and the momentum about the vertical are kept to rounding, the energy without a trend."""
    model, params, state = free("variational", 0.01)
    motion = run((model, params, state), 50_000)
    d, w = motion.direction.data, motion.rate.data
    # Roundings of 50,000 steps add up, if all are of one sign.
    np.testing.assert_allclose(w[:, 2], w[0, 2], rtol=0, atol=1e-10)
    np.testing.assert_allclose((d * d).sum(axis=1), 1.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose((d * w).sum(axis=1), 0.0, rtol=0, atol=1e-10)
    error = abs(spherical_energy(params, motion) / spherical_energy(params, motion)[0] - 1)
    assert error[-12500:].max() < 1.1 * error[:12500].max() < 0.02


def test_runge_kutta_stays_on_the_sphere_and_loses_energy() -> None:
    model, params, state = free("rk4", 0.05)
    motion = run((model, params, state), 4000)
    d, w = motion.direction.data, motion.rate.data
    assert_equal_but_for_rounding((d * d).sum(axis=1), np.ones(len(d)), ulps=100)
    assert_equal_but_for_rounding((d * w).sum(axis=1), np.zeros(len(d)), ulps=100, size=abs(w).max())
    found = spherical_energy(params, motion)
    assert found[0] > found[2000] > found[-1]


@pytest.mark.parametrize("integrator", ["rk4", "variational"])
def test_a_spherical_pendulum_in_a_plane_is_a_chain_of_one(integrator: str) -> None:
    """The pendulum turns about the second axis, with the direction (sin, 0, -cos) of the chain's angle."""
    angle, rate, steps = 2.0, -0.7, 200
    round_trip = Spherical(0.005, integrator)
    params = spherical.Params(*[tensor(each) for each in (0.8, 1.5, 0.2, [0.0, 0.0, -9.81])])
    state = spherical.State(tensor([np.sin(angle), 0.0, -np.cos(angle)]), tensor([0.0, -rate, 0.0]))
    found = run((round_trip, params, state), steps, tensor(np.tile([0.0, -0.3, 0.0], (steps, 1))))
    plane = chain.Params(*[tensor(each) for each in ([0.8], [1.5], [0.2], 9.81, 0.0)])
    start = chain.State(tensor([angle]), tensor([rate]))
    expected = run((Chain(1, 0.005), plane, start), steps, tensor(np.full((steps, 1), 0.3)))
    near = 1e-6 if integrator == "rk4" else 1e-3
    np.testing.assert_allclose(found.direction.data[:, 0], np.sin(expected.angle.data[:, 0]), rtol=0, atol=near)
    np.testing.assert_allclose(-found.rate.data[:, 1], expected.rate.data[:, 0], rtol=0, atol=10 * near)


def test_a_long_chain_moves_too() -> None:
    """Both integrators agree about sixteen links."""
    ends = []
    for integrator in ("rk4", "variational"):
        model, params, _ = random_chain(16, integrator, dt=0.002, length=0.1, mass=0.2, damping=0.002)
        start = chain.State(tensor(np.full(16, 0.6)), tensor(np.zeros(16)))
        ends.append(run((model, params, start), 150).final.angle.data)
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=2e-3)
    assert np.ptp(ends[0]) > 0.05
