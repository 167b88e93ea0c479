"""Physical properties that material points must have, whatever computes them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simphys.autograd import no_grad
from simphys.rollout import rollout
from simphys.simulators.mpm.laws.lame import coefficients

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import ALL, Array, Case, block

P_WAVE = (1 - 0.3) / ((1 + 0.3) * (1 - 2 * 0.3))
"""Compression modulus lambda + 2 mu for Young's modulus 1 and Poisson's ratio 0.3."""


def run(case: Case, steps: int, every: int = 1) -> dict[str, Array]:
    """Run a rollout and return every so many states, by field."""
    with no_grad():
        kept = list(range(0, steps + 1, every))
        return rollout(case.model, case.params, case.state, steps=steps, keep=kept).states.arrays()


def thrown(law: str, seed: int = 0) -> Case:
    """Build a strained body far from all walls, whose particles have random velocities."""
    case, random = block((24, 5), (32, 10), law=law), np.random.default_rng(seed)
    n = case.model.particles
    return case.starting(
        velocity=np.array([0.3, -0.1]) + 0.05 * random.normal(size=(n, 2)),
        affine=random.normal(size=(n, 2, 2)),
        deformation=np.eye(2) + 0.05 * random.normal(size=(n, 2, 2)),
        position=case.state.position.data + 0.005 * random.normal(size=(n, 2)),
    )


def momenta(case: Case, states: dict[str, Array]) -> tuple[Array, Array]:
    """Compute momentum [rows, 2] and angular momentum [rows], including that within particles."""
    m, x, v, C = case.params.mass.data, states["position"], states["velocity"], states["affine"]
    turning = x[..., 0] * v[..., 1] - x[..., 1] * v[..., 0]
    within = (C[..., 1, 0] - C[..., 0, 1]) * case.model.spacing**2 / 4
    return (m[:, None] * v).sum(axis=1), (m * (turning + within)).sum(axis=1)


@pytest.mark.parametrize("law", ALL)
def test_momentum_and_angular_momentum_are_conserved_to_rounding(law: str) -> None:
    case = thrown(law)
    states = run(case, 200, every=10)
    assert abs(states["deformation"][-1] - states["deformation"][0]).max() > 0.01
    momentum, angular = momenta(case, states)
    rounding = 200 * 20  # of steps, and of the sums of each
    assert_equal_but_for_rounding(momentum, momentum[[0]].repeat(21, axis=0), ulps=rounding)
    assert_equal_but_for_rounding(angular, angular[[0]].repeat(21), ulps=rounding)


def test_a_body_that_spins_goes_on_spinning() -> None:
    """Its angular velocity persists, and its angular momentum is conserved to rounding."""
    case = block((29, 5), (35, 11))
    x = case.state.position.data - case.state.position.data.mean(axis=0)
    W = np.array([[0.0, -1.0], [1.0, 0.0]])
    n = case.model.particles
    case = case.starting(velocity=x @ W.T, affine=np.broadcast_to(W, (n, 2, 2)).copy())
    states = run(case, 500, every=100)
    _, angular = momenta(case, states)
    np.testing.assert_allclose(angular, angular[0], rtol=1e-12)
    turn = np.linalg.svd((states["position"][-1] - states["position"][-1].mean(axis=0)).T @ x)
    R = turn[0] @ turn[2]
    assert math.atan2(R[1, 0], R[0, 0]) == pytest.approx(500 * case.model.dt, rel=0.03)


def test_a_body_falls_by_the_sum_that_the_integrator_makes_of_g() -> None:
    """Symplectic Euler gives g t (t + h) / 2 exactly, which is g t^2 / 2 to first order."""
    case = block((24, 8), (30, 11)).starting(gravity=[0.0, -1.0], velocity=np.tile([0.2, 0.0], (72, 1)))
    h, steps = case.model.dt, 300
    states = run(case, steps)
    t = h * np.arange(steps + 1)
    fallen = states["position"] - states["position"][0]
    np.testing.assert_allclose(fallen[..., 0], np.tile(0.2 * t[:, None], 72), rtol=0, atol=1e-12)
    np.testing.assert_allclose(fallen[..., 1], np.tile(-t[:, None] * (t + h)[:, None] / 2, 72), rtol=0, atol=1e-12)
    np.testing.assert_allclose(states["deformation"], np.broadcast_to(np.eye(2), (301, 72, 2, 2)), atol=1e-10)


@pytest.mark.parametrize("law", ["fixed_corotated", "neo_hookean", "hencky"])
def test_a_pulse_runs_along_a_bar_at_the_speed_of_compression_waves(law: str) -> None:
    """The speed is c^2 = (lambda + 2 mu) / density, as the bar fills the tank and cannot expand sideways."""
    c = math.sqrt(P_WAVE)
    case = block((0.5, 0.5), (62.5, 14.5), law=law, dt=0.02)
    x = case.state.position.data[:, 0] / case.model.spacing
    strain = 1e-4 * np.exp(-(((x - 18) / 4) ** 2))
    n = case.model.particles
    velocity, F, C = np.zeros((n, 2)), np.tile(np.eye(2), (n, 1, 1)), np.zeros((n, 2, 2))
    velocity[:, 0], F[:, 0, 0] = -c * strain, 1 + strain  # a pulse that runs only to the right
    C[:, 0, 0] = c * strain * 2 * (x - 18) / 16 / case.model.spacing
    states = run(case.starting(velocity=velocity, deformation=F, affine=C), 80, every=80)
    weight = states["velocity"][..., 0] ** 2
    centre = (weight * states["position"][..., 0]).sum(axis=1) / weight.sum(axis=1)
    assert (centre[1] - centre[0]) / (80 * case.model.dt) == pytest.approx(c, rel=0.03)
    assert abs(states["velocity"][-1, :, 1]).max() < 0.02 * abs(states["velocity"][-1, :, 0]).max()


def energy(case: Case, states: dict[str, Array]) -> Array:
    """Compute the kinetic energy, including that within particles, plus the fixed corotated elastic energy [J]."""
    m, V, dx = case.params.mass.data, case.params.volume.data, case.model.spacing
    mu, la = coefficients(np.array(1.0), np.array(0.3))
    F, v, C = states["deformation"], states["velocity"], states["affine"]
    s, J = np.linalg.svd(F, compute_uv=False), np.linalg.det(F)
    density = mu * ((s - 1) ** 2).sum(axis=-1) + la / 2 * (J - 1) ** 2
    motion = (v * v).sum(axis=-1) + (C * C).sum(axis=(-2, -1)) * dx**2 / 4
    return (m * motion / 2 + V * density).sum(axis=-1)


def test_a_body_that_oscillates_gains_no_energy() -> None:
    case = block((28, 4), (36, 12))
    n = case.model.particles
    F = np.tile(np.diag([1.1, 0.92]), (n, 1, 1))
    x = case.state.position.data
    case = case.starting(deformation=F, position=x.mean(axis=0) + (x - x.mean(axis=0)) @ F[0])
    found = energy(case, run(case, 2000, every=20))
    assert found[-1] > 0.02 * found[0]  # it does oscillate
    assert found.max() < 1.01 * found[0]
    assert found[50:].max() < found[:50].max()


def test_water_in_a_tank_settles_to_the_pressure_of_its_weight() -> None:
    depth, g = 8, 0.05
    case = block((2, 2), (62, 2 + depth), law="fluid", dt=0.01).starting(gravity=[0.0, -g])
    states = run(case, 3000, every=30)
    assert abs(states["velocity"][-1]).max() < 0.05
    J = np.linalg.det(states["deformation"])[50:].mean(axis=0)
    pressure = (J**-7 - 1) / 7
    column = (np.arange(case.model.particles) % (2 * depth) + 0.5) / 2 * case.model.spacing  # height
    expected = g * (depth * case.model.spacing - column)
    inner = (column > 0.1) & (column < 0.4)
    for height in np.unique(column[inner]):
        at = column == height
        assert pressure[at].mean() == pytest.approx(expected[at][0], rel=0.1)
    assert J.mean() == pytest.approx(1 - expected.mean(), rel=0.005)
