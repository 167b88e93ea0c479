"""Rotations by an angle and by a quaternion: their effect, and their derivatives as small rotations."""

from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics import rotation

from ..helpers.elements import element
from ..helpers.rounding import assert_equal_but_for_rounding


@no_type_check
def rotate_vector(dim: int) -> Any:
    """Map rows (q, r) to R(q) r."""

    @no_type_check
    def pack(real: Any) -> SimpleNamespace:
        f, size = rotation, 1 if dim == 2 else 4
        vec, quat = ti.types.vector(dim, real), ti.types.vector(size, real)
        row = ti.types.vector(size + dim, real)

        @ti.func
        def rotation_of(x: row) -> quat:
            return quat([x[j] for j in ti.static(range(size))])

        @ti.func
        def vector_of(x: row) -> vec:
            return vec([x[size + j] for j in ti.static(range(dim))])

        @ti.func
        def value(x: row) -> vec:
            return f.matrix(rotation_of(x)) @ vector_of(x)

        @ti.func
        def adj(x: row, g: vec) -> row:
            """Adjoint of dR r = dtheta x (R r), the moment; to map it to adj_q, back and again makes no difference."""
            q = rotation_of(x)
            R = f.matrix(q)
            there = f.adj_turn(q, f.moment(R @ vector_of(x), g))
            adj_q = 2 * there - f.adj_turn(q, f.adj_theta(q, there))
            adj_r = R.transpose() @ g
            adj_x = row(0.0)
            for j in ti.static(range(size)):
                adj_x[j] = adj_q[j]
            for j in ti.static(range(dim)):
                adj_x[size + j] = adj_r[j]
            return adj_x

        @ti.func
        def jvp(x: row, dx: row) -> vec:
            R = f.matrix(rotation_of(x))
            dtheta = f.jvp_turn(rotation_of(x), rotation_of(dx))
            return R @ vector_of(dx) + f.cross(dtheta, R @ vector_of(x))

        return SimpleNamespace(f=value, adj=adj, jvp=jvp)

    return element(pack, dim)


@no_type_check
def cross_product(dim: int) -> Any:
    """Map rows (omega, r) to omega x r."""

    @no_type_check
    def pack(real: Any) -> SimpleNamespace:
        f, size = rotation, 1 if dim == 2 else 3
        vec, spin, row = (ti.types.vector(n, real) for n in (dim, size, size + dim))

        @ti.func
        def spin_of(x: row) -> spin:
            return spin([x[j] for j in ti.static(range(size))])

        @ti.func
        def vector_of(x: row) -> vec:
            return vec([x[size + j] for j in ti.static(range(dim))])

        @ti.func
        def value(x: row) -> vec:
            return f.cross(spin_of(x), vector_of(x))

        @ti.func
        def adj(x: row, g: vec) -> row:
            adj_omega, adj_r = f.moment(vector_of(x), g), f.adj_cross(spin_of(x), g)
            adj_x = row(0.0)
            for j in ti.static(range(size)):
                adj_x[j] = adj_omega[j]
            for j in ti.static(range(dim)):
                adj_x[size + j] = adj_r[j]
            return adj_x

        @ti.func
        def jvp(x: row, dx: row) -> vec:
            return f.cross(spin_of(dx), vector_of(x)) + f.cross(spin_of(x), vector_of(dx))

        return SimpleNamespace(f=value, adj=adj, jvp=jvp)

    return element(pack, dim)


def some(width: int, count: int = 4) -> Tensor:
    """The quaternions have any length."""
    return tensor(np.random.default_rng(0).normal(size=(count, width)), requires_grad=True)


@pytest.mark.parametrize(("dim", "rotations", "spins"), [(2, 1, 1), (3, 4, 3)])
def test_every_element_of_the_jacobian_is_right(dim: int, rotations: int, spins: int) -> None:
    for fn, x in ((rotate_vector(dim), some(rotations + dim)), (cross_product(dim), some(spins + dim))):
        gradcheck(fn, x, tolerance=1e-6)
        dot_product_test(fn, x, tolerance=1e-13)


@pytest.mark.gpu
def test_a_quarter_turn() -> None:
    """It rotates x to y, in 2-D and about z in 3-D; the length of the quaternion does not matter."""
    plane = rotate_vector(2)(tensor([[np.pi / 2, 1.0, 0.0]])).data
    np.testing.assert_allclose(plane, [[0.0, 1.0]], atol=1e-6)
    quarter = 3.0 * np.array([1.0, 0.0, 0.0, 1.0])
    space = rotate_vector(3)(tensor(np.array([[*quarter, 1.0, 0.0, 0.0], [*quarter, 0.0, 0.0, 1.0]]))).data
    np.testing.assert_allclose(space, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], atol=1e-6)


def test_lengths_stay() -> None:
    x = some(7)
    r = np.linalg.norm(x.data[:, 4:], axis=1)
    assert_equal_but_for_rounding(np.linalg.norm(rotate_vector(3)(x).data, axis=1), r, ulps=64)


def test_the_cross_product_is_that_of_space() -> None:
    x = some(6).data
    size = np.abs(x).max() ** 2  # of products, whose difference may be small
    assert_equal_but_for_rounding(cross_product(3)(tensor(x)).data, np.cross(x[:, :3], x[:, 3:]), size=size)
    y = some(3).data
    expected = np.cross(np.pad(y[:, :1], ((0, 0), (2, 0))), np.pad(y[:, 1:], ((0, 0), (0, 1))))[:, :2]
    assert_equal_but_for_rounding(cross_product(2)(tensor(y)).data, expected)
