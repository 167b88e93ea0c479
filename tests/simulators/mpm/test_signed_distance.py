"""Signed distance and normal of each shape, and their derivatives."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mpm import signed_distance
from simphys.simulators.mpm.collider import SHAPES

from ...helpers.elements import element
from ...helpers.rounding import assert_equal_but_for_rounding

SIZES = {"sphere": (0.5, 0.0, 0.0), "box": (0.5, 0.25, 0.625), "capsule": (0.4, 0.35, 0.0), "plane": (0.0, 0.0, 0.0)}


@functools.cache
def surface(shape: str, dim: int) -> Any:
    """Return a function from rows x to (phi, n)."""

    @no_type_check
    def pack(real: Any) -> SimpleNamespace:
        f = signed_distance.functions(real, dim, shape)
        vec, row, vec3 = ti.types.vector(dim, real), ti.types.vector(dim + 1, real), ti.types.vector(3, real)

        @ti.func
        def joined(phi: real, n: vec) -> row:
            y = row(phi)
            for j in ti.static(range(dim)):
                y[1 + j] = n[j]
            return y

        @ti.func
        def value(x: vec) -> row:
            phi, n, _ = f.distance(x, vec3(SIZES[shape]))
            return joined(phi, n)

        @ti.func
        def adj(x: vec, g: row) -> vec:
            _, n, kappa = f.distance(x, vec3(SIZES[shape]))
            adj_n = vec([g[1 + j] for j in ti.static(range(dim))])
            return f.adj(x, n, kappa, vec3(SIZES[shape]), g[0], adj_n)

        @ti.func
        def jvp(x: vec, dx: vec) -> row:
            _, n, kappa = f.distance(x, vec3(SIZES[shape]))
            dphi, dn = f.jvp(x, n, kappa, vec3(SIZES[shape]), dx)
            return joined(dphi, dn)

        return SimpleNamespace(f=value, adj=adj, jvp=jvp)

    return element(pack, dim + 1)


def at(*points: Any) -> Tensor:
    return tensor(np.array(points, np.float64), requires_grad=True)


def around(dim: int, count: int = 16) -> np.ndarray[Any, Any]:
    """Draw points inside and outside, over faces, edges and corners."""
    return np.random.default_rng(0).uniform(-1, 1, (count, dim)) * np.linspace(0.3, 1, count)[:, None]


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_element_of_the_jacobian_is_right(shape: str, dim: int) -> None:
    x = at(*around(dim))
    gradcheck(surface(shape, dim), x, tolerance=1e-6)
    dot_product_test(surface(shape, dim), x, tolerance=1e-13)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_normal_is_the_gradient_of_the_distance_and_has_length_one(shape: str, dim: int) -> None:
    x = at(*around(dim))
    y = surface(shape, dim)(x)
    y[:, 0].sum().backward()
    assert x.grad is not None
    assert_equal_but_for_rounding(x.grad.data, y.data[:, 1:])
    assert_equal_but_for_rounding(np.linalg.norm(y.data[:, 1:], axis=1), np.ones(len(y.data)))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_from_outside_the_distance_leads_to_the_surface(shape: str, dim: int) -> None:
    x = around(dim, 40)
    y = surface(shape, dim)(tensor(x)).data
    foot = surface(shape, dim)(tensor(x - y[:, :1] * y[:, 1:])).data[:, 0]
    assert (y[:, 0] > 0).any() and (y[:, 0] < 0).any()
    assert_equal_but_for_rounding(np.where(y[:, 0] > 0, foot, 0), np.zeros(40), size=1.0)


@pytest.mark.gpu
def test_distances_that_one_can_see() -> None:
    found = {shape: surface(shape, 2)(tensor([[0.9, 0.0], [0.0, 0.7], [0.1, -0.1]])).data[:, 0] for shape in SHAPES}
    expected = {
        "sphere": [0.4, 0.2, np.hypot(0.1, 0.1) - 0.5],
        "box": [0.4, 0.45, -0.15],
        "capsule": [0.15, 0.35, -0.25],
        "plane": [0.0, 0.7, -0.1],
    }
    for shape, distances in expected.items():
        np.testing.assert_allclose(found[shape], distances, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", ["sphere", "capsule"])
def test_at_the_centre_the_normal_is_the_first_axis_and_does_not_turn(shape: str) -> None:
    x = at((0.0, 0.0, 0.0))
    y = surface(shape, 3)(x)
    assert y.data[0, 1:].tolist() == [1.0, 0.0, 0.0]
    y.backward(np.array([[0.0, 1.0, 2.0, 3.0]]))
    assert x.grad is not None and not x.grad.data.any()


def test_on_the_medial_axis_of_a_box_the_first_of_the_nearest_faces_counts() -> None:
    """The points are at equal distance to x+ and y+, to x- and y+, and to y- and y+."""
    corners = at((0.375, 0.125), (-0.375, 0.125), (0.0, 0.0))
    normals = surface("box", 2)(corners).data[:, 1:]
    assert normals.tolist() == [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]


def test_over_an_edge_of_a_face_the_normal_turns_as_on_the_flat_side() -> None:
    x = at((0.5, 0.45), (np.nextafter(0.5, 1), 0.45))
    surface("box", 2)(x).backward(np.array([[0.0, 1.0, 0.0]] * 2))
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.data[:, 0], [0.0, 1 / 0.2], rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_on_the_surface_the_distance_is_zero_and_the_normal_has_length_one(shape: str) -> None:
    point = {"sphere": (0.3, 0.4), "box": (0.1, -0.25), "capsule": (-0.75, 0.0), "plane": (0.3, 0.0)}[shape]
    phi, *n = surface(shape, 2)(at(point)).data[0]
    assert_equal_but_for_rounding([phi, np.hypot(*n)], [0.0, 1.0])
