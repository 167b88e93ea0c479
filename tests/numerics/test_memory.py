"""Vectors and matrices in flat arrays have NumPy's memory layout."""

from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import memory


@no_type_check
def copying(dim: int) -> Any:
    """Kernel that copies element i of vectors v and matrices M to element n - 1 - i of others."""
    at, reals = memory.functions(runtime.real(), dim), ti.types.ndarray(dtype=runtime.real(), ndim=1)

    @kernel
    def reverse(v: reals, M: reals, n: ti.i32, v_new: reals, M_new: reals):
        for i in range(n):
            at.put_vector(v_new, n - 1 - i, at.vector(v, i))
            at.put_matrix(M_new, n - 1 - i, at.matrix(M, i))

    return reverse


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_reading_returns_the_values_written(dim: int) -> None:
    random = np.random.default_rng(dim)
    v, M = (random.normal(size=shape).astype(runtime.real_dtype()) for shape in ((5, dim), (5, dim, dim)))
    v_new, M_new = np.zeros_like(v), np.zeros_like(M)
    copying(dim)(v.ravel(), M.ravel(), 5, v_new.reshape(-1), M_new.reshape(-1))
    np.testing.assert_array_equal(v_new, v[::-1])
    np.testing.assert_array_equal(M_new, M[::-1])
