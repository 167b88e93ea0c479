"""Composition of functions: nested, checkpointed and combined graphs give the same values and gradients."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

from simphys.autograd import (
    Context,
    Function,
    GraphError,
    InputError,
    Tensor,
    enable_grad,
    grad,
    no_grad,
    ops,
    runtime,
    tensor,
)
from simphys.autograd.compose.pipe import combine, compose, pipe
from simphys.autograd.graph import ancestors
from simphys.autograd.look.compare import compare
from simphys.autograd.proof.gradcheck import gradcheck

pytestmark = pytest.mark.gpu

DOUBLE = runtime.real_dtype() == np.float64
TOLERANCE = 1e-12 if DOUBLE else 1e-5
ITEM = np.dtype(runtime.real_dtype()).itemsize
SAVE: list[Any] = ["inputs", "all"]


def leaf(*values: float) -> Tensor:
    return tensor(values[0] if len(values) == 1 else values, requires_grad=True)


def graph(*outputs: Tensor) -> list[Any]:
    """The graph as text: each node's name, results and the sources of its inputs."""
    nodes = ancestors(outputs)
    number = {node.sequence: i for i, node in enumerate(nodes)}
    return [
        (node.name(), node.outputs, [(None if up is None else number[up.sequence], i) for up, i in node.next_functions])
        for node in nodes
    ]


def gradients(output: Tensor, inputs: list[Tensor]) -> list[float]:
    """The gradients of a scalar by inputs that all have one."""
    found = grad(output, inputs, retain_graph=True)
    return [float(g) for g in found if g is not None]


def count(output: Tensor) -> int:
    """Number of nodes without leaves."""
    return sum(node.name() != "AccumulateGrad" for node in ancestors([output]))


