"""Wrong shapes, parts without a gradient, and memory that is not shared."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import grad, ops, tensor


def test_results_do_not_share_memory_with_their_inputs() -> None:
    x = tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    results = [x.reshape(6), x.T, x[0], x[:], x.clone(), ops.broadcast_to(x, (2, 3)), ops.sum(x, ()), ops.max(x, ())]
    for y in results:
        assert not np.shares_memory(x.data, y.data)
        assert y.data.flags.c_contiguous


def test_broadcasting_to_nothing_gives_a_zero_adjoint() -> None:
    x = tensor([1.0, 2.0], dtype=np.float64, requires_grad=True)
    (adj,) = grad(ops.broadcast_to(x, (0, 2)), x, [np.ones((0, 2))])
    assert adj is not None and adj.data.tolist() == [0.0, 0.0]


def test_joined_constants_receive_no_adjoint() -> None:
    x = tensor([1.0, 2.0], dtype=np.float64, requires_grad=True)
    y = ops.concatenate([np.ones(3), x, [7.0], x])
    assert y.data.tolist() == [1.0, 1.0, 1.0, 1.0, 2.0, 7.0, 1.0, 2.0]
    (adj,) = grad(y, x, [np.arange(8.0)])
    assert adj is not None and adj.data.tolist() == [3.0 + 6.0, 4.0 + 7.0]


def test_a_double_transpose_and_a_reshape_between_give_the_adjoint_its_layout_back() -> None:
    x = tensor(np.arange(6.0).reshape(2, 3), dtype=np.float64, requires_grad=True)
    u = np.arange(6.0).reshape(3, 2)
    (adj,) = grad(x.T.reshape(2, 3).T, x, [u])
    assert adj is not None and adj.data.flags.c_contiguous
    np.testing.assert_array_equal(adj.data, u.T.reshape(3, 2).T)


def test_shapes_that_do_not_fit_raise_numpys_error() -> None:
    x = tensor([1.0, 2.0, 3.0])
    with pytest.raises(ValueError):
        ops.reshape(x, (2, 2))
    with pytest.raises(ValueError):
        ops.broadcast_to(x, (2, 2))
    with pytest.raises(ValueError):
        ops.stack([x, [1.0]])
    with pytest.raises(ValueError):
        ops.concatenate([x.reshape(1, 3), np.ones((1, 2))])
    with pytest.raises(ValueError):
        ops.transpose(x, (0, 1))
