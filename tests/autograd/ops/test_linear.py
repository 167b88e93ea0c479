"""The kink of the norm; products with a batch."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import grad, no_grad, ops, tensor


@pytest.mark.filterwarnings("error")
def test_the_norm_has_gradient_0_at_0() -> None:
    x = tensor([[3.0, 4.0], [0.0, 0.0]], dtype=np.float64, requires_grad=True)
    y = ops.norm(x, -1)
    assert y.data.tolist() == [5.0, 0.0]
    node = y.grad_fn
    assert node is not None
    with no_grad():
        assert node.function.jvp(node, np.ones((2, 2)), None, None).tolist() == pytest.approx([1.4, 0.0], rel=1e-14)
    (adj,) = grad(y, x, [np.ones(2)])
    assert adj is not None and adj.data.ravel().tolist() == pytest.approx([0.6, 0.8, 0.0, 0.0], rel=1e-14)


def test_one_matrix_for_a_batch_receives_the_sum_over_the_batch() -> None:
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(5, 4, 3)), tensor(rng.normal(size=(3, 2)), dtype=np.float64, requires_grad=True)
    u = rng.normal(size=(5, 4, 2))
    (adj,) = grad(ops.matmul(x, w), w, [u])
    assert adj is not None
    np.testing.assert_allclose(adj.data, sum(a.T @ b for a, b in zip(x, u, strict=True)), rtol=1e-13)


@pytest.mark.parametrize(("x", "y"), [(2.0, [1.0]), ([1.0], 2.0), ([1.0, 2.0], [1.0])])
def test_factors_that_do_not_fit_raise_numpys_error(x: object, y: object) -> None:
    with pytest.raises(ValueError):
        ops.matmul(x, y)
