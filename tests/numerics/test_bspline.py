"""Quadratic B-splines on a grid."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from simphys.autograd import linearize, tensor
from simphys.substep import element, to_grid

from ..helpers.rounding import assert_equal_but_for_rounding

CELLS = {2: (6, 9), 3: (5, 7, 6)}
DX = 0.3
DIMS = pytest.mark.parametrize("dim", [2, 3])
Array = np.ndarray[Any, Any]


@element
def unit(r, m):
    return m


@unit.adjoint
def adj_unit(r, m, adj):
    return 0 * r, adj


@unit.tangent
def jvp_unit(r, m, dr, dm):
    return dm


Weigh = to_grid(unit, offset={"r": "position"}, own={"m": "mass"}, results={"mass": "m"})


@dataclass(frozen=True)
class Grid:
    cells: tuple[int, ...]
    spacing: float = DX


def weigh(x: Array) -> tuple[Array, Array]:
    """Weights [n, *cells], and their gradients with respect to x [n, *cells, dim]: the mass of a unit at each point."""
    grid, unit_mass = Grid(CELLS[x.shape[1]]), tensor(np.ones(1))
    weights, slopes = [], []
    for point in x:
        place = tensor(point[None], requires_grad=True)
        mass = Weigh.apply(grid, place, unit_mass)
        weights.append(mass.data)
        push = linearize([mass], [place])
        axes = np.eye(len(point), dtype=mass.dtype)
        slopes.append(np.stack([push(axis[None])[0] for axis in axes], axis=-1))
    return np.stack(weights), np.stack(slopes)


def points(dim: int, n: int = 40) -> Array:
    """Random points with three nodes per axis around them."""
    return np.random.default_rng(dim).uniform(0.5 * DX, (np.array(CELLS[dim]) - 1.5) * DX, (n, dim))


def places(dim: int) -> Array:
    return np.stack(np.meshgrid(*[DX * np.arange(count) for count in CELLS[dim]], indexing="ij"), axis=-1)


def total(values: Array, dim: int) -> Array:
    """Sum over the nodes, which are the axes after the first."""
    return values.sum(axis=tuple(range(1, dim + 1)))


@pytest.mark.gpu
@DIMS
def test_the_weights_are_those_of_the_spline(dim: int) -> None:
    x = points(dim)
    s = abs(places(dim) - x.reshape(-1, *[1] * dim, dim)) / DX
    expected = np.where(s < 0.5, 0.75 - s**2, np.where(s < 1.5, (1.5 - s) ** 2 / 2, 0)).prod(axis=-1)
    assert_equal_but_for_rounding(weigh(x)[0], expected, ulps=8, size=max(CELLS[dim]))  # x / dx is as large as that


@DIMS
def test_they_sum_to_one_and_reproduce_a_linear_field_and_its_gradient(dim: int) -> None:
    x = points(dim)
    w, slope = weigh(x)
    terms, far = 3**dim, float(places(dim).max())
    assert_equal_but_for_rounding(total(w, dim), np.ones(len(x)), ulps=terms)
    assert_equal_but_for_rounding(total(slope, dim), np.zeros(x.shape), ulps=terms, size=1 / DX)
    assert_equal_but_for_rounding(total(w[..., None] * places(dim), dim), x, ulps=terms, size=far)
    at_nodes = total(places(dim)[..., :, None] * slope[..., None, :], dim)
    unit = np.broadcast_to(np.eye(dim), at_nodes.shape)
    assert_equal_but_for_rounding(at_nodes, unit, ulps=terms, size=far / DX)


@DIMS
def test_their_second_moment_is_a_quarter_of_the_spacing_squared(dim: int) -> None:
    """APIC relies on sum w r r^T = dx^2/4 I at any point."""
    x = points(dim)
    r = places(dim) - x.reshape(-1, *[1] * dim, dim)
    moment = total(weigh(x)[0][..., None, None] * r[..., :, None] * r[..., None, :], dim)
    np.testing.assert_allclose(moment, np.broadcast_to(np.eye(dim) * DX**2 / 4, moment.shape), rtol=0, atol=1e-14)


@DIMS
def test_the_gradient_is_that_of_finite_differences(dim: int) -> None:
    """Central differences of second order are exact for weights that are quadratic along each axis."""
    x, h = points(dim), 1e-3 * DX
    near = abs(x / DX - 0.5 - np.round(x / DX - 0.5)).min(axis=1) < 0.01  # close to a change of base
    x = x[~near]
    _, slope = weigh(x)
    for axis in range(dim):
        shift = h * np.eye(dim)[axis]
        found = (weigh(x + shift)[0] - weigh(x - shift)[0]) / (2 * h)
        # Some roundings of the weights, divided by the thousandth of a spacing.
        np.testing.assert_allclose(found, slope[..., axis], rtol=0, atol=2e-11 / DX)


@DIMS
def test_weights_are_continuous_where_the_nodes_change(dim: int) -> None:
    x = points(dim)
    for axis in range(dim):
        x[:, axis] = 2.5 * DX
        (w_before, before), (w_after, after) = (weigh(x + sign * 1e-12 * np.eye(dim)[axis]) for sign in (-1, 1))
        assert (w_before != w_after).any()
        np.testing.assert_allclose(w_before, w_after, rtol=0, atol=1e-11)
        np.testing.assert_allclose(before, after, rtol=0, atol=1e-10)


@DIMS
@pytest.mark.parametrize("far", [-1e6, 1e6])
def test_no_memory_outside_of_the_grid_is_touched(dim: int, far: float) -> None:
    """Outside of it, the sum still runs over the first or the last three nodes per axis."""
    x = np.full((1, dim), far)
    w, _ = weigh(x)
    seen = np.argwhere(w[0])
    corner = np.zeros(dim) if far < 0 else np.array(CELLS[dim]) - 3
    assert len(seen) == 3**dim
    np.testing.assert_array_equal(seen.min(axis=0), corner)
    np.testing.assert_array_equal(seen.max(axis=0), corner + 2)
