"""Direct solution of the Poisson problem on a box by fast diagonalization (Lynch, Rice and Thomas 1964).

A is a sum of matrices along the axes, T_x + T_y (+ T_z), with T_a = Q_a diag(lambda_a) Q_a^T:

    z = Q_x Q_y (Q_x^T Q_y^T b) / (lambda_x + lambda_y).

This takes two products with an n x n matrix per axis: 4 n^3 multiplications in 2-D, which a linear algebra library does
near the peak speed of the machine. Constants, for which A is singular without an open side, are left out of z.
"""

import functools
import math
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.calls import Chain, KernelCall
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.tensor import Array

from .jacobi import cells as find_cells
from .poisson import Poisson


def diagonalize(system: Poisson) -> tuple[list[Array], Array]:
    """Return Q [n, n] for each axis, and 1 / sum of lambda [*cells], which is 0 where A is singular."""
    pairs = [np.linalg.eigh(system.matrix(axis)) for axis in range(system.dim)]
    total = functools.reduce(np.add.outer, [values for values, _ in pairs])
    regular = total > 1e-12 * total.max()
    real = runtime.real_dtype()
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=regular).astype(real)
    return [np.ascontiguousarray(vectors, real) for _, vectors in pairs], inverse


class DirectSolver:
    """Solver for z = A^+ b, a symmetric map, to rounding."""

    def __init__(self, system: Poisson) -> None:
        self.b, self.z = system.array(), system.array()
        self._from, self._to = system.inside(self.b), system.inside(self.z)
        self._vectors, self._inverse = diagonalize(system)

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


@functools.cache
def product_of_cells(real: Any, dim: int) -> Any:
    """Kernel of a product with a matrix along an axis, with a thread for each cell, for a GPU."""
    f = find_cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def multiply(
        grid: integers, cells: ti.i32, n: ti.i32, below: ti.i32, stride: ti.i32, transposed: reals,
        scales: ti.i32, factors: reals, x: reals, y: reals,
    ):  # fmt: skip
        """Compute y from x with the transposed of the matrix [n, n], then multiply by the factors if it `scales`.

        Along the axis, cells are a `stride` apart in memory; `below` counts the cells of the axes after it.
        """
        for c in range(cells):
            at, row = f.find_place(grid, c), c // below % n
            first, total = at - row * stride, real(0.0)
            for k in range(n):
                total += transposed[k * n + row] * x[first + k * stride]
            if scales == 1:
                total *= factors[at]
            y[at] = total

    return multiply


class CellDirectSolver:
    """Solver as `DirectSolver`, on the device; b may be an array that is there already."""

    def __init__(self, system: Poisson, b: Any = None) -> None:
        self.b = device.to_device(system.array()) if b is None else b
        self.z, between = (device.to_device(system.array()) for _ in range(2))
        vectors, inverse = diagonalize(system)
        given = device.to_device(system.grid), math.prod(system.cells)
        factors = system.array()
        system.inside(factors)[...] = inverse
        factors = device.to_device(factors)
        multiply = product_of_cells(runtime.real(), system.dim)
        axes = [*enumerate(vectors), *enumerate([each.T for each in vectors])]
        x, launches = self.b, []
        for number, (axis, transposed) in enumerate(axes):
            along = system.cells[axis], math.prod(system.cells[axis + 1 :]), system.strides[axis]
            matrix = device.to_device(np.ascontiguousarray(transposed).reshape(-1))
            y = self.z if number % 2 else between  # an even number of products ends in z
            launches.append(KernelCall(multiply, *given, *along, matrix, int(number == system.dim - 1), factors, x, y))
            x = y
        self.solve = Chain(*launches)
        """Launch that computes z from b."""
