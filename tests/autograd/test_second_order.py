"""Second derivatives of recorded gradients, along vectors, and of Functions that do or do not allow them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, grad, ops, tensor
from simphys.autograd.compose.functional import jacobian
from simphys.autograd.compose.second_order import gauss_newton, hvp

from ..helpers.rounding import assert_equal_but_for_rounding


class Cube(Function):
    """x^3, whose backward is differentiable."""

    once_differentiable = False

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> np.ndarray:
        ctx.save_for_backward(x)
        return x.data**3

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * adj


class Exponential(Function):
    """e^x, from its saved result."""

    once_differentiable = False

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        y = Tensor(np.exp(x.data))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return adj * y


class Once(Function):
    """x^2, differentiable once."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> np.ndarray:
        ctx.save_for_backward(x)
        return x.data**2

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> np.ndarray:
        (x,) = ctx.saved_tensors
        return 2 * x.data * adj.data


def leaf(values: Any) -> Tensor:
    return tensor(values, requires_grad=True, dtype=np.float64)


# --- create_graph


def test_derivatives_of_any_order_of_a_power() -> None:
    x = leaf(2.0)
    y = x**5
    found = []
    for _ in range(6):
        (y,) = grad(y, x, create_graph=True)
        found.append(float(y))
        if not y.requires_grad:
            break
    assert found[:5] == [80.0, 160.0, 240.0, 240.0, 120.0]


def test_a_gradient_belongs_to_a_graph_only_with_create_graph() -> None:
    x = leaf([1.0, 2.0])
    y = ops.sum(ops.sin(x))
    (plain,) = grad(y, x, retain_graph=True)
    (recorded,) = grad(y, x, create_graph=True)
    assert not plain.requires_grad and recorded.grad_fn is not None
    assert_equal_but_for_rounding(plain.data, recorded.data)


def test_create_graph_retains_the_graph_by_default() -> None:
    x = leaf(2.0)
    y = x**3
    grad(y, x, create_graph=True)
    grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(GraphError, match="freed"):
        grad(y, x)


def test_backward_with_create_graph_leaves_a_gradient_that_can_be_differentiated() -> None:
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    assert x.grad is not None
    (second,) = grad(x.grad, x)
    assert second.item() == 12.0


def test_the_seed_of_a_recorded_gradient_is_an_input_of_it() -> None:
    """The adjoint u J of f(x) = x^3 is linear in u: its derivative by u is J."""
    x, u = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (adjoint,) = grad(x**3, x, [u], create_graph=True)
    by_u, by_x = grad(adjoint, (u, x), [np.ones(2)])
    assert by_u.data.tolist() == [3.0, 12.0] and by_x.data.tolist() == [18.0, 48.0]


def test_a_gradient_penalty_trains() -> None:
    """d/dx of |d/dx sum(x^3)|^2 = d/dx 9 x^4 = 36 x^3."""
    x = leaf([1.0, -2.0])
    (g,) = grad(ops.sum(x**3), x, create_graph=True)
    ops.sum(g * g).backward()
    assert x.grad is not None and x.grad.data.tolist() == [36.0, -288.0]


# --- Functions


@pytest.mark.parametrize(("function", "second"), [(Cube, lambda x: 6 * x), (Exponential, np.exp)])
def test_a_function_that_opts_in_is_differentiated_again(function: type[Function], second: Any) -> None:
    x = leaf([0.5, 2.0])
    (g,) = grad(ops.sum(function.apply(x)), x, create_graph=True)
    (gg,) = grad(g, x, [np.ones(2)])
    np.testing.assert_allclose(gg.data, second(x.data), rtol=1e-14)


def test_a_function_is_differentiable_once_unless_it_opts_in() -> None:
    x = leaf([1.0, 2.0])
    (g,) = grad(ops.sum(Once.apply(x)), x, create_graph=True)
    assert g.data.tolist() == [2.0, 4.0] and g.requires_grad
    with pytest.raises(GraphError, match=r"OnceBackward.*once_differentiable = False"):
        grad(g, x, [np.ones(2)])


def test_the_error_comes_also_where_another_path_could_hide_it() -> None:
    """x^2 (once) + x^3: without an error the second derivative would silently be 6 x alone."""
    x = leaf(2.0)
    (g,) = grad(Once.apply(x) + x**3, x, create_graph=True)
    with pytest.raises(GraphError, match="OnceBackward"):
        grad(g, x)


