"""Elementary functions at the ends of their domains."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import ops, tensor


def test_the_square_root_of_zero_has_an_infinite_slope_and_warns() -> None:
    x = tensor([0.0, 4.0], requires_grad=True)
    with pytest.warns(RuntimeWarning):
        ops.sum(ops.sqrt(x)).backward()
    assert x.grad is not None and x.grad.data.tolist() == [np.inf, 0.25]


def test_the_logarithm_of_zero_has_an_infinite_slope_and_warns() -> None:
    x = tensor(0.0, requires_grad=True)
    with pytest.warns(RuntimeWarning):
        y = ops.log(x)
        y.backward()
    assert y.item() == -np.inf
    assert x.grad is not None and x.grad.item() == np.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid_and_softplus_neither_overflow_nor_lose_the_small_end(dtype: type) -> None:
    x = tensor([-1000.0, -40.0, 0.0, 40.0, 1000.0], dtype=dtype, requires_grad=True)
    tail = np.exp(-40.0)
    tolerance = 1e-5 if dtype is np.float32 else 1e-13  # of e^-40: 40 roundings
    np.testing.assert_allclose(ops.sigmoid(x).data, [0, tail, 0.5, 1, 1], rtol=tolerance)
    np.testing.assert_allclose(ops.softplus(x).data, [0, tail, np.log(2), 40, 1000], rtol=tolerance)
    ops.sum(ops.softplus(x)).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.data, [0, tail, 0.5, 1, 1], rtol=tolerance)
