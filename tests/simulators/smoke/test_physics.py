"""Flows with known solutions or properties: decaying vortices, conservation, inflow and outflow, drag of a body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.rollout import rollout
from simphys.simulators.smoke import Params, Smoke, State
from simphys.simulators.smoke.sections import NamedFlowSection
from simphys.simulators.smoke.shapes import distance

from .flows import velocity


def start(model: Smoke, u: np.ndarray, **given: Any) -> tuple[Params, State]:
    """Build parameters and a state without smoke; parameters not given are 0."""
    dtype = runtime.real_dtype()
    params = {name: np.zeros(shape) + given.get(name, 0.0) for name, shape in model.param_shapes().items()}
    state = {name: np.zeros(shape) for name, shape in model.state_shapes().items()} | {"velocity": u}
    return (
        Params(**{name: tensor(values.astype(dtype)) for name, values in params.items()}),
        State(**{name: tensor(values.astype(dtype)) for name, values in state.items()}),
    )


def vortices(model: Smoke, speed: float, mean: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    flow = NamedFlowSection(flow="taylor_green", speed=speed)
    return np.stack([flow.compute(model, component) + mean[component] for component in range(2)])


def square(cells: int, steps: int, duration: float, **options: Any) -> Smoke:
    """Build a model of a periodic square of 1 m."""
    return Smoke((cells, cells), spacing=1 / cells, dt=duration / steps, **options)


def end(model: Smoke, u: np.ndarray, steps: int, **given: Any) -> np.ndarray:
    return rollout(model, *start(model, u, **given), steps=steps).final.velocity.data


def divergence(model: Smoke, u: np.ndarray) -> np.ndarray:
    """Compute the divergence times the spacing, on a staggered grid."""
    total = np.zeros(model.cells)
    for axis in range(model.dim):
        inside = u[axis][tuple([slice(n + (a == axis)) for a, n in enumerate(model.cells)])]
        total += (
            np.diff(inside, axis=axis)
            if model.faces[axis] > model.cells[axis]
            else np.roll(u[axis], -1, axis) - u[axis]
        )
    return total


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_taylor_green_vortices_decay_by_viscosity(grid: str) -> None:
    nu, duration, steps = 0.01, 0.5, 128
    model = square(64, steps, duration, grid=grid, projection="fft")
    u = vortices(model, 0.5)
    after = end(model, u, steps, viscosity=nu)
    expected = np.exp(-2 * nu * (2 * np.pi) ** 2 * duration) * u
    assert np.linalg.norm(after - expected) < 0.01 * np.linalg.norm(expected)


def energy(u: np.ndarray) -> float:
    return float((u * u).sum())


def test_an_inviscid_flow_loses_energy_with_the_first_power_of_the_time_step_whatever_the_grid() -> None:
    """Splitting advection and projection has this effect (Zehnder, Narain and Thomaszewski 2018)."""

    def loss(cells: int, steps: int, **options: Any) -> float:
        model = square(cells, steps, 0.5, projection="fft", **options)
        u = vortices(model, 1.0)
        return 1 - energy(end(model, u, steps)) / energy(u)

    coarse, fine = loss(64, 50), loss(64, 100)
    assert 1.85 < coarse / fine < 2.15
    assert 0 < fine < 0.05
    assert loss(32, 50) == pytest.approx(coarse, rel=0.03)
    assert loss(64, 100, advection="semi_lagrangian") > 4 * fine  # numerical diffusion adds to it


def test_momentum_of_an_inviscid_flow_is_kept_the_better_the_finer_grid_and_step() -> None:
    """The error is of second order or better, as this form of advection is not conservative."""

    def change(cells: int) -> float:
        steps = 25 * cells // 16
        model = square(cells, steps, 0.5, projection="fft")
        u = vortices(model, 1.0, mean=(0.5, 0.3))
        return float(abs((end(model, u, steps) - u).mean(axis=(1, 2))).max())

    coarse, middle, fine = change(16), change(32), change(64)
    assert coarse > 4 * middle > 16 * fine
    assert fine < 1e-4


@pytest.mark.parametrize("projection", ["multigrid", "conjugate_gradients"])
def test_a_step_leaves_no_more_divergence_than_the_tolerance(projection: str) -> None:
    sides = ("inflow", "open", "closed", "closed")
    model = Smoke((24, 16), 0.1, 0.02, sides, projection=projection, tolerance=1e-7, has_obstacle=True)
    u = velocity(model).data
    given = np.zeros((4, 2))
    given[0, 0] = 1.0
    ball = distance(model, [0.8, 0.75], 0.3)
    after = end(model, u, 1, viscosity=1e-3, boundary_velocity=given, obstacle=ball)
    assert np.linalg.norm(divergence(model, after)) < 1e-7 * np.linalg.norm(divergence(model, u))
    np.testing.assert_array_equal(after[0, 0, :16], 1.0)
    assert after[0, -1, :16].sum() == pytest.approx(16.0, rel=1e-6)  # outflow equals inflow


def test_a_ball_in_a_stream_takes_momentum_along_it_and_the_fluid_flows_around() -> None:
    sides = ("inflow", "open", "closed", "closed")
    model = Smoke((48, 32), 0.1, 0.02, sides, slip=True, has_obstacle=True)
    u = np.zeros((2, *model.faces))
    u[0, :, :32] = given = 1.0
    boundary = np.zeros((4, 2))
    boundary[0, 0] = given
    ball = distance(model, [1.6, 1.6], 0.5)
    params, state = start(model, u, obstacle=ball, boundary_velocity=boundary, viscosity=2e-2)
    states = rollout(model, params, state, steps=100).states
    force = states.force.data[50:]
    assert (force[:, 0] > 0.2).all()
    assert abs(force[:, 1]).max() < 1e-5 * force[:, 0].max()  # by symmetry
    after = states.velocity.data[-1]
    inside = ball < -0.15
    assert abs(after[0, :48, :32][inside]).max() < 0.1 and abs(after[1, :48, :32][inside]).max() < 0.1
    beside = after[0, 16, [4, 27]]
    assert (beside > 1.1).all()  # faster than the stream
