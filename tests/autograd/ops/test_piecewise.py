"""The convention at each kink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, Tensor, grad, ops, tensor


def slopes(op: Callable[..., Tensor], *values: Any) -> list[Any]:
    inputs = [tensor(v, dtype=np.float64, requires_grad=True) for v in values]
    y = op(*inputs)
    return [None if adj is None else adj.data.tolist() for adj in grad(y, inputs, [np.ones(y.shape)])]


def test_abs_has_slope_0_at_0() -> None:
    assert slopes(ops.abs, [-2.0, 0.0, -0.0, 3.0]) == [[-1.0, 0.0, 0.0, 1.0]]


@pytest.mark.parametrize("op", [ops.maximum, ops.minimum])
def test_a_tie_of_two_gives_each_half(op: Callable[..., Tensor]) -> None:
    assert slopes(op, [1.0, 2.0], [1.0, 2.0]) == [[0.5, 0.5], [0.5, 0.5]]
    assert slopes(lambda x: op(x, 1.0), 1.0) == [0.5]
    x = tensor(1.0, dtype=np.float64, requires_grad=True)
    op(x, x).backward()
    assert x.grad is not None and x.grad.item() == 1.0


def test_the_tangent_at_a_tie_is_the_mean_of_both() -> None:
    node = ops.maximum(tensor(1.0, requires_grad=True), tensor(1.0, requires_grad=True)).grad_fn
    assert node is not None
    assert node.function.jvp(node, np.array(3.0), np.array(5.0)) == 4.0


def test_clip_counts_its_bounds_as_inside() -> None:
    assert slopes(lambda x: ops.clip(x, -1.0, 2.0), [-1.5, -1.0, 0.0, 2.0, 2.5]) == [[0.0, 1.0, 1.0, 1.0, 0.0]]


def test_clip_without_bounds_is_the_identity() -> None:
    assert slopes(ops.clip, [1.0, 2.0]) == [[1.0, 1.0]]


def test_clip_between_exchanged_bounds_is_the_upper_bound() -> None:
    assert ops.clip([0.0, 5.0], 3.0, 1.0).data.tolist() == [1.0, 1.0]
    assert slopes(lambda x: ops.clip(x, 3.0, 1.0), [0.0, 2.0, 5.0]) == [[0.0, 0.0, 0.0]]


def test_clip_refuses_bounds_that_ask_for_a_gradient() -> None:
    with pytest.raises(InputError, match=r"clip: bounds are constants.*Use maximum and minimum"):
        ops.clip([1.0, 2.0], tensor(0.0, requires_grad=True))


def test_where_sends_the_gradient_to_the_chosen_elements_only() -> None:
    assert slopes(lambda x, y: ops.where([True, False], x, y), [1.0, 2.0], [3.0, 4.0]) == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.filterwarnings("error")
def test_where_keeps_an_infinite_adjoint_from_the_other_elements() -> None:
    x, y = [tensor(v, dtype=np.float64, requires_grad=True) for v in (1.0, 0.0)]
    adjoints = grad(ops.where(True, x, y), (x, y), [np.inf])
    assert [None if adj is None else adj.item() for adj in adjoints] == [np.inf, 0.0]
