"""Ties, empty arrays and axes of reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simphys.autograd import Tensor, grad, ops, tensor


@pytest.mark.parametrize(("op", "sign"), [(ops.max, 1.0), (ops.min, -1.0)])
def test_tied_extremes_share_the_adjoint_evenly(op: Callable[..., Tensor], sign: float) -> None:
    x = tensor(sign * np.array([[1.0, 3.0, 3.0], [5.0, 5.0, 5.0]]), dtype=np.float64, requires_grad=True)
    (over_rows,) = grad(op(x, 1), x, [[2.0, 3.0]])
    assert over_rows is not None and over_rows.data.tolist() == [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    (over_all,) = grad(op(x), x, [6.0])
    assert over_all is not None and over_all.data.tolist() == [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]


def test_a_result_may_keep_the_reduced_axes() -> None:
    x = tensor(np.ones((2, 3, 4)), requires_grad=True)
    for op in (ops.sum, ops.mean, ops.max, ops.min, ops.norm):
        assert op(x, 1, keepdims=True).shape == (2, 1, 4)
        assert op(x, (0, -1), keepdims=True).shape == (1, 3, 1)
        assert op(x, (0, -1)).shape == (3,)


def test_the_mean_of_nothing_is_nan_and_its_adjoint_empty() -> None:
    x = tensor(np.zeros((0, 2)), requires_grad=True)
    with pytest.warns(RuntimeWarning):
        y = ops.mean(x, 0)
    assert np.isnan(y.data).all()
    y.backward(np.ones(2))
    assert x.grad is not None and x.grad.shape == (0, 2)


@pytest.mark.parametrize("op", [ops.max, ops.min])
def test_an_extreme_of_nothing_is_refused(op: Callable[..., Tensor]) -> None:
    with pytest.raises(ValueError):
        op(np.zeros(0))


def test_an_axis_that_is_not_there_is_refused() -> None:
    with pytest.raises(np.exceptions.AxisError):
        ops.sum(np.ones((2, 2)), 2)
