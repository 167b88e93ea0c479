"""The stability limit, compared with a linearised step of MLS-MPM in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.rollout.stability import advise_step, require_stable_step
from simphys.scenefile import from_dict
from simphys.simulators.mpm import MPM, Params, State
from simphys.simulators.mpm.scene import MPMConfig
from simphys.simulators.mpm.stability import advice

MATERIAL = {"young_modulus": 250.0, "poisson_ratio": 0.25}
"""Parameters for which mu = lambda = 100 Pa."""


ROUNDING = 1e-6
"""Error of a defective eigenvalue 1, which is the square root of the rounding error of a number."""


def spread_of_step(position: np.ndarray, dt: float, *, mu: float, la: float) -> float:
    """Compute the largest |eigenvalue| of a step about rest, dx = mass = volume = 1, for particles at position [n, 2].

    The vector that a step maps holds v [2], C [4] and e [4] of each particle.
    """
    base = np.floor(position - 0.5)
    gather: dict[tuple[int, int], list[tuple[int, float, np.ndarray]]] = {}
    for p, x in enumerate(position):
        for offset in np.ndindex(3, 3):
            node = base[p] + offset
            d = np.abs(node - x)
            weight = np.prod(np.where(d < 0.5, 0.75 - d**2, 0.5 * (1.5 - d) ** 2))
            gather.setdefault((int(node[0]), int(node[1])), []).append((p, float(weight), node - x))
    n = len(position)
    to_v, to_C = np.zeros((2 * n, 2 * len(gather))), np.zeros((4 * n, 2 * len(gather)))
    mass = np.zeros(len(gather))
    for i, parts in enumerate(gather.values()):
        for p, weight, r in parts:
            mass[i] += weight
            to_v[2 * p : 2 * p + 2, 2 * i : 2 * i + 2] += weight * np.eye(2)
            to_C[4 * p : 4 * p + 4, 2 * i : 2 * i + 2] += 4 * weight * np.kron(np.eye(2), r[:, None])
    scale = 1 / np.repeat(mass, 2)[:, None]
    one = np.array([1.0, 0, 0, 1.0])
    sym = (np.eye(4) + np.eye(4)[[0, 2, 1, 3]]) / 2
    elastic = np.kron(np.eye(n), 2 * mu * sym + la * np.outer(one, one))
    stretch = np.hstack([np.zeros((4 * n, 2 * n)), dt * np.eye(4 * n), np.eye(4 * n)])
    carried = np.hstack([to_v.T, to_C.T / 4, np.zeros((2 * len(gather), 4 * n))])
    nodes = scale * (carried - dt * to_C.T @ elastic @ stretch)
    return float(np.abs(np.linalg.eigvals(np.vstack([to_v @ nodes, to_C @ nodes, stretch]))).max())


def sample(dt: float, position: list[list[float]] | np.ndarray, **state: np.ndarray) -> tuple[MPM, Params, State]:
    """Build particles of mass and volume 1 on a grid of spacing 1."""
    n = len(position)
    model = MPM((12, 12), 1.0, dt, n)
    sizes = {name: np.zeros(shape) for name, shape in model.param_shapes().items()}
    sizes |= {"mass": np.ones(n), "volume": np.ones(n)}
    sizes |= {name: np.full(n, value) for name, value in MATERIAL.items()}
    arrays = {name: np.zeros(shape) for name, shape in model.state_shapes().items()}
    arrays |= {"position": np.asarray(position, float), "deformation": np.tile(np.eye(2), (n, 1, 1)), **state}
    return (
        model,
        Params(**{name: tensor(values) for name, values in sizes.items()}),
        State(**{name: tensor(values) for name, values in arrays.items()}),
    )


def limit(position: list[list[float]] | np.ndarray) -> float:
    model, params, state = sample(1.0, position)
    return model.step_limits(params.arrays(), state.arrays())[0].dt


def test_a_particle_alone_is_stable_up_to_the_limit_and_not_beyond() -> None:
    position = np.array([[5.3, 6.1]])
    assert limit(position) == pytest.approx(1 / np.sqrt(2 * 100 + 2 * 100))
    assert spread_of_step(position, 0.999 * limit(position), mu=100, la=100) <= 1 + ROUNDING
    assert spread_of_step(position, 1.01 * limit(position), mu=100, la=100) > 1.1


@pytest.mark.parametrize("seed", range(4))
def test_particles_are_stable_up_to_the_limit_wherever_they_are(seed: int) -> None:
    position = np.random.default_rng(seed).uniform(4, 4 + seed, (3 + 6 * seed, 2))
    assert spread_of_step(position, limit(position), mu=100, la=100) <= 1 + ROUNDING


def test_dense_material_is_unstable_at_one_and_a_half_times_the_limit() -> None:
    position = 4 + 0.5 * np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1).reshape(-1, 2) + 0.2
    assert spread_of_step(position, 1.2 * limit(position), mu=100, la=100) <= 1 + ROUNDING
    assert spread_of_step(position, 1.6 * limit(position), mu=100, la=100) > 1.01


def test_a_scene_beyond_the_limit_is_refused_with_the_particle_that_limits_it() -> None:
    require_stable_step(*sample(0.049, [[5.0, 5.0], [6.0, 6.0]]))
    model, params, state = sample(0.051, [[5.0, 5.0], [6.0, 6.0]])
    params = params.replace(mass=tensor([2.0, 1.0]))
    with pytest.raises(InputError) as caught:
        require_stable_step(model, params, state)
    assert str(caught.value) == (
        "time.dt: the largest stable time step of this scene is 0.05, by particle 1 (fixed_corotated); found 0.051."
        " Set time.dt to 0.045 or less, or make the stiffest material softer or heavier."
    )


def test_values_that_are_not_finite_are_refused() -> None:
    model, params, state = sample(0.01, [[5.0, 5.0], [6.0, 6.0]])
    with pytest.raises(InputError, match=r"is 0, by particle 1 .*; found 0\.01"):
        require_stable_step(model, params.replace(young_modulus=tensor([250.0, np.nan])), state)


def test_no_particle_may_cross_a_cell_in_a_step() -> None:
    velocity = np.array([[0.0, 0.0], [-30.0, 10.0]])
    require_stable_step(*sample(0.033, [[5.0, 5.0], [6.0, 6.0]], velocity=velocity))
    with pytest.raises(InputError, match=r"is 0\.03333, by particle 1 .*, which crosses a cell.*; found 0\.034"):
        require_stable_step(*sample(0.034, [[5.0, 5.0], [6.0, 6.0]], velocity=velocity))


def advice_for(dt: float, position: list[list[float]], **state: np.ndarray) -> str:
    model, params, made = sample(dt, position, **state)
    return advice(model, params.arrays(), made.arrays())


def test_of_particles_that_leave_the_grid_the_first_is_named() -> None:
    velocity = np.array([[0.0, 0.0], [0.0, 30.0], [-30.0, 0.0]])
    place = [[5.0, 5.0], [3.0, 10.3], [0.6, 5.0]]
    assert advice_for(0.01, place, velocity=velocity) == (
        "Particle 1 (fixed_corotated) leaves the grid from (3, 10.3): give the grid more cells, let walls or "
        "colliders hold it, or make it slower."
    )
    assert advice_for(0.002, place, velocity=velocity).startswith("Use a smaller time.dt")


def test_a_time_step_beyond_the_limit_of_the_present_stretch_is_reported() -> None:
    stretched = np.array([np.diag([1.0, 1.0]), np.diag([0.5, 2.0])])
    model, params, state = sample(0.03, [[5.0, 5.0], [6.0, 6.0]], deformation=stretched)
    assert advise_step(model, params.arrays(), {"there": state.arrays()}, None) == (
        "Lower time.dt below 0.025, the largest stable step there, by particle 1 (fixed_corotated), or make the "
        "stiffest material softer or heavier."
    )


def test_inverted_material_is_reported() -> None:
    inverted = np.array([np.eye(2), np.diag([0.5, -0.1])])
    assert (
        "particle 1 (fixed_corotated) is inverted"
        in advice_for(0.01, [[5.0, 5.0], [6.0, 6.0]], deformation=inverted).lower()
    )


@pytest.mark.parametrize(
    ("cells", "dt", "stiffness"), [(128, 1e-3, 6.0), (128, 1e-3, 6.6), (120, 3e-4, 100.0), (128, 1e-3, 10.0)]
)
def test_the_constants_of_published_scenes_are_stable(cells: int, dt: float, stiffness: float) -> None:
    """The scenes of DiffTaichi have mass = volume = 1 and mu = lambda."""
    body: dict[str, Any] = {"shape": "lattice", "origin": [0.2, 0.2], "counts": [4, 4], "particle_spacing": 0.005}
    body |= {"particle_mass": 1.0, "particle_volume": 1.0, "young_modulus": 2.5 * stiffness, "poisson_ratio": 0.25}
    config = from_dict(
        {
            "simulator": {"name": "mpm"},
            "time": {"dt": dt, "steps": 1},
            "grid": {"cells": [cells, cells], "spacing": 1 / cells},
            "bodies": [body],
        }
    )
    assert isinstance(config, MPMConfig)
    config.build()
