"""The Poisson problem on a box solved directly: fast diagonalization (Lynch, Rice and Thomas 1964).

A is a sum of matrices along each axis, T_x + T_y (+ T_z), and T_a = Q_a diag(lambda_a) Q_a^T:

    z = Q_x Q_y (Q_x^T Q_y^T b) / (lambda_x + lambda_y).

It costs two products with a matrix n by n for each axis: 4 n^3 multiplications in the plane, which a library of linear
algebra does near the machine's limit. Constants, which A does not see without an open side, are left out of z.
"""

from __future__ import annotations

import functools

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array

from .poisson import Poisson


class Direct:
    """z = A^+ b, a symmetric map, to rounding."""

    def __init__(self, system: Poisson) -> None:
        self.b, self.z = system.array(), system.array()
        self._from, self._to = system.inside(self.b), system.inside(self.z)
        pairs = [np.linalg.eigh(system.matrix(axis)) for axis in range(system.dim)]
        total = functools.reduce(np.add.outer, [values for values, _ in pairs])
        seen = total > 1e-12 * total.max()
        real = runtime.real_dtype()
        self._inverse = np.divide(1.0, total, out=np.zeros_like(total), where=seen).astype(real)
        self._vectors = [np.ascontiguousarray(vectors, real) for _, vectors in pairs]

    def solve(self) -> None:
        """z from b."""
        x = self._from
        for axis, vectors in enumerate(self._vectors):
            x = _along(axis, vectors.T, x)
        x *= self._inverse
        for axis, vectors in enumerate(self._vectors):
            x = _along(axis, vectors, x)
        self._to[...] = x


def _along(axis: int, matrix: Array, x: Array) -> Array:
    """The product of the matrix with x along an axis, new."""
    if axis == x.ndim - 1:
        return x @ matrix.T
    rows = x.reshape(-1, x.shape[axis], int(np.prod(x.shape[axis + 1 :])))
    return np.matmul(matrix, rows).reshape(x.shape)
