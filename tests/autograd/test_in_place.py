"""Functions that write to their inputs: declared by mark_dirty they are right, undeclared they raise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, Tensor, no_grad, ops, tensor


class Double(Function):
    """x *= 2"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        with x.writable() as values:
            values *= 2
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> np.ndarray:
        return 2 * adj.data


class SquareInPlace(Function):
    """x *= x, saving its result: x = sqrt(y) for positive x."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        with x.writable() as values:
            values *= values
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> np.ndarray:
        (y,) = ctx.saved_tensors
        return 2 * np.sqrt(y.data) * adj.data


class AddTo(Function):
    """target += x; returns (target, x's sum)."""

    @staticmethod
    def forward(ctx: Context, target: Tensor, x: Tensor) -> tuple[Tensor, Any]:
        with target.writable() as values:
            values += x.data
        ctx.mark_dirty(target)
        ctx.shape = x.shape
        return target, np.sum(x.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor, adj_sum: Tensor) -> tuple[np.ndarray, np.ndarray]:
        return adj.data, adj.data + np.full(ctx.shape, adj_sum.data)


def leaf(values: Any) -> Tensor:
    return tensor(values, requires_grad=True)


def gradient(x: Tensor) -> Any:
    assert x.grad is not None
    return x.grad.data.tolist()


def test_a_dirty_input_is_the_result_and_keeps_its_identity() -> None:
    x = leaf([1.0, 2.0])
    y = x * 3.0
    z = Double.apply(y)
    assert z is y and y.data.tolist() == [6.0, 12.0]
    assert y.grad_fn is not None and y.grad_fn.name() == "DoubleBackward"
    ops.sum(y).backward()
    assert gradient(x) == [6.0, 6.0]


def test_a_saved_result_written_in_place_is_read_as_forward_left_it() -> None:
    x = leaf([1.0, 3.0])
    y = SquareInPlace.apply(x * 1.0)
    ops.sum(y).backward()
    assert gradient(x) == [2.0, 6.0]


def test_in_place_writes_to_one_of_several_results() -> None:
    x = leaf([1.0, 2.0])
    target = tensor([10.0, 20.0])
    total, s = AddTo.apply(target, x)
    assert total is target and target.requires_grad
    (ops.sum(total * total) + s).backward()
    assert gradient(x) == [23.0, 45.0]


def test_a_node_that_saved_a_dirty_input_before_raises() -> None:
    x = leaf([1.0, 2.0])
    y = x * 3.0
    square = y * y
    Double.apply(y)
    with pytest.raises(GraphError, match=r"MulBackward: saved tensor 0 .* version 1, saved at version 0"):
        ops.sum(square).backward()


def test_a_leaf_that_requires_a_gradient_cannot_be_written_to() -> None:
    with pytest.raises(GraphError, match=r"Double: a leaf .* cannot be written to in place"):
        Double.apply(leaf([1.0]))


def test_without_recording_a_leaf_can() -> None:
    x = leaf([1.0])
    with no_grad():
        assert Double.apply(x) is x
    assert x.data.tolist() == [2.0] and x.is_leaf and x.requires_grad and x.version == 1


def test_a_write_that_is_not_declared_raises() -> None:
    class Undeclared(Double):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            with x.writable() as values:
                values *= 2
            return x.data * 1.0

    for recorded in (True, False):
        x = leaf([1.0]) * 1.0 if recorded else tensor([1.0])
        with pytest.raises(GraphError, match=r"Undeclared: forward wrote to input 0 .*mark_dirty"):
            Undeclared.apply(x)


def test_a_dirty_input_that_is_not_returned_or_no_input_raises() -> None:
    class Kept(Double):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            ctx.mark_dirty(x)
            return x.data * 1.0

    class Other(Double):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            other = tensor([1.0])
            ctx.mark_dirty(other)
            return other

    for function in (Kept, Other):
        with pytest.raises(GraphError, match="marked as dirty"):
            function.apply(leaf([1.0]) * 1.0)


def test_marking_alone_makes_a_new_version() -> None:
    """As in PyTorch, mark_dirty declares any write, also one that raised no version."""

    class Marked(Double):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            ctx.mark_dirty(x)
            return x

    y = leaf([1.0]) * 1.0
    Marked.apply(y)
    assert y.version == 1


@pytest.mark.parametrize("times", ["before", "after", "both"])
def test_a_retained_gradient_is_of_the_values_after_the_write(times: str) -> None:
    x = tensor([1.0, 3.0], requires_grad=True)
    y = x + 1
    if times != "after":
        y.retain_grad()
    Double.apply(y)
    if times != "before":
        y.retain_grad()
    (5 * y).sum().backward()
    assert y.grad is not None and y.grad.data.tolist() == [5, 5]
    assert x.grad is not None and x.grad.data.tolist() == [10, 10]
