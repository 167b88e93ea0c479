"""Small linear systems are solved at any offset in an array."""

from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulators.pendulum.chain import linear


@no_type_check
def kernels() -> SimpleNamespace:
    f, reals = linear.functions(runtime.real()), ti.types.ndarray(dtype=runtime.real(), ndim=1)

    @kernel
    def cholesky(A: reals, at: ti.i32, x: reals, x0: ti.i32, n: ti.i32):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.factor(A, at, n)
            f.solve(A, at, x, x0, n)

    @kernel
    def transpose(A: reals, at: ti.i32, x: reals, x0: ti.i32, n: ti.i32):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.transpose(A, at, n)
            f.eliminate(A, at, x, x0, n)

    return SimpleNamespace(cholesky=cholesky, transpose=transpose)


SOLVERS = kernels()


def solve(solver: Any, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve in a kernel, at offsets within larger arrays, the rest of which must stay unchanged."""
    n = len(b)
    matrices, vectors = np.full(2 * n * n + 7, 3.0), np.full(3 * n, 5.0)
    matrices[7 : 7 + n * n], vectors[n : 2 * n] = A.ravel(), b
    solver(matrices, 7, vectors, n, n)
    assert (matrices[:7] == 3).all() and (matrices[7 + n * n :] == 3).all()
    assert (vectors[:n] == 5).all() and (vectors[2 * n :] == 5).all()
    return vectors[n : 2 * n]


@pytest.mark.parametrize("n", [1, 2, 3, 16])
def test_solutions_are_those_of_numpy(n: int) -> None:
    random = np.random.default_rng(n)
    A, b = random.normal(size=(n, n)), random.normal(size=n)
    np.testing.assert_allclose(solve(SOLVERS.transpose, A, b), np.linalg.solve(A.T, b), rtol=1e-10)
    definite = A @ A.T + np.eye(n)
    np.testing.assert_allclose(solve(SOLVERS.cholesky, definite, b), np.linalg.solve(definite, b), rtol=1e-10)


def test_elimination_takes_its_pivots_from_below() -> None:
    A, b = np.array([[0.0, 2.0, 1.0], [1.0, 1e-30, 3.0], [4.0, 1.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(solve(SOLVERS.transpose, A, b), np.linalg.solve(A.T, b), rtol=1e-14)
