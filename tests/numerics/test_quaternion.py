"""Hamilton's product and the exponential of half a rotation vector."""

from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics import quaternion

from ..helpers.elements import element
from ..helpers.rounding import assert_equal_but_for_rounding


@no_type_check
def exponential(real: Any) -> SimpleNamespace:
    f = quaternion
    return SimpleNamespace(f=f.exponential, adj=f.adj_exponential, jvp=f.jvp_exponential)


@no_type_check
def product(real: Any) -> SimpleNamespace:
    f, quat, row = quaternion, ti.types.vector(4, real), ti.types.vector(8, real)

    @ti.func
    def half(x: row, first: ti.template()) -> quat:
        return quat([x[first + j] for j in ti.static(range(4))])

    @ti.func
    def value(x: row) -> quat:
        return f.product(half(x, 0), half(x, 4))

    @ti.func
    def adj(x: row, g: quat) -> row:
        a, b = f.adj_product(half(x, 0), half(x, 4), g)
        return row(a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3])

    @ti.func
    def jvp(x: row, dx: row) -> quat:
        return f.jvp_product(half(x, 0), half(x, 4), half(dx, 0), half(dx, 4))

    return SimpleNamespace(f=value, adj=adj, jvp=jvp)


def rotation_vectors(angles: Any) -> np.ndarray[Any, Any]:
    axes = np.random.default_rng(0).normal(size=(len(angles), 3))
    return np.asarray(angles)[:, None] * axes / np.linalg.norm(axes, axis=1, keepdims=True)


SMALL = np.sqrt(quaternion.SMALL)
ANGLES = [0.0, 1e-9, 1e-4, 0.01, 0.2, SMALL * 0.999, SMALL * 1.001, 1.0, 3.0, 6.0, 20.0]


def test_every_element_of_the_jacobian_is_right() -> None:
    """The rotations include none at all, and both sides of the end of the series."""
    for fn, x in (
        (element(exponential, 4), tensor(rotation_vectors(ANGLES), requires_grad=True)),
        (element(product, 4), tensor(np.random.default_rng(1).normal(size=(3, 8)), requires_grad=True)),
    ):
        gradcheck(fn, x, tolerance=1e-6)
        dot_product_test(fn, x, tolerance=1e-13)


def test_the_exponential_is_that_of_the_closed_form() -> None:
    phi = rotation_vectors(ANGLES)
    a = np.linalg.norm(phi, axis=1, keepdims=True)
    expected = np.hstack([np.cos(a / 2), np.sinc(a / 2 / np.pi) / 2 * phi])
    # The rounding of an angle of 20 is ten times that of its sine.
    assert_equal_but_for_rounding(element(exponential, 4)(tensor(phi)).data, expected, ulps=100, size=1.0)


def test_its_derivative_has_no_step_where_the_series_ends() -> None:
    axis = rotation_vectors([1.0])[0]
    jacobians = []
    for a in (SMALL * (1 - 1e-12), SMALL * (1 + 1e-12)):
        x = tensor(np.tile(a * axis, (4, 1)), requires_grad=True)
        element(exponential, 4)(x).backward(np.eye(4))
        assert x.grad is not None
        jacobians.append(x.grad.data)
    np.testing.assert_allclose(jacobians[0], jacobians[1], rtol=0, atol=1e-12)


@pytest.mark.gpu
def test_the_product_is_hamiltons() -> None:
    """Check i j = k, j i = -k, i i = -1."""
    one, i, j, k = np.eye(4)
    rows = tensor(np.array([[*i, *j], [*j, *i], [*i, *i], [*one, *k]]))
    np.testing.assert_allclose(element(product, 4)(rows).data, [k, -k, -one, k], atol=1e-7)
