"""Small dense linear systems in flat arrays: matrices [n, n], row-major from index `at` on, and right-hand sides [n].

n is an argument rather than a compile-time constant, so one kernel serves chains of any length. Sources: Golub and Van
Loan, Matrix Computations, 4th ed., algorithms 4.2.1 (Cholesky) and 3.4.1 (Gaussian elimination with partial pivoting).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Factorizations and solutions, in place."""

    @ti.func
    def factor(A: ti.template(), at, n):
        """Overwrite the lower triangle of a symmetric positive definite A with its Cholesky factor L, A = L L^T."""
        for j in range(n):
            square = A[at + j * n + j]
            for k in range(j):
                square -= A[at + j * n + k] * A[at + j * n + k]
            root = ti.sqrt(square)
            A[at + j * n + j] = root
            for i in range(j + 1, n):
                total = A[at + i * n + j]
                for k in range(j):
                    total -= A[at + i * n + k] * A[at + j * n + k]
                A[at + i * n + j] = total / root

    @ti.func
    def solve(A: ti.template(), at, x: ti.template(), at_x, n):
        """Solve x = A^-1 x, given the Cholesky factor of A."""
        for i in range(n):
            total = x[at_x + i]
            for k in range(i):
                total -= A[at + i * n + k] * x[at_x + k]
            x[at_x + i] = total / A[at + i * n + i]
        for back in range(n):
            i = n - 1 - back
            total = x[at_x + i]
            for k in range(i + 1, n):
                total -= A[at + k * n + i] * x[at_x + k]
            x[at_x + i] = total / A[at + i * n + i]

    @ti.func
    def eliminate(A: ti.template(), at, x: ti.template(), at_x, n):
        """Solve x = A^-1 x for any invertible A, which is overwritten."""
        for j in range(n):
            pivot = j
            for i in range(j + 1, n):
                if ti.abs(A[at + i * n + j]) > ti.abs(A[at + pivot * n + j]):
                    pivot = i
            if pivot != j:
                for k in range(j, n):
                    swapped = A[at + j * n + k]
                    A[at + j * n + k] = A[at + pivot * n + k]
                    A[at + pivot * n + k] = swapped
                right = x[at_x + j]
                x[at_x + j] = x[at_x + pivot]
                x[at_x + pivot] = right
            for i in range(j + 1, n):
                part = A[at + i * n + j] / A[at + j * n + j]
                for k in range(j + 1, n):
                    A[at + i * n + k] = A[at + i * n + k] - part * A[at + j * n + k]
                x[at_x + i] = x[at_x + i] - part * x[at_x + j]
        for back in range(n):
            i = n - 1 - back
            total = x[at_x + i]
            for k in range(i + 1, n):
                total -= A[at + i * n + k] * x[at_x + k]
            x[at_x + i] = total / A[at + i * n + i]

    @ti.func
    def transpose(A: ti.template(), at, n):
        for i in range(n):
            for j in range(i):
                swapped = A[at + i * n + j]
                A[at + i * n + j] = A[at + j * n + i]
                A[at + j * n + i] = swapped

    @ti.func
    def add(x: ti.template(), at, value: real):
        """Add to x[at] without the atomic operation that x[at] += value would be.

        In an inner loop, `at` must depend on that loop's own index alone. If one loop adds to both x[i] and x[j] with
        i = j, Taichi 1.7.4 loses one of the two.
        """
        x[at] = x[at] + value

    return SimpleNamespace(factor=factor, solve=solve, eliminate=eliminate, transpose=transpose, add=add)