def turn(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x * ops.cos(y), x * ops.sin(y)


def shear(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x + y * y, y


def product(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def nested(x: Tensor, y: Tensor) -> Tensor:
    return product(*shear(*turn(x, y)))


def wave(x: Tensor) -> Tensor:
    for _ in range(16):
        x = ops.sin(x) * 1.5
    return x


class Square(Function):
    """x^2"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        return np.square(x.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x.data * adj.data


class TestPipeAndCompose:
    def test_pipe_makes_the_graph_of_the_nested_call(self) -> None:
        x = leaf(0.3, 0.7)
        assert graph(pipe(x, ops.sin, ops.exp, ops.sum)) == graph(ops.sum(ops.exp(ops.sin(x))))

    def test_compose_makes_the_graph_of_the_nested_call(self) -> None:
        x = leaf(0.3, 0.7)
        assert graph(compose(ops.sum, ops.exp, ops.sin)(x)) == graph(ops.sum(ops.exp(ops.sin(x))))

    def test_a_tuple_of_results_becomes_the_next_arguments(self) -> None:
        x, y = leaf(0.3), leaf(0.7)
        expected = graph(nested(x, y))
        assert graph(pipe((x, y), turn, shear, product)) == expected
        assert graph(compose(product, shear, turn)(x, y)) == expected

    def test_the_values_are_the_nested_calls(self) -> None:
        x = leaf(0.3, 0.7)
        assert pipe(x, ops.sin, ops.exp).data.tolist() == ops.exp(ops.sin(x)).data.tolist()

    def test_nothing_to_compose_is_refused(self) -> None:
        with pytest.raises(InputError, match="one function or more"):
            compose()


@pytest.mark.parametrize("save", SAVE)
class TestCombine:
    def test_one_node_gives_the_nested_values_and_gradients(self, save: Any) -> None:
        report = compare(nested, combine(turn, shear, product, save=save), [leaf(0.3, -1.2), leaf(0.7, 0.2)])
        assert (report.nested.nodes, report.combined.nodes) == (count(nested(leaf(1.0), leaf(1.0))), 1)

    def test_the_name_of_the_node_lists_its_functions(self, save: Any) -> None:
        y = combine(ops.sin, Square.apply, partial(ops.sum, axis=0), save=save)(leaf(0.3, 0.7))
        assert y.grad_fn is not None
        assert y.grad_fn.name() == "Combine(sin, Square, sum)Backward"

    def test_several_results(self, save: Any) -> None:
        x, y = leaf(0.3), leaf(0.7)
        one = combine(turn, shear, save=save)(x, y)
        many = shear(*turn(x, y))
        assert type(one) is tuple
        for a, b in zip(one, many, strict=True):
            assert gradients(a, [x, y]) == pytest.approx(gradients(b, [x, y]), rel=TOLERANCE)

    def test_the_gradient_agrees_with_finite_differences(self, save: Any) -> None:
        if DOUBLE:
            gradcheck(combine(turn, shear, product, save=save), [leaf(0.3, -1.2), leaf(0.7, 0.2)])

    def test_a_combined_function_is_combined_again(self, save: Any) -> None:
        inner = combine(ops.sin, ops.exp, save=save)
        report = compare(
            lambda x: ops.sum(ops.exp(ops.sin(x))), combine(inner, ops.sum, save=save), [leaf(0.1, 0.2, 0.3)]
        )
        assert report.combined.nodes == 1

    def test_an_input_without_gradient_gets_none(self, save: Any) -> None:
        x, c = leaf(0.3), tensor(2.0)
        y = combine(product, ops.sin, save=save)(x, c)
        y.backward()
        assert c.grad is None
        assert x.grad is not None and x.grad.item() == pytest.approx(2 * np.cos(0.6), rel=TOLERANCE)

    def test_a_captured_tensor_is_refused(self, save: Any) -> None:
        x, w = leaf(0.3), leaf(2.0)
        with pytest.raises(GraphError, match="Pass all such tensors as inputs"):
            combine(lambda x: x * w, save=save)(x).backward()

    def test_a_captured_intermediate_is_refused(self, save: Any) -> None:
        x = leaf(0.3)
        h = ops.sin(x)
        with pytest.raises(GraphError, match="Pass all such tensors as inputs"):
            combine(lambda x: x * h, save=save)(x).backward()

    def test_a_captured_intermediate_whose_graph_is_freed_is_refused(self, save: Any) -> None:
        x = leaf(0.3)
        h = ops.sin(x)
        h.backward()
        with pytest.raises(GraphError, match="SinBackward that was freed by an earlier backward"):
            combine(lambda x: x * h, save=save)(x).backward()

    def test_a_captured_tensor_is_refused_when_no_input_needs_a_gradient(self, save: Any) -> None:
        w = leaf(2.0)
        with pytest.raises(GraphError, match="Pass all such tensors as inputs"):
            combine(lambda x: x * w, save=save)(tensor(0.3))

    def test_a_captured_constant_stays_a_constant(self, save: Any) -> None:
        constant = tensor(2.0)
        y = combine(lambda x: (x * constant, constant), save=save)(leaf(0.3))
        assert y[0].requires_grad
        assert not constant.requires_grad

    def test_a_second_backward_raises(self, save: Any) -> None:
        y = combine(ops.sin, ops.exp, save=save)(leaf(0.3))
        y.backward()
        with pytest.raises(GraphError, match="freed by an earlier backward"):
            y.backward()

    def test_retain_graph_allows_a_second_backward(self, save: Any) -> None:
        x = leaf(0.3)
        y = combine(ops.sin, ops.exp, save=save)(x)
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad is not None
        assert x.grad.item() == pytest.approx(2 * np.cos(0.3) * np.exp(np.sin(0.3)), rel=TOLERANCE)

    def test_a_changed_input_raises(self, save: Any) -> None:
        x = leaf(0.3)
        y = combine(ops.sin, ops.exp, save=save)(x)
        with x.writable() as values:
            values[...] = 0.4
        with pytest.raises(GraphError, match=r"saved tensor 0 .* was changed after forward"):
            y.backward()

    def test_without_recording_there_is_no_node(self, save: Any) -> None:
        with no_grad():
            assert combine(ops.sin, ops.exp, save=save)(leaf(0.3)).grad_fn is None
        assert combine(ops.sin, ops.exp, save=save)(tensor(0.3)).grad_fn is None

    def test_memory_is_free_without_a_garbage_collection(self, save: Any) -> None:
        x = leaf(*np.linspace(0.0, 1.0, 8))
        h = x * 2.0
        memory = weakref.ref(h.data)
        gc.disable()
        try:
            y = combine(ops.sin, ops.exp, ops.sum, save=save)(h)
            del h
            assert memory() is not None
            y.backward()
            assert memory() is None
        finally:
            gc.enable()

    def test_the_results_of_fn_are_checked(self, save: Any) -> None:
        with pytest.raises(InputError, match="a Tensor or a plain tuple of Tensors is returned"):
            combine(lambda x: [x], save=save)(leaf(0.3))

    def test_a_result_that_is_an_input(self, save: Any) -> None:
        x, y = leaf(0.3), leaf(0.7)
        a, b = combine(lambda x, y: (y, x * y), save=save)(x, y)
        assert gradients(a + b, [x, y]) == pytest.approx([0.7, 1.3], rel=TOLERANCE)
        assert y.is_leaf and not np.shares_memory(a.data, y.data)

    def test_one_result_twice(self, save: Any) -> None:
        def twice(x: Tensor) -> tuple[Tensor, Tensor]:
            y = ops.sin(x)
            return y, y

        x = leaf(0.3)
        assert gradients(product(*combine(twice, save=save)(x)), [x]) == pytest.approx([np.sin(0.6)], rel=TOLERANCE)

    def test_a_changed_captured_constant_raises(self, save: Any) -> None:
        factor = tensor(2.0)
        y = combine(lambda x: x * factor, save=save)(leaf(0.3))
        with factor.writable() as values:
            values[...] = 3.0
        with pytest.raises(GraphError, match=r"changed after forward|gave other results"):
            y.backward()

    def test_gradients_inside_the_function(self, save: Any) -> None:
        def slope(x: Tensor) -> Tensor:
            with enable_grad():
                (found,) = grad(ops.sin(x), x)
            assert found is not None
            return x * found

        x = leaf(0.3)
        y = combine(slope, save=save)(x)
        assert gradients(y, [x]) == pytest.approx([np.cos(0.3)], rel=TOLERANCE)
        with no_grad():
            assert combine(slope, save=save)(x).item() == y.item()


def test_a_constant_result_of_a_kept_graph_needs_no_gradient() -> None:
    y, c = combine(lambda x: (ops.sin(x), x.detach() * 2.0), save="all")(leaf(0.3))
    assert (y.requires_grad, c.requires_grad) == (True, False)


def test_a_replay_with_another_mask_of_the_same_sum_is_noticed() -> None:
    masks = iter(np.eye(4)[[0, 1]])
    x = tensor(np.ones(4), requires_grad=True)
    loss = combine(lambda x: x * next(masks))(x).sum()
    with pytest.raises(GraphError, match="gave other results when it ran again"):
        loss.backward()
