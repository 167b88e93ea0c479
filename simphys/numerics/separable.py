"""Direct solution of the Poisson problem on a box by fast diagonalization (Lynch, Rice and Thomas 1964).

A is a sum of matrices along the axes, T_x + T_y (+ T_z), with T_a = Q_a diag(lambda_a) Q_a^T:

    z = Q_x Q_y (Q_x^T Q_y^T b) / (lambda_x + lambda_y).

This takes two products with an n x n matrix per axis: 4 n^3 multiplications in 2-D, which a linear algebra library does
near the peak speed of the machine. Constants, for which A is singular without an open side, are left out of z.
"""

from __future__ import annotations

import functools

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.tensor import Array

from .poisson import Poisson


class DirectSolver:
    """Solver for z = A^+ b, a symmetric map, to rounding."""

    def __init__(self, system: Poisson) -> None:
        self.b, self.z = system.array(), system.array()
        self._from, self._to = system.inside(self.b), system.inside(self.z)
        pairs = [np.linalg.eigh(system.matrix(axis)) for axis in range(system.dim)]
        total = functools.reduce(np.add.outer, [values for values, _ in pairs])
        regular = total > 1e-12 * total.max()
        real = runtime.real_dtype()
        self._inverse = np.divide(1.0, total, out=np.zeros_like(total), where=regular).astype(real)
        self._vectors = [np.ascontiguousarray(vectors, real) for _, vectors in pairs]

    def solve(self) -> None:
        """Compute z from b."""
        x = self._from
        for axis, vectors in enumerate(self._vectors):
            x = _multiply_along(axis, vectors.T, x)
        x *= self._inverse
        for axis, vectors in enumerate(self._vectors):
            x = _multiply_along(axis, vectors, x)
        self._to[...] = x


def _multiply_along(axis: int, matrix: Array, x: Array) -> Array:
    """Multiply x by the matrix along an axis, into a new array."""
    if axis == x.ndim - 1:
        return x @ matrix.T
    rows = x.reshape(-1, x.shape[axis], int(np.prod(x.shape[axis + 1 :])))
    return np.matmul(matrix, rows).reshape(x.shape)
