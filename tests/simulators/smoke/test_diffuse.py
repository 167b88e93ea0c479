"""Diffusion of momentum and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.simulators.smoke import diffuse
from simphys.simulators.smoke.diffuse import Diffuse
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.shapes import coordinates

from ...helpers.rounding import assert_equal_but_for_rounding
from .flows import check, leaf, small, some, variants, velocity
from .parts import check_parts_of_arrays


@pytest.mark.parametrize("name", variants())
def test_every_element_of_the_jacobian_is_right(name: str) -> None:
    model = variants()[name]
    check(Diffuse.apply, model, velocity(model), leaf(0.3), some(2 * model.dim, model.dim))


def diffused(model: Smoke, *arrays: Any) -> np.ndarray:
    return Diffuse.apply(model, *[tensor(array) for array in arrays]).data


def numbers(*shape: int) -> np.ndarray:
    return np.zeros(shape, runtime.real_dtype())


@pytest.mark.gpu
@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_sheared_flow_decays_like_its_heat_kernel(grid: str) -> None:
    nu, steps = 0.02, 50
    model = Smoke((64, 4), spacing=1 / 64, dt=2e-3, grid=grid)
    u = numbers(2, 64, 4)
    k = 2 * np.pi
    u[1] = np.sin(k * coordinates(model, 1)[0])
    end = u
    for _ in range(steps):
        end = diffused(model, end, np.array(nu, u.dtype), numbers(4, 2))
    np.testing.assert_allclose(end[1], np.exp(-nu * k * k * steps * model.dt) * u[1], atol=2e-4)
    assert not end[0].any()


def test_between_a_moving_and_a_resting_wall_the_profile_becomes_linear() -> None:
    model = Smoke((3, 8), spacing=0.125, dt=0.1, boundaries=("periodic", "periodic", "closed", "closed"))
    walls = numbers(4, 2)
    walls[3] = 0.7, 5.0  # the normal velocity of a wall has no effect
    u, nu = numbers(2, *model.faces), np.array(0.99 * 0.125**2 / (4 * 0.1))
    for _ in range(1000):
        u = diffused(model, u, nu, walls)
    y = coordinates(model, 0)[1][:, :8]
    np.testing.assert_allclose(u[0, :, :8], 0.7 * y, atol=1e-12)
    assert not u[1].any() and not u[0, :, 8].any()


def test_walls_that_let_the_fluid_slide_leave_a_uniform_flow_alone() -> None:
    model = small(boundaries=("periodic", "periodic", "closed", "closed"), slip=True)
    u = numbers(2, *model.faces)
    u[0, :, :3] = 2.0
    np.testing.assert_array_equal(diffused(model, u, np.array(0.3), some(4, 2).data), u)


def test_given_faces_keep_their_velocity_and_momentum_is_kept_between_periodic_sides() -> None:
    model = variants()["channel"]
    u = velocity(model).data
    after = diffused(model, u, np.array(0.3), some(4, 2).data)
    np.testing.assert_array_equal(after[0, 0], u[0, 0])
    np.testing.assert_array_equal(after[1, :, [0, 3]], u[1, :, [0, 3]])
    assert (after[0, 1:, :3] != u[0, 1:, :3]).all() and (after[1, :4, 1:3] != u[1, :4, 1:3]).all()
    model = small()
    u = velocity(model).data
    after = diffused(model, u, np.array(0.3), numbers(4, 2))
    before, terms = u.sum(axis=(1, 2)), u[0].size
    assert_equal_but_for_rounding(after.sum(axis=(1, 2)), before, ulps=8 * terms, size=abs(u).max())


def check_parts(model: Smoke, module: Any = diffuse) -> None:
    """Check adjoints that lie within arrays."""
    walls = some(2 * model.dim, model.dim).data
    given = {"velocity": velocity(model).data, "viscosity": np.array(0.3), "boundary_velocity": walls}
    check_parts_of_arrays(model, module.Diffuse, module.adj_diffuse, given, "diffused_velocity")


@pytest.mark.gpu
@pytest.mark.parametrize("name", variants())
def test_an_adjoint_within_an_array_is_set_or_added_to(name: str) -> None:
    check_parts(variants()[name])
