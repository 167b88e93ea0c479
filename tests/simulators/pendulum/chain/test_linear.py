"""Small linear systems are solved as NumPy solves them."""

import functools
from types import SimpleNamespace
from typing import no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulators.pendulum.chain import linear

from ....helpers.rounding import assert_equal_but_for_rounding


@functools.cache
@no_type_check
def kernels(n: int) -> SimpleNamespace:
    real = runtime.real()
    matrices = ti.types.ndarray(dtype=ti.types.matrix(n, n, real), ndim=1)
    vectors = ti.types.ndarray(dtype=ti.types.vector(n, real), ndim=1)

    @kernel
    def cholesky(A: matrices, x: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            x[b] = linear.solve(linear.factor(A[b]), x[b])

    @kernel
    def eliminate(A: matrices, x: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            x[b] = linear.eliminate(A[b], x[b])

    return SimpleNamespace(cholesky=cholesky, eliminate=eliminate)


def solve(name: str, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve in a kernel, which leaves the matrix as it is."""
    matrix, x = A[None].copy(), b[None].copy()
    getattr(kernels(len(b)), name)(matrix, x)
    np.testing.assert_array_equal(matrix[0], A)
    return x[0]


@pytest.mark.parametrize("n", [1, 2, 3, 16])
def test_solutions_are_those_of_numpy(n: int) -> None:
    random = np.random.default_rng(n)
    A, b = random.normal(size=(n, n)), random.normal(size=n)
    np.testing.assert_allclose(solve("eliminate", A, b), np.linalg.solve(A, b), rtol=1e-10)
    definite = A @ A.T + np.eye(n)
    np.testing.assert_allclose(solve("cholesky", definite, b), np.linalg.solve(definite, b), rtol=1e-10)


def test_a_factor_reads_the_lower_triangle_alone() -> None:
    random = np.random.default_rng(4)
    A, b = random.normal(size=(4, 4)), random.normal(size=4)
    definite = A @ A.T + np.eye(4)
    np.testing.assert_allclose(solve("cholesky", np.tril(definite), b), np.linalg.solve(definite, b), rtol=1e-10)


def test_elimination_takes_its_pivots_from_below() -> None:
    A, b = np.array([[0.0, 2.0, 1.0], [1.0, 1e-30, 3.0], [4.0, 1.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    assert_equal_but_for_rounding(solve("eliminate", A, b), np.linalg.solve(A, b), ulps=64)
