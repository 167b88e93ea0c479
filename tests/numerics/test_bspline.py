"""Quadratic B-splines on a grid."""

import functools
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import bspline

CELLS = {2: (6, 9), 3: (5, 7, 6)}
DX = 0.3
DIMS = pytest.mark.parametrize("dim", [2, 3])
Array = np.ndarray[Any, Any]


@functools.cache
@no_type_check
def kernels(dim: int) -> Any:
    """Weights of all nodes [n, nodes] at points x [n, dim], and their derivatives for x / dx [n, nodes, dim]."""
    real, lines, nodes = runtime.real(), bspline.count_lines(dim), int(np.prod(CELLS[dim]))
    spline, reals = bspline.functions(real, dim, CELLS[dim]), ti.types.ndarray(dtype=real, ndim=1)
    vec = ti.types.vector(dim, real)

    @kernel
    def weigh(x: reals, n: ti.i32, inv_dx: real, weight: reals, slope: reals):
        for i in range(n):
            place = vec(0.0)
            for d in ti.static(range(dim)):
                place[d] = x[i * dim + d]
            base = spline.base(place, inv_dx)
            f = place * inv_dx - base
            w, s = spline.weights(f), spline.slopes(f)
            for number in range(lines):
                o = spline.offset(number)
                first, across = spline.start(base) + spline.line_offset(o), spline.line_weight(w, o)
                for k in ti.static(range(3)):
                    at = i * nodes + first + k
                    weight[at] = across * w[k, dim - 1]
                    slope[at * dim + dim - 1] = across * s[k, dim - 1]
                    for d in ti.static(range(dim - 1)):
                        slope[at * dim + d] = spline.line_slope(w, s, o, d) * w[k, dim - 1]

    return weigh


def weigh(x: Array) -> tuple[Array, Array]:
    """Weights [n, *cells], and their gradients with respect to x [n, *cells, dim]."""
    real = runtime.real_dtype()
    n, dim = x.shape
    shapes = (n, *CELLS[dim]), (n, *CELLS[dim], dim)
    points, *found = (runtime.to_device(flat) for flat in (x.astype(real).reshape(-1), *[zeros(s) for s in shapes]))
    kernels(dim)(points, n, 1 / DX, *found)
    weight, slope = (runtime.to_host(flat, shape) for flat, shape in zip(found, shapes, strict=True))
    return weight, slope / DX


def zeros(shape: tuple[int, ...]) -> Array:
    """Flat array of zeros: a GPU copies all of a host array back, even if a kernel wrote only a part of it."""
    return np.zeros(int(np.prod(shape)), runtime.real_dtype())


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
    rounding = 1e-15 if runtime.real_dtype() == np.float64 else 1e-6
    np.testing.assert_allclose(weigh(x)[0], expected, rtol=0, atol=rounding)


@DIMS
def test_they_sum_to_one_and_reproduce_a_linear_field_and_its_gradient(dim: int) -> None:
    x = points(dim)
    w, slope = weigh(x)
    np.testing.assert_allclose(total(w, dim), 1, rtol=0, atol=1e-15)
    np.testing.assert_allclose(total(slope, dim), 0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(total(w[..., None] * places(dim), dim), x, rtol=0, atol=1e-15)
    at_nodes = total(places(dim)[..., :, None] * slope[..., None, :], dim)
    np.testing.assert_allclose(at_nodes, np.broadcast_to(np.eye(dim), at_nodes.shape), rtol=0, atol=1e-14)


@DIMS
def test_their_second_moment_is_a_quarter_of_the_spacing_squared(dim: int) -> None:
    """APIC relies on sum w r r^T = dx^2/4 I at any point."""
    x = points(dim)
    r = places(dim) - x.reshape(-1, *[1] * dim, dim)
    moment = total(weigh(x)[0][..., None, None] * r[..., :, None] * r[..., None, :], dim)
    np.testing.assert_allclose(moment, np.broadcast_to(np.eye(dim) * DX**2 / 4, moment.shape), rtol=0, atol=1e-15)


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
        np.testing.assert_allclose(found, slope[..., axis], rtol=0, atol=1e-12 / DX)


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
