"""The effect of an obstacle on a flow, its force, and their adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.simulators.smoke import obstacle
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.obstacle import ETA, LAYER, obstruct
from simphys.simulators.smoke.shapes import coordinates

from .flows import check, leaf, some, variants, velocity
from .parts import check_parts_of_arrays


@pytest.mark.parametrize("name", variants())
def test_every_element_of_the_jacobian_is_right(name: str) -> None:
    """Most faces are in the layer, some inside and some outside."""
    model = variants()[name]
    distance = leaf(0.4 * some(*model.cells, seed=3).data)
    check(obstruct, model, velocity(model), distance, tolerance=1e-7)


def ball(model: Smoke, radius: float) -> np.ndarray:
    """Compute the signed distance to a ball in the middle."""
    middle = [0.5 * n * model.spacing for n in model.cells]
    distance = np.sqrt(sum([(x - m) ** 2 for x, m in zip(coordinates(model), middle, strict=True)]))
    return np.asarray(distance - radius, runtime.real_dtype())


@pytest.mark.gpu
@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_it_stops_the_fluid_inside_and_leaves_that_outside_alone(grid: str) -> None:
    model = Smoke((16, 16), spacing=0.1, dt=0.01, grid=grid)
    phi = ball(model, 0.45)
    u = np.ones((2, 16, 16), phi.dtype)
    after = obstruct(model, tensor(u), tensor(phi))[0].data
    for component in range(2):
        below = np.roll(phi, 1, axis=component) if grid == "staggered" else phi
        at = 0.5 * (phi + below)
        inside, outside = at < -0.5 * LAYER * model.spacing, at > 0.5 * LAYER * model.spacing
        assert inside.sum() > 20 and outside.sum() > 100
        np.testing.assert_allclose(after[component][inside], ETA / (1 + ETA), rtol=1e-5)
        np.testing.assert_array_equal(after[component][outside], 1.0)


def test_the_velocity_at_a_face_falls_linearly_with_the_fraction_of_obstacle() -> None:
    """The force of a growing shape therefore does not jump at each face that it reaches."""
    model = Smoke((5, 2), spacing=0.1, dt=0.01, grid="collocated")
    inside = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    t = 0.5 - np.sin(np.arcsin(1 - 2 * inside) / 3)  # the inverse of chi = t^2 (3 - 2 t)
    phi = np.tile(LAYER * model.spacing * (0.5 - t)[:, None], (1, 2))
    after = obstruct(model, tensor(np.ones((2, 5, 2))), tensor(phi))[0].data
    np.testing.assert_allclose(after[0, :, 0], 1 - inside / (1 + ETA), atol=1e-12)


@pytest.mark.parametrize("name", variants())
def test_the_force_is_the_momentum_that_the_fluid_loses(name: str) -> None:
    model = variants()[name]
    u = velocity(model).data
    after, force = (found.data for found in obstruct(model, tensor(u), some(*model.cells)))
    lost = (u - after).reshape(model.dim, -1).sum(axis=1) * model.spacing**model.dim
    np.testing.assert_allclose(force * model.dt, lost, rtol=1e-12)
    assert abs(lost).min() > 0


def test_the_gradient_by_the_distance_is_continuous_at_both_edges_of_the_layer() -> None:
    model = Smoke((4, 4), spacing=0.1, dt=0.01, grid="collocated")
    u, width = np.ones((2, 4, 4)), LAYER * model.spacing
    steepest = 1.5 / (width * (1 + ETA))
    for edge in (-0.5 * width, 0.5 * width):
        for beyond in (1e-7, -1e-7):
            phi = tensor(np.full((4, 4), edge + beyond), requires_grad=True)
            obstruct(model, tensor(u), phi)[0].sum().backward()
            assert phi.grad is not None and abs(phi.grad.data).max() < 1e-5 * steepest


def check_parts(model: Smoke, module: Any = obstacle) -> None:
    """Check adjoints that lie within arrays."""
    distance, u = {"obstacle": some(*model.cells).data}, velocity(model).data
    check_parts_of_arrays(model, module.FaceDistance, module.adj_face_distance, distance, "distance")
    given = {"velocity": u, "damped_velocity": 0.5 * u}
    check_parts_of_arrays(model, module.Drag, module.adj_drag, given, "obstacle_force")


@pytest.mark.gpu
@pytest.mark.parametrize("name", variants())
def test_an_adjoint_within_an_array_is_set_or_added_to(name: str) -> None:
    check_parts(variants()[name])
