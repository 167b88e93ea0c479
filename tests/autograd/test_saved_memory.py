"""The memory that nodes keep: each counted once, with the whole memory of views, and that of inner graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, Tensor, ops, runtime, tensor
from simphys.autograd.compose.pipe import combine
from simphys.autograd.look.saved_memory import find_saved, saved_bytes
from simphys.autograd.node import Node

pytestmark = pytest.mark.gpu

ITEM = np.dtype(runtime.real_dtype()).itemsize


class Keeping(Function):
    """2 x, which keeps the given object as an attribute."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, keep: Any) -> Any:
        ctx.kept = keep
        return 2.0 * x.data

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        return 2.0 * adj.data, None


def leaf() -> Tensor:
    return tensor(np.linspace(0.1, 1.0, 100), requires_grad=True)


def node(y: Tensor) -> Node:
    assert y.grad_fn is not None
    return y.grad_fn


def kept(keep: Any) -> int:
    memory, _ = find_saved(node(Keeping.apply(leaf(), keep)))
    return sum(array.nbytes for array in memory.values())


def test_arrays_and_tensors_alone_and_in_tuples_and_lists_count() -> None:
    array, other = np.zeros(10), Tensor(np.zeros(20))
    assert kept(array) == 80
    assert kept(other) == 160
    assert kept((array, other)) == kept([array, other]) == 240
    assert kept("text") == kept(None) == kept(3.0) == 0


def test_one_memory_counts_once() -> None:
    array = np.zeros(10)
    assert kept((array, array, array[2:], Tensor(array))) == 80


def test_a_view_keeps_the_whole_memory() -> None:
    assert kept(np.zeros((10, 10))[2:, 3].reshape(2, 4)) == 800


def test_a_node_alone_and_with_all_before_it() -> None:
    y = ops.exp(ops.sin(leaf()))
    assert saved_bytes([node(y)], since=node(y).sequence) == 100 * ITEM
    assert saved_bytes([node(y)]) == 200 * ITEM


def test_a_node_counts_with_its_inner_graph_but_not_with_its_inputs() -> None:
    y = combine(ops.exp, ops.exp, save="all")(ops.exp(leaf()))
    memory, makers = find_saved(node(y))
    assert sum(array.nbytes for array in memory.values()) == 200 * ITEM  # input and output
    assert [maker.name() for maker in makers if maker.sequence > node(y).sequence] == ["ExpBackward"]
    assert saved_bytes([node(y)], since=node(y).sequence) == 300 * ITEM
    assert saved_bytes([node(y)]) == 300 * ITEM  # the node before it keeps its output, this one's input
