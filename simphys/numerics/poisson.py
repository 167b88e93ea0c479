"""The matrix-free Poisson problem A z = b on a box of cells, where A is minus the Laplacian times the spacing squared:

    (A z)_i = sum over the neighbours n of i of c (z_i - z_n),

with c = 1 between cells and c = 0 at a closed side (no flux). At an open side z is 0: at the centre of the ghost cell
(c = 1), or on a plane at `open_distance` spacings from the outermost centres (c = 1 / open_distance). A is symmetric
and positive definite; without an open side it is semidefinite.

Arrays are flat and padded: the box is surrounded by ghost cells, and rows begin at `LEAD` and are rounded up to a
multiple of `BLOCK` cells. All padding is 0, except for ghosts at periodic sides, which kernels fill from the opposite
cells before they read them. Loops over cells thus need no special cases at edges. The compiler does not vectorize loops
that store to arrays; rows are therefore computed in blocks, in a local vector first.
"""

import functools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.tensor import Array

BLOCK = 32
"""Number of cells of a row that are computed together."""

LEAD = 8
"""Number of entries before the first cell of a row; the last of them is its ghost."""

PLANES, ROWS, COLUMNS, PLANE_STRIDE, ROW_STRIDE, SIZE, PERIODIC_PLANES, PERIODIC_ROWS, PERIODIC_COLUMNS = range(9)
"""Indices into `Poisson.grid` of counts of cells, strides, the length of an array, and flags. 2-D has one plane."""


