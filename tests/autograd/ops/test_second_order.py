"""Derivatives of gradients: conventions at kinks, third derivatives, precision, gradients that are constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, grad, ops, tensor
from simphys.autograd.proof.gradcheck import gradgradcheck

from .rules_table import RULES, draw, largest, leaves


def curvature(op: Callable[..., Tensor], values: Any) -> tuple[Any, Any]:
    """The gradient g of sum(op(x)), and that of sum(g^2 / 2): the Hessian times g."""
    x = tensor(values, dtype=np.float64, requires_grad=True)
    y = op(x)
    (g,) = grad(y, x, [np.ones(y.shape)], create_graph=True)
    (second,) = grad(ops.sum(g * g) * 0.5 + ops.sum(x) * 0.0, x)  # which depends on x even where g does not
    return g.data.tolist(), second.data.tolist()


@pytest.mark.parametrize(
    ("op", "values", "slopes"),
    [
        pytest.param(ops.abs, [-2.0, 0.0, 3.0], [-1.0, 0.0, 1.0], id="abs"),
        pytest.param(lambda x: ops.maximum(x, 1.0), [0.0, 1.0, 2.0], [0.0, 0.5, 1.0], id="maximum"),
        pytest.param(lambda x: ops.minimum(x, 1.0), [0.0, 1.0, 2.0], [1.0, 0.5, 0.0], id="minimum"),
        pytest.param(lambda x: ops.clip(x, -1.0, 1.0), [-2.0, -1.0, 1.0, 2.0], [0.0, 1.0, 1.0, 0.0], id="clip"),
        pytest.param(ops.max, [1.0, 2.0, 2.0], [0.0, 0.5, 0.5], id="max"),
        pytest.param(ops.min, [1.0, 2.0, 1.0], [0.5, 0.0, 0.5], id="min"),
        pytest.param(lambda x: ops.norm(x, -1), [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], id="norm"),
        pytest.param(lambda x: ops.pow(x, 1), [0.0, 2.0], [1.0, 1.0], id="pow 1"),
        pytest.param(lambda x: ops.pow(x, 0), [0.0, 2.0], [0.0, 0.0], id="pow 0"),
        pytest.param(lambda x: ops.pow(x, np.array([0.0, 1.0])), [0.0, 0.0], [0.0, 1.0], id="pow by an array"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_at_a_kink_the_gradient_is_the_convention_and_its_derivative_is_0(
    op: Callable[..., Tensor], values: Any, slopes: Any
) -> None:
    assert curvature(op, values) == (slopes, np.zeros(np.shape(values)).tolist())


@pytest.mark.filterwarnings("error")
def test_the_kink_of_one_element_does_not_reach_another() -> None:
    """The norm of (3, 4) has the Hessian (I - n n^T) / 5; the other row has norm 0."""
    x = tensor([[3.0, 4.0], [0.0, 0.0]], dtype=np.float64, requires_grad=True)
    (g,) = grad(ops.norm(x, -1), x, [np.ones(2)], create_graph=True)
    (second,) = grad(g, x, [[[1.0, 0.0], [1.0, 0.0]]])
    np.testing.assert_allclose(second.data, [[(1 - 0.36) / 5, -0.48 / 5], [0.0, 0.0]], rtol=1e-13, atol=1e-16)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("exponent", "second"), [(2, 2.0), (2.0, 2.0), (3, 0.0), (2.5, 0.0)])
def test_the_second_derivative_of_a_power_of_zero(exponent: float, second: float) -> None:
    x = tensor(0.0, dtype=np.float64, requires_grad=True)
    (g,) = grad(x**exponent, x, create_graph=True)
    assert grad(g, x)[0].item() == second


def test_the_norm_of_one_element_is_its_absolute_value_in_both_orders() -> None:
    x = tensor([1.3, -0.7], dtype=np.float64, requires_grad=True)
    (g,) = grad(ops.norm(x, ()), x, [np.ones(2)], create_graph=True)
    np.testing.assert_allclose(g.data, [1.0, -1.0], rtol=1e-14)
    np.testing.assert_allclose(grad(g, x, [np.ones(2)])[0].data, 0.0, atol=1e-14)


THIRD = ["mul", "div", "pow", "pow by number", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "softplus"]
THIRD += ["norm over last", "matmul", "sum over one", "max over one", "getitem repeated", "put", "where", "concatenate"]


@pytest.mark.parametrize("name", THIRD)
def test_third_derivatives_are_the_differences_of_second_ones(name: str) -> None:
    """They are those of the square of the rule, as derivatives of linear rules vanish."""
    rule, shapes = RULES[name], largest(RULES[name])

    def slopes(*inputs: Tensor) -> tuple[Tensor, ...]:
        y = rule.call(ops, *inputs)
        return grad(ops.sum(y * y * y), inputs, create_graph=True)

    gradgradcheck(slopes, leaves(draw(rule, shapes)), mode="projected", eps=np.geomspace(1e-2, 1e-6, 6), tolerance=1e-7)


@pytest.mark.parametrize("name", RULES)
def test_in_f32_all_orders_stay_in_f32(name: str) -> None:
    rule = RULES[name]
    inputs = leaves([array.astype(np.float32) for array in draw(rule, largest(rule))], np.float32)
    y = ops.sin(rule.call(ops, *inputs))
    first = grad(ops.sum(y), inputs, create_graph=True)
    assert {g.dtype for g in first} == {np.dtype(np.float32)}
    for g in first:
        second = grad(ops.sum(g * g), inputs, create_graph=True, allow_unused=True)
        assert {h.dtype for h in second if h is not None} == {np.dtype(np.float32)}


def test_a_change_of_precision_is_differentiated_in_each() -> None:
    x = tensor([0.5, 1.5], dtype=np.float32, requires_grad=True)
    (g,) = grad(ops.sum(ops.astype(x, np.float64) ** 3), x, create_graph=True)
    (second,) = grad(ops.sum(ops.astype(g, np.float64)), x)
    assert g.dtype == second.dtype == np.float32
    assert second.data.tolist() == [3.0, 9.0]
