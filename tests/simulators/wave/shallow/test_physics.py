"""Physical properties of shallow water: waves, vortices, conserved quantities, friction, rest."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.rollout import BlowUp, rollout
from simphys.simulators.wave.shallow import Params, ShallowWater, State
from simphys.simulators.wave.shallow.advance import advance
from simphys.simulators.wave.shallow.fluxes import add_up_height, compute_fluxes

from ....helpers.rounding import assert_equal_but_for_rounding
from .basins import basin

Array = np.ndarray[Any, Any]
GRAVITY = 9.81


def water(
    model: ShallowWater, depth: Any, elevation: Any, velocity: Any = 0.0, friction: float = 0.0
) -> tuple[Params, State]:
    """Build parameters and state from numbers or arrays."""
    shapes = model.state_shapes()
    params = Params(tensor(np.broadcast_to(depth, model.cells).copy()), tensor(GRAVITY), tensor(friction))
    start = {"elevation": elevation, "velocity": velocity}
    state = {name: tensor(np.broadcast_to(value, shapes[name]).copy()) for name, value in start.items()}
    return params, State(**state)


def final(model: ShallowWater, params: Params, state: State, time: float) -> tuple[Array, Array]:
    """Compute elevation and velocity after this time."""
    moved = rollout(model, params, state, steps=round(time / model.dt), keep="final").final
    return moved.elevation.data, moved.velocity.data


def places(model: ShallowWater) -> Array:
    """Compute the centres of the cells, [dim, *cells]."""
    return model.spacing * (np.indices(model.cells) + 0.5)


@pytest.mark.parametrize("waves", [(1,), (2, 1)], ids=["channel", "basin"])
def test_a_standing_wave_has_its_period_to_second_order(waves: tuple[int, ...]) -> None:
    """A seiche of small height: cos(k x) cos(omega t) with omega = |k| sqrt(g D), after 1.2 periods."""
    length, depth, height = 6.0, 0.8, 1e-7
    errors = []
    for n in (16, 32):
        k = np.pi * np.array(waves) / length
        omega = float(np.sqrt(GRAVITY * depth * (k @ k)))
        time, steps = 1.2 * 2 * np.pi / omega, 3 * n * max(waves)
        model = ShallowWater((n,) * len(waves), length / n, time / steps)
        shape = height * np.prod(np.cos([k_a * x for k_a, x in zip(k, places(model), strict=True)]), axis=0)
        elevation, _ = final(model, *water(model, depth, shape), time)
        errors.append(np.abs(elevation - shape * np.cos(omega * time)).max() / height)
    assert errors[1] < 0.02
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


def test_a_standing_wave_has_the_period_of_the_grid() -> None:
    """The grid gives omega = 2 sqrt(g D) / dx sin(k dx / 2) (Arakawa and Lamb 1977), up to the error in time."""
    n, length, depth = 12, 6.0, 0.8
    dx = length / n
    omega = 2 * math.sqrt(GRAVITY * depth) / dx * math.sin(3 * np.pi / length * dx / 2)
    time = 2 * np.pi / omega
    model = ShallowWater((n,), dx, time / 400)
    shape = 1e-7 * np.cos(3 * np.pi / length * places(model)[0])
    elevation, velocity = final(model, *water(model, depth, shape), time)
    np.testing.assert_allclose(elevation, shape, atol=1e-12)
    assert np.abs(velocity).max() < 1e-12


def vortex(
    n: int, length: float, size: float, swirl: float, stream: tuple[float, float], time: float
) -> tuple[Array, Array]:
    """Compute elevation and velocity of a vortex that a uniform stream has carried across a periodic plane."""
    face = np.arange(n) * length / n
    cell = face + length / n / 2

    def at(x: Array, y: Array) -> tuple[Array, Array, Array]:
        """Compute the displacement from the centre of the vortex, and exp(-r^2/2s^2)."""
        middle = length / 2 + np.array(stream) * time
        way = np.meshgrid(x - middle[0], y - middle[1], indexing="ij")
        dx, dy = [(d + length / 2) % length - length / 2 for d in way]
        return dx, dy, np.exp(-(dx**2 + dy**2) / (2 * size**2))

    elevation = -((swirl * size) ** 2) / (2 * GRAVITY) * at(cell, cell)[2] ** 2
    _, dy, weight_u = at(face, cell)
    dx, _, weight_v = at(cell, face)
    return elevation, np.stack([stream[0] - swirl * dy * weight_u, stream[1] + swirl * dx * weight_v])


def test_a_vortex_drifts_with_the_stream_to_second_order() -> None:
    """A swirl A r exp(-r^2/2s^2) keeps its shape, balanced by g h = g H - A^2 s^2/2 exp(-r^2/s^2)."""
    exact, time = functools.partial(vortex, length=8.0, size=0.9, swirl=1.2, stream=(0.8, -0.5)), 1.0
    errors = []
    for n in (32, 64):
        model = ShallowWater((n, n), 8.0 / n, time / n, ("periodic", "periodic"))
        found = final(model, *water(model, 1.0, *exact(n, time=0.0)), time)
        errors.append([np.abs(a - b).max() for a, b in zip(found, exact(n, time=time), strict=True)])
    assert errors[1][0] < 2e-3 and errors[1][1] < 0.01
    for coarse, fine in zip(*errors, strict=True):
        assert np.log2(coarse / fine) == pytest.approx(2, abs=0.25)


def test_the_step_in_time_is_of_second_order_with_friction_and_an_uneven_bottom() -> None:
    params, state = basin()[1:]

    def after(steps: int) -> Array:
        model = ShallowWater((4, 3), 0.5, 0.4 / steps, ("closed", "periodic"))
        return np.concatenate([x.reshape(-1) for x in final(model, params, state, 0.4)])

    coarse, middle, fine = after(8), after(16), after(32)
    ratio = np.abs(coarse - middle).max() / np.abs(middle - fine).max()
    assert 3.5 < ratio < 9  # second order for friction and nonlinear terms, third for linear waves


@pytest.mark.gpu
def test_the_volume_of_the_water_stays() -> None:
    model, params, state = basin()
    elevation, _ = final(model, params, state, 20 * model.dt)
    assert_equal_but_for_rounding(elevation.mean(), state.elevation.data.mean(), ulps=64, size=0.3)
    assert np.abs(elevation - state.elevation.data).max() > 0.05


def rates(model: ShallowWater, params: Params, state: State) -> float:
    """Compute the rate of change of the energy, relative to the rate of its exchange [1]."""
    u = state.velocity.data.copy()
    u[0][0] = 0.0  # at the wall
    height = add_up_height(model, state.elevation, params.depth)
    fluxes = compute_fluxes(model, state.elevation, tensor(u), height, params.gravity)
    rest = tensor(np.zeros_like(state.elevation.data)), tensor(np.zeros_like(u))
    delevation, dvelocity = advance(model, 1.0, *rest, fluxes)
    potential = float((fluxes[2].data * delevation.data).sum())
    kinetic = float((fluxes[0].data * dvelocity.data).sum())
    return (potential + kinetic) / abs(potential)


def test_waves_and_vortices_exchange_energy_and_lose_none() -> None:
    """The differences in space give dE/dt = sum H deta/dt + U.du/dt = 0 for any state."""
    model, params, state = basin()
    assert abs(rates(model, params, state)) < 1e-13


def energy(params: Params, elevation: Array, velocity: Array) -> float:
    """Compute 1/2 sum (g eta^2 + mean(h) u^2)."""
    height = params.depth.data + elevation
    kinetic = sum(float((0.5 * (height + np.roll(height, 1, a)) * u**2).sum()) for a, u in enumerate(velocity))
    return 0.5 * (float(params.gravity.data) * float((elevation**2).sum()) + kinetic)


def test_steps_in_time_lose_energy_to_third_order() -> None:
    params, state = basin()[1:]
    params = params.replace(friction=tensor(0.0))
    u = state.velocity.data.copy()
    u[0][0] = 0.0
    state = state.replace(velocity=tensor(u))
    before = energy(params, state.elevation.data, u)
    lost = []
    for steps in (20, 40):
        model = ShallowWater((4, 3), 0.5, 1.0 / steps, ("closed", "periodic"))
        lost.append(1 - energy(params, *final(model, params, state, 1.0)) / before)
    assert 0 < lost[1] < 1e-3
    assert np.log2(lost[0] / lost[1]) > 2.7


@pytest.mark.parametrize("velocity", [(1.5,), (1.2, -0.9)], ids=["channel", "plane"])
def test_friction_slows_a_uniform_flow_as_it_should(velocity: tuple[float, ...]) -> None:
    """The law 1/|u| = 1/|u_0| + c_f t / h holds exactly, for any time step."""
    dim = len(velocity)
    model = ShallowWater((4, 3)[:dim], 0.5, 0.05, ("periodic",) * dim)
    u = np.array(velocity).reshape(dim, *[1] * dim) * np.ones((dim, *model.cells))
    elevation, found = final(model, *water(model, 0.4, 0.1, u, friction=0.3), 1.0)
    slower = 1 / (1 + 0.3 * 1.0 * np.linalg.norm(velocity) / 0.5)
    np.testing.assert_allclose(found, u * slower, rtol=1e-13)
    np.testing.assert_allclose(elevation, 0.1, rtol=1e-13)


@pytest.mark.gpu
def test_a_lake_at_rest_stays_at_rest_over_any_bottom() -> None:
    model, params, _ = basin()
    resting = State(tensor(np.full(model.cells, 0.13)), tensor(np.zeros((2, *model.cells))))
    elevation, velocity = final(model, params, resting, 20 * model.dt)
    assert_equal_but_for_rounding(elevation, resting.elevation.data, ulps=20)
    driven = 20 * model.dt / model.spacing * float((params.gravity.data * resting.elevation.data).max())
    assert_equal_but_for_rounding(velocity, np.zeros_like(velocity), ulps=16, size=driven)


@pytest.mark.parametrize("cells", [(12,), (8, 8)], ids=["channel", "plane"])
def test_the_largest_time_step_is_sharp(cells: tuple[int, ...]) -> None:
    """The fastest wave, which alternates from cell to cell, stays bounded below the limit and grows beyond it."""
    heights = []
    for part in (0.99, 1.01):
        model = ShallowWater(cells, 0.1, 1.0, ("periodic",) * len(cells))
        ripple = 1e-9 * (-1.0) ** np.indices(cells).sum(axis=0)
        params, state = water(model, 0.5, ripple)
        limit = model.step_limits(params.arrays(), state.arrays())[0].dt
        model = ShallowWater(cells, 0.1, part * limit, ("periodic",) * len(cells))
        heights.append(np.abs(final(model, params, state, 200 * model.dt)[0]).max() / 1e-9)
    assert heights[0] < 0.5 and heights[1] > 2


@pytest.mark.parametrize("mode", ["fused", "nested"])
def test_water_that_falls_dry_stops_the_rollout_and_names_the_cell(mode: Any) -> None:
    model = ShallowWater((10,), 0.5, 0.02)
    depth = np.full(10, 0.5)
    depth[7] = 0.02
    params, state = water(model, depth, -0.4 * np.exp(-((np.arange(10) - 4.0) ** 2)))
    with pytest.raises(BlowUp, match=r"Cell \[7\] has the least water, .* of 0\.02 at rest\. Deepen the bottom there"):
        rollout(model, params, state, steps=200, mode=mode)


def test_a_time_step_that_is_too_large_is_reported() -> None:
    model = ShallowWater((10,), 0.5, 0.5)
    params, state = water(model, 0.5, 1e-3 * (-1.0) ** np.arange(10))
    with pytest.raises(BlowUp, match=r"Lower time\.dt below 0\.\d+, the largest stable step at the start"):
        rollout(model, params, state, steps=400)
