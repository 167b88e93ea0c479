"""The matrix-free Poisson problem A z = b on a box of cells, where A is minus the Laplacian times the spacing squared:

    (A z)_i = sum over the neighbours n of i of c (z_i - z_n),

with c = 1 between cells and c = 0 at a closed side (no flux). At an open side z is 0: at the centre of the ghost cell
(c = 1), or on a plane at `open_distance` spacings from the outermost centres (c = 1 / open_distance). A is symmetric
and positive definite; without an open side it is semidefinite.

Arrays are flat and padded: the box is surrounded by ghost cells, and rows begin at `LEAD` and are rounded up to a
multiple of `BLOCK` cells. All padding is 0, except for ghosts at periodic sides, which kernels fill from the opposite
cells before they read them. Loops over cells thus need no special cases at edges. The compiler does not vectorize loops
that store to arrays. Rows are therefore computed in blocks, in a local vector first, which a CPU stores at once: there,
kernels are wide, and blocks are aligned.
"""

import functools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.alignment import aligned_zeros
from simphys.autograd.kernels.records import RecordType, record
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.tensor import Array

BLOCK = 16
"""Number of cells of a row that are computed together."""

LEAD = BLOCK
"""Number of entries before the first cell of a row, a whole block; the last of them is its ghost."""

PLANES, ROWS, COLUMNS, PLANE_STRIDE, ROW_STRIDE, SIZE, PERIODIC_PLANES, PERIODIC_ROWS, PERIODIC_COLUMNS = range(9)
"""Indices into `Poisson.grid` of counts of cells, strides, the length of an array, and flags. 2-D has one plane."""


class Target(NamedTuple):
    """An array that kernels write in blocks."""

    numbers: Any
    blocks: Any
    """The same memory in vectors of BLOCK numbers."""


def target(array: Any) -> Target:
    """Make what kernels write an array as."""
    return Target(array, array.reshape(-1, BLOCK))


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
        self.strides = (plane, row, 1)[-self.dim :]
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
        return aligned_zeros((copies * self.size,), runtime.real_dtype())

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
def target_type(real: Any) -> RecordType:
    """Return the type of `Target` in kernels."""
    blocks = ti.types.ndarray(dtype=ti.types.vector(BLOCK, real), ndim=1)
    return record(Target, numbers=ti.types.ndarray(dtype=real, ndim=1), blocks=blocks)


@functools.cache
def layout(real: Any, dim: int) -> SimpleNamespace:
    """Return functions that find cells in arrays with this layout, sum over their neighbours, and write arrays."""
    block = ti.types.vector(BLOCK, real)

    @ti.func
    def store(x: ti.template(), at, v):
        """Store a block that begins at `at`."""
        x.blocks[at // BLOCK] = v

    @ti.func
    def start(grid: ti.template(), plane, row):
        """Index of the first cell of a row."""
        return (plane + dim - 2) * grid[PLANE_STRIDE] + (row + 1) * grid[ROW_STRIDE] + LEAD

    @ti.func
    def sum_neighbours(x: ti.template(), at, row, plane):
        """Sum over the neighbours of a cell."""
        total = x[at + row] + x[at - row]
        if ti.static(dim == 3):
            total += x[at + plane] + x[at - plane]
        return total + x[at - 1] + x[at + 1]

    @ti.func
    def wrap(grid: ti.template(), x: ti.template(), offset):
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

    return SimpleNamespace(block=block, store=store, start=start, sum_neighbours=sum_neighbours, wrap=wrap)


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Functions that pass over the cells of arrays with this layout; `grid` is `Poisson.grid`, and x a `Target`."""
    f = layout(real, dim)

    @ti.func
    def scale(grid: ti.template(), b: ti.template(), e: ti.template(), omega, x: ti.template(), offset):
        """Compute x = omega e b, which is a sweep from 0."""
        for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
            first = f.start(grid, plane, row)
            for part in range((grid[COLUMNS] + BLOCK - 1) // BLOCK):
                cell, v = first + part * BLOCK, f.block(0)
                for k in range(BLOCK):
                    v[k] = omega * (e[cell + k] * b[cell + k])
                f.store(x, offset + cell, v)

    @ti.func
    def sweep(grid: ti.template(), b: ti.template(), e: ti.template(), omega, x: ti.template(), old, new):
        """Do a sweep of damped Jacobi: x_new = x_old + omega (e (b + sum of neighbours) - x_old); e is 1 / diagonal."""
        row_stride, plane_stride = grid[ROW_STRIDE], grid[PLANE_STRIDE]
        for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
            first = f.start(grid, plane, row)
            for part in range((grid[COLUMNS] + BLOCK - 1) // BLOCK):
                cell, v = first + part * BLOCK, f.block(0)
                for k in range(BLOCK):
                    total = f.sum_neighbours(x.numbers, old + cell + k, row_stride, plane_stride)
                    v[k] = omega * (e[cell + k] * (b[cell + k] + total)) + (1 - omega) * x.numbers[old + cell + k]
                f.store(x, new + cell, v)

    @ti.func
    def relax(
        grid: ti.template(), b: ti.template(), e: ti.template(), omega: ti.template(), x: ti.template(), half, zero
    ):
        """Do a sweep for each omega, alternating between the halves of x; start from `half`, or from 0 into `half`."""
        old = half * grid[SIZE]
        for s in range(omega.shape[0]):
            if s == 0 and zero:
                scale(grid, b, e, omega[0], x, old)
            else:
                new = grid[SIZE] - old
                f.wrap(grid, x.numbers, old)
                sweep(grid, b, e, omega[s], x, old, new)
                old = new

    return SimpleNamespace(relax=relax, **vars(f))