def test_a_gradient_without_such_a_function_is_unaffected() -> None:
    x, w = leaf(2.0), leaf(3.0)
    gx, gw = grad(Once.apply(x) + w**3, (x, w), create_graph=True)
    (ggw,) = grad(gx + gw, w)
    assert ggw.item() == 18.0


def test_an_opted_in_backward_that_leaves_the_graph_is_noticed() -> None:
    class Careless(Cube):
        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x.data**2 * adj.data

    x = leaf(2.0)
    y = Careless.apply(x)
    with pytest.raises(GraphError, match=r"CarelessBackward.*not a Tensor"):
        grad(y, x, create_graph=True)


# --- products with vectors


def rosenbrock(x: Tensor, y: Tensor) -> Tensor:
    return ops.sum((1 - x) ** 2 + 100 * (y - x**2) ** 2)


def test_hvp_is_the_hessian_times_a_vector() -> None:
    x, y = np.array([0.5, -1.0]), np.array([0.3, 2.0])
    u, v = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    value, (hx, hy) = hvp(rosenbrock, (tensor(x), tensor(y)), (u, v))
    assert value.item() == pytest.approx(np.sum((1 - x) ** 2 + 100 * (y - x**2) ** 2))
    np.testing.assert_allclose(hx, (2 + 1200 * x**2 - 400 * y) * u - 400 * x * v, rtol=1e-12)
    np.testing.assert_allclose(hy, -400 * x * u + 200 * v, rtol=1e-12)


def test_a_vector_of_none_is_zero() -> None:
    x, y = tensor([0.5]), tensor([0.3])
    _, (hx, hy) = hvp(rosenbrock, (x, y), (None, [1.0]))
    np.testing.assert_allclose([*hx, *hy], [-200.0, 200.0])


def test_one_input_has_one_vector_and_one_product() -> None:
    _, product = hvp(lambda x: ops.sum(x**3), tensor([1.0, 2.0]), [1.0, 1.0])
    assert product.tolist() == [6.0, 12.0]


@pytest.mark.parametrize("fn", [lambda x: ops.sum(3 * x), lambda x: tensor(1.0)])
def test_a_linear_function_and_a_constant_have_hessian_zero(fn: Any) -> None:
    _, product = hvp(fn, tensor([1.0, 2.0]), [1.0, 1.0])
    assert product.tolist() == [0.0, 0.0]


def test_hvp_of_several_values_is_refused() -> None:
    with pytest.raises(InputError, match="one scalar"):
        hvp(lambda x: x * x, tensor([1.0, 2.0]), [1.0, 1.0])


def residuals(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return ops.sin(x) * y[0], ops.exp(y) - x[:2]


def test_a_gauss_newton_product_is_that_of_the_jacobian() -> None:
    x, y = tensor([0.5, -1.0, 0.2]), tensor([0.3, 2.0])
    u, v = np.array([1.0, 2.0, -1.0]), np.array([0.5, -0.3])
    outputs, (gx, gy) = gauss_newton(residuals, (x, y), (u, v))
    blocks = jacobian(residuals, (x, y))
    j = np.block([[np.asarray(block) for block in row] for row in blocks])
    np.testing.assert_allclose(np.concatenate([gx, gy]), j.T @ (j @ np.concatenate([u, v])), rtol=1e-12)
    assert len(outputs) == 2


def test_gauss_newton_of_linear_residuals_is_half_the_hessian_of_their_squares() -> None:
    a = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]])
    v = [1.0, -2.0]
    _, product = gauss_newton(lambda x: ops.matmul(a, x), tensor([1.0, 1.0]), v)
    _, hessian = hvp(lambda x: ops.sum(ops.matmul(a, x) ** 2), tensor([1.0, 1.0]), v)
    np.testing.assert_allclose(2 * product, hessian, rtol=1e-13)


def test_a_wrong_number_of_vectors_is_refused() -> None:
    with pytest.raises(InputError, match="vector for each input"):
        gauss_newton(residuals, (tensor([1.0, 1.0]), tensor([1.0])), ([1.0, 1.0],))