class Poisson:
    """Poisson operator, and the layout of its arrays, for a box with `cells` along 2 or 3 axes.

    ends: for each axis ("periodic", "periodic"), or a pair of "closed" and "open".
    """

    def __init__(self, cells: Sequence[int], ends: Sequence[tuple[str, str]], *, open_distance: float = 1.0) -> None:
        self.cells, self.ends, self.open_distance = tuple(cells), tuple(ends), open_distance
        self.dim = len(cells)
        planes, rows, columns = (1, *cells)[-3:]
        row = LEAD + -(-columns // BLOCK) * BLOCK
        plane = (rows + 2) * row
        self._padded = (planes + 2 * (self.dim - 2), rows + 2, row)
        self.size = math.prod(self._padded) + BLOCK
        periodic = [int(low == "periodic") for low, _ in ends]
        flags = (0, *periodic)[-3:]
        self.grid = np.array([planes, rows, columns, plane, row, self.size, *flags], np.int32)
        self.is_singular = not any("open" in pair for pair in ends)
        self.diagonal, self.inverse = self.array(), self.array()
        counts = self.inside(self.diagonal)
        for axis, (pair, n) in enumerate(zip(ends, cells, strict=True)):
            along = np.full(n, 2.0)
            for end, cell in zip(pair, (0, n - 1), strict=True):
                along[cell] += {"periodic": 0.0, "closed": -1.0, "open": 1.0 / open_distance - 1.0}[end]
            counts += along.reshape([-1 if a == axis else 1 for a in range(self.dim)])
        np.divide(1.0, self.diagonal, out=self.inverse, where=self.diagonal > 0)

    def array(self, copies: int = 1) -> Array:
        """Make a flat array of zeros with this layout, or several in a row."""
        return np.zeros(copies * self.size, runtime.real_dtype())

    def inside(self, array: Array) -> Array:
        """View of the cells of an array, [*cells]."""
        padded = array[: math.prod(self._padded)].reshape(self._padded)
        cells = padded[:, 1:-1, LEAD : LEAD + self.cells[-1]]
        return cells[0] if self.dim == 2 else cells[1:-1]

    def matrix(self, axis: int) -> Array:
        """Part of A along an axis, [n, n]; A is their sum, each times the identity along the other axes."""
        n, ends = self.cells[axis], self.ends[axis]
        found = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
        for cell, other, end in ((0, n - 1, ends[0]), (n - 1, 0, ends[1])):
            if end == "periodic":
                found[cell, other] -= 1
            else:
                found[cell, cell] += -1 if end == "closed" else 1 / self.open_distance - 1
        return found


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Functions that pass over the cells of arrays with this layout; `grid` is `Poisson.grid`."""
    block = ti.types.vector(BLOCK, real)

    @ti.func
    def start(grid: ti.template(), plane: ti.i32, row: ti.i32) -> ti.i32:
        """Index of the first cell of a row."""
        return (plane + dim - 2) * grid[PLANE_STRIDE] + (row + 1) * grid[ROW_STRIDE] + LEAD

    @ti.func
    def sum_neighbours(x: ti.template(), at: ti.i32, row: ti.i32, plane: ti.i32) -> real:
        """Sum over the neighbours of a cell."""
        total = x[at + row] + x[at - row]
        if ti.static(dim == 3):
            total += x[at + plane] + x[at - plane]
        return total + x[at - 1] + x[at + 1]

    @ti.func
    def wrap(grid: ti.template(), x: ti.template(), offset: ti.i32):
        """Fill the ghosts at periodic sides of x, which begins at `offset`."""
        planes, rows, columns = grid[PLANES], grid[ROWS], grid[COLUMNS]
        if grid[PERIODIC_COLUMNS]:
            for plane in range(planes):
                for row in range(rows):
                    first = offset + start(grid, plane, row)
                    x[first - 1] = x[first + columns - 1]
                    x[first + columns] = x[first]
        if grid[PERIODIC_ROWS]:
            for plane in range(planes):
                first, last = offset + start(grid, plane, 0) - 1, offset + start(grid, plane, rows - 1) - 1
                for j in range(columns + 2):
                    x[first - grid[ROW_STRIDE] + j] = x[last + j]
                    x[last + grid[ROW_STRIDE] + j] = x[first + j]
        if ti.static(dim == 3) and grid[PERIODIC_PLANES]:
            first, last = offset + grid[PLANE_STRIDE], offset + planes * grid[PLANE_STRIDE]
            for j in range(grid[PLANE_STRIDE]):
                x[first - grid[PLANE_STRIDE] + j] = x[last + j]
                x[last + grid[PLANE_STRIDE] + j] = x[first + j]

    @ti.func
    def scale(grid: ti.template(), b: ti.template(), e: ti.template(), omega: real, x: ti.template(), offset: ti.i32):
        """Compute x = omega e b, which is a sweep from 0."""
        v = block(0)
        for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
            first = start(grid, plane, row)
            for part in range((grid[COLUMNS] + BLOCK - 1) // BLOCK):
                for k in range(BLOCK):
                    v[k] = omega * (e[first + part * BLOCK + k] * b[first + part * BLOCK + k])
                for k in range(BLOCK):
                    x[offset + first + part * BLOCK + k] = v[k]

    @ti.func
    def sweep(
        grid: ti.template(), b: ti.template(), e: ti.template(), omega: real, x: ti.template(), old: ti.i32, new: ti.i32
    ):
        """Do a sweep of damped Jacobi: x_new = x_old + omega (e (b + sum of neighbours) - x_old); e is 1 / diagonal."""
        row_stride, plane_stride = grid[ROW_STRIDE], grid[PLANE_STRIDE]
        v = block(0)
        for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
            first = start(grid, plane, row)
            for part in range((grid[COLUMNS] + BLOCK - 1) // BLOCK):
                cell = first + part * BLOCK
                for k in range(BLOCK):
                    total = sum_neighbours(x, old + cell + k, row_stride, plane_stride)
                    v[k] = omega * (e[cell + k] * (b[cell + k] + total)) + (1 - omega) * x[old + cell + k]
                for k in range(BLOCK):
                    x[new + cell + k] = v[k]

    @ti.func
    def relax(
        grid: ti.template(),
        b: ti.template(),
        e: ti.template(),
        omega: ti.template(),
        x: ti.template(),
        half: ti.i32,
        zero: ti.i32,
    ):
        """Do a sweep for each omega, alternating between the halves of x; start from `half`, or from 0 into `half`."""
        old = half * grid[SIZE]
        for s in range(omega.shape[0]):
            if s == 0 and zero:
                scale(grid, b, e, omega[0], x, old)
            else:
                new = grid[SIZE] - old
                wrap(grid, x, old)
                sweep(grid, b, e, omega[s], x, old, new)
                old = new

    return SimpleNamespace(start=start, sum_neighbours=sum_neighbours, wrap=wrap, relax=relax, block=block)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Kernel of sweeps from 0, see `functions`."""
    f = functions(real, dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def relax(grid: integers, b: reals, e: reals, omega: reals, x: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.relax(grid, b, e, omega, x, 0, 1)

    return SimpleNamespace(relax=relax)


class JacobiSweeps:
    """Solver of `count` Jacobi sweeps from 0, which is a linear symmetric map from b to z."""

    def __init__(self, system: Poisson, count: int) -> None:
        self.b, pair = system.array(), system.array(2)
        self.z = pair[system.size :] if count % 2 == 0 else pair[: system.size]
        self.iterations, self.residual = count, 0.0  # 0 by definition: these sweeps are the result wanted
        omega = np.ones(count, runtime.real_dtype())
        launch = kernels(runtime.real(), system.dim).relax
        self._launch = launch.bind(system.grid, self.b, system.inverse, omega, pair)

    def solve(self) -> None:
        """Compute z from b."""
        self._launch()
