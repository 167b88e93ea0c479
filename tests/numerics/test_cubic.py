"""Cubic convolution between the nodes of a grid."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.substep import read_at

CELLS, DX = (7, 6), 0.3
Array = np.ndarray[Any, Any]
Interpolate = read_at("value", field="field", position="points", over="points")


@dataclass(frozen=True)
class Grid:
    """The grid of the nodes."""

    boundaries: tuple[str, ...]
    cells: tuple[int, ...] = CELLS
    spacing: float = DX


def interpolate_field(field: Array, x: Array, *boundaries: str) -> tuple[Array, Array]:
    """Interpolate value and slope at points [n, 2]."""
    points = tensor(np.array(x), requires_grad=True)
    value = Interpolate.apply(Grid(boundaries), tensor(field.reshape(CELLS)), points)
    value.sum().backward()
    assert points.grad is not None
    return value.data, points.grad.data


def nodes() -> Array:
    return np.stack(np.meshgrid(*[np.arange(n) * DX for n in CELLS], indexing="ij"), axis=-1).reshape(-1, 2)


@pytest.fixture
def field() -> Array:
    return np.random.default_rng(0).normal(size=CELLS)


def test_nodes_keep_their_values(field: Array) -> None:
    # The difference between k dx / dx and k is multiplied by slopes of about 1 / dx.
    value, _ = interpolate_field(field, nodes(), *["absorbing"] * 4)
    np.testing.assert_allclose(value, field.ravel(), rtol=0, atol=1e-13)


def test_quadratic_fields_are_reproduced_with_their_slopes() -> None:
    def quadratic(x: Array) -> Array:
        return 1 - 2 * x[:, 0] + x[:, 1] + 3 * x[:, 0] ** 2 - x[:, 0] * x[:, 1] + 0.5 * x[:, 1] ** 2

    x = np.random.default_rng(1).uniform(DX, [5 * DX, 4 * DX], size=(20, 2))
    value, slope = interpolate_field(quadratic(nodes()), x, *["absorbing"] * 4)
    np.testing.assert_allclose(value, quadratic(x), rtol=1e-13)
    np.testing.assert_allclose(slope[:, 0], -2 + 6 * x[:, 0] - x[:, 1], rtol=1e-12)
    np.testing.assert_allclose(slope[:, 1], 1 - x[:, 0] + x[:, 1], rtol=1e-12)


@pytest.mark.parametrize(
    "boundaries", [("zero", "free", "periodic", "periodic"), ("free", "zero", "zero", "absorbing")]
)
def test_slopes_are_the_derivatives_of_values(field: Array, boundaries: tuple[str, ...]) -> None:
    x = np.random.default_rng(2).uniform(-0.4 * DX, [6.4 * DX, 5.4 * DX], size=(20, 2))
    _, slope = interpolate_field(field, x, *boundaries)
    for axis, eps in enumerate(np.eye(2) * 1e-5):
        difference = (
            interpolate_field(field, x + eps, *boundaries)[0] - interpolate_field(field, x - eps, *boundaries)[0]
        )
        np.testing.assert_allclose(slope[:, axis], difference / 2e-5, rtol=1e-6, atol=1e-6)


def test_values_and_slopes_are_continuous_where_the_nodes_change(field: Array) -> None:
    inner = nodes().reshape(*CELLS, 2)[2:-2, 2:-2].reshape(-1, 2)
    below, above = (interpolate_field(field, inner + eps, *["free"] * 4) for eps in (-1e-10, 1e-10))
    np.testing.assert_allclose(below[0], above[0], atol=1e-7)
    np.testing.assert_allclose(below[1], above[1], atol=1e-7)


def test_beyond_a_side_the_field_goes_on_as_that_side_says(field: Array) -> None:
    beyond = np.array([[-0.3 * DX, 1.2 * DX], [-0.8 * DX, 3.0 * DX]])
    boundaries = ("free", "zero", "periodic", "periodic")
    mirror = np.array([-1.0, 0.0]) * DX + np.array([-1.0, 1.0]) * beyond
    np.testing.assert_allclose(
        interpolate_field(field, beyond, *boundaries)[0], interpolate_field(field, mirror, *boundaries)[0], rtol=1e-12
    )
    np.testing.assert_allclose(
        interpolate_field(field, beyond, *boundaries)[0],
        interpolate_field(field, beyond + np.array([0.0, CELLS[1] * DX]), *boundaries)[0],
        rtol=1e-12,
    )
    np.testing.assert_allclose(interpolate_field(field, np.array([[7 * DX, DX]]), *boundaries)[0], 0.0, atol=1e-13)
