"""`compare` of the costs of two ways to put functions together; worked examples of all ways."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, enable_grad, grad, ops, runtime, tensor
from simphys.autograd.compose.pipe import checkpoint, combine
from simphys.autograd.look.compare import compare
from simphys.autograd.proof.gradcheck import gradcheck

from .test_compose import Square, gradients, leaf, nested, wave

pytestmark = pytest.mark.gpu

DOUBLE = runtime.real_dtype() == np.float64
TOLERANCE = 1e-12 if DOUBLE else 1e-5
ITEM = np.dtype(runtime.real_dtype()).itemsize


class TestCompare:
    def test_a_wrong_gradient_is_loud(self) -> None:
        with pytest.raises(AssertionError, match="the gradient of input 0 differs"):
            compare(lambda x: x * x, WrongSquare.apply, [leaf(0.3)])

    def test_a_wrong_value_is_loud(self) -> None:
        with pytest.raises(AssertionError, match="output 0 differs"):
            compare(lambda x: x * x, lambda x: x * x + 1.0, [leaf(0.3)])

    def test_another_shape_is_loud(self) -> None:
        with pytest.raises(AssertionError, match="nested gives outputs"):
            compare(lambda x: x, ops.sum, [leaf(0.3, 0.7)])

    def test_nan_against_a_number_is_loud(self) -> None:
        with pytest.raises(AssertionError, match="output 0 differs"):
            compare(lambda x: x, lambda x: x * np.nan, [leaf(0.3)])

    def test_it_needs_an_input_with_a_gradient(self) -> None:
        with pytest.raises(InputError, match="requires a gradient"):
            compare(ops.sin, ops.sin, [tensor(0.3)])

    def test_kept_graphs_are_counted_as_nested_ones(self) -> None:
        x = tensor(np.linspace(0, 1, 100), requires_grad=True)
        report = compare(wave, combine(wave, save="all"), [x])
        assert report.combined.nodes == 1
        assert report.nested.bytes_saved >= 16 * 100 * ITEM
        assert 0 <= report.combined.bytes_saved - report.nested.bytes_saved <= 100 * ITEM  # and the output

    def test_a_leaf_that_no_node_saves_is_not_counted(self) -> None:
        assert compare(lambda x: x + 1.0, lambda x: 1.0 + x, leaf(0.3, 0.7)).nested.bytes_saved == 0

    def test_one_memory_is_counted_once(self) -> None:
        x = tensor(np.ones(100), requires_grad=True)
        assert compare(lambda x: x * x + ops.sin(x), checkpointed_sum, [x]).nested.bytes_saved == 100 * ITEM

    def test_the_report_is_readable(self) -> None:
        text = str(compare(nested, combine(nested), [leaf(0.3), leaf(0.7)]))
        assert "nested:   nodes 7" in text
        assert "combined: nodes 1" in text
        assert "us" in text and "bytes saved" in text


def checkpointed_sum(x: Tensor) -> Any:
    return checkpoint(lambda x: x * x + ops.sin(x), x)


# --- worked examples: the same function combined, nested and hybrid


class WrongSquare(Square):
    """x^2 with a wrong factor in its adjoint."""

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return x.data * adj.data


class SumCombined(Function):
    """x^2 + sin y in one Function."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(x, y)
        return x.data**2 + np.sin(y.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return adj.data * 2 * x.data, adj.data * np.cos(y.data)


class ProductCombined(Function):
    """x^2 sin y in one Function."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(x, y)
        return x.data**2 * np.sin(y.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return adj.data * 2 * x.data * np.sin(y.data), adj.data * x.data**2 * np.cos(y.data)


def sum_nested(x: Tensor, y: Tensor) -> Tensor:
    return x**2 + ops.sin(y)


def product_nested(x: Tensor, y: Tensor) -> Tensor:
    return x**2 * ops.sin(y)


class SumHybrid(Function):
    """x^2 + sin y in one Function that applies others and uses their backward."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Any:
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        with enable_grad():
            z = Square.apply(x) + ops.sin(y)
        ctx.save_for_backward(x, y, z)
        return z.detach()

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        x, y, z = ctx.saved_tensors
        return grad(z, (x, y), [adj], retain_graph=True)


class ProductHybrid(Function):
    """x^2 sin y with an inner graph of the factors alone: the product's adjoint is written by hand."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Any:
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        with enable_grad():
            square, sine = Square.apply(x), ops.sin(y)
        ctx.save_for_backward(x, y, square, sine)
        return square.data * sine.data

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        x, y, square, sine = ctx.saved_tensors
        return grad((square, sine), (x, y), [adj.data * sine.data, adj.data * square.data], retain_graph=True)


@pytest.mark.parametrize(
    ("nested", "combined", "hybrid", "by_x", "by_y"),
    [
        (sum_nested, SumCombined, SumHybrid, 3.0, np.cos(0.5)),
        (product_nested, ProductCombined, ProductHybrid, 3.0 * np.sin(0.5), 2.25 * np.cos(0.5)),
    ],
    ids=["x^2 + sin y", "x^2 sin y"],
)
def test_combined_nested_and_hybrid_agree(nested: Any, combined: Any, hybrid: Any, by_x: float, by_y: float) -> None:
    for one in (combined.apply, hybrid.apply, combine(nested), combine(nested, save="all")):
        report = compare(nested, one, [leaf(1.5, -0.3), leaf(0.5, 2.0)])
        assert (report.nested.nodes, report.combined.nodes) == (3, 1)
        x, y = leaf(1.5), leaf(0.5)
        one(x, y).backward()
        assert x.grad is not None and x.grad.item() == pytest.approx(by_x, rel=TOLERANCE)
        assert y.grad is not None and y.grad.item() == pytest.approx(by_y, rel=TOLERANCE)


@pytest.mark.parametrize("hybrid", [SumHybrid, ProductHybrid])
class TestHybrid:
    def test_the_outer_graph_decides_how_long_the_inner_one_lives(self, hybrid: Any) -> None:
        x, y = leaf(1.5), leaf(0.5)
        z = hybrid.apply(x, y)
        assert gradients(z, [x, y]) == gradients(z, [x, y])  # both retain the graph
        z.backward()
        with pytest.raises(GraphError, match="freed by an earlier backward"):
            z.backward()

    def test_memory_is_free_without_a_garbage_collection(self, hybrid: Any) -> None:
        x, y = leaf(1.5, 1.0), leaf(0.5, 1.0)
        gc.disable()
        try:
            z = hybrid.apply(x, y)
            inner = weakref.ref(z.grad_fn._saved[2].grad_fn)
            assert inner() is not None
            del z
            assert inner() is None
        finally:
            gc.enable()

    @pytest.mark.skipif(not DOUBLE, reason="finite differences need f64")
    def test_the_gradient_agrees_with_finite_differences(self, hybrid: Any) -> None:
        gradcheck(hybrid.apply, [leaf(1.5, -0.3), leaf(0.5, 2.0)])


def loss(x1: Tensor, x2: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    """L = 1 - x5 of a network of two layers, in which w1 is used twice."""
    x3, x4 = w1 * x1, w1 * x2
    x5 = w2 * x3 + w3 * x4
    return 1.0 - x5


@pytest.mark.parametrize("way", [loss, combine(loss), combine(loss, save="all")], ids=["nested", "inputs", "all"])
def test_a_weight_that_is_used_twice_gets_both_parts(way: Any) -> None:
    inputs = [leaf(value) for value in (1.0, 2.0, 1.0, 2.0, 3.0)]
    assert gradients(way(*inputs), inputs) == [-2.0, -3.0, -8.0, -1.0, -2.0]
