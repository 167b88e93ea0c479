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
from typing import Any, NamedTuple, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
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
    blocks: Any = None
    """The same memory in vectors of BLOCK numbers; None on a GPU."""


def stores_blocks() -> bool:
    """True if kernels store whole blocks, under the settings in force."""
    return not runtime.settings().on_gpu


def target(array: Any) -> Target:
    """Make what kernels write an array as."""
    return Target(array, array.reshape(-1, BLOCK) if stores_blocks() else None)


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
def target_type(real: Any, wide: bool) -> RecordType:
    """Return the type of `Target` in kernels that store whole blocks (`wide`), or numbers."""
    blocks = ti.types.ndarray(dtype=ti.types.vector(BLOCK, real), ndim=1) if wide else None
    return record(Target, numbers=ti.types.ndarray(dtype=real, ndim=1), blocks=blocks)


@functools.cache
def layout(real: Any, dim: int, wide: bool) -> SimpleNamespace:
    """Return functions that find cells in arrays with this layout, sum over their neighbours, and write arrays."""
    block = ti.types.vector(BLOCK, real)

    @ti.func
    def store(x: ti.template(), at, v):
        """Store a block that begins at `at`."""
        if ti.static(wide):
            x.blocks[at // BLOCK] = v
        else:
            for k in range(BLOCK):
                x.numbers[at + k] = v[k]

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
def functions(real: Any, dim: int, wide: bool) -> SimpleNamespace:
    """Functions that pass over the cells of arrays with this layout; `grid` is `Poisson.grid`, and x a `Target`."""
    f = layout(real, dim, wide)

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


@functools.cache
def kernels(real: Any, dim: int, wide: bool) -> SimpleNamespace:
    """Kernel of sweeps from 0, see `functions`."""
    f, padded = functions(real, dim, wide), target_type(real, wide)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel(wide=wide)
    def relax(grid: integers, b: reals, e: reals, omega: reals, half: ti.i32, x: padded):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.relax(grid, b, e, omega, x, half, 1)

    return SimpleNamespace(relax=relax)


@functools.cache
def cells(dim: int) -> SimpleNamespace:
    """Return functions that find cells by themselves, for loops with a thread for each."""

    @ti.func
    def find(grid: ti.template(), c):
        """Plane, row and column of cell number c."""
        line = c // grid[COLUMNS]
        return line // grid[ROWS], line % grid[ROWS], c % grid[COLUMNS]

    @ti.func
    def place(grid: ti.template(), plane, row, column):
        """Index of a cell, or of a ghost; at a periodic side, that of the cell of which it is an image."""
        planes, rows, columns = plane, row, column
        if grid[PERIODIC_PLANES]:
            planes = (plane + grid[PLANES]) % grid[PLANES]
        if grid[PERIODIC_ROWS]:
            rows = (row + grid[ROWS]) % grid[ROWS]
        if grid[PERIODIC_COLUMNS]:
            columns = (column + grid[COLUMNS]) % grid[COLUMNS]
        return (planes + dim - 2) * grid[PLANE_STRIDE] + (rows + 1) * grid[ROW_STRIDE] + LEAD + columns

    return SimpleNamespace(find=find, place=place)


@functools.cache
def sweeps_of_cells(real: Any, dim: int, count: int) -> Any:
    """Kernel of `count` sweeps with a thread for each cell, for a GPU; the first one from 0 for count = 1."""
    f = cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def sweep(grid: integers, number: ti.i32, b: reals, e: reals, zero: ti.i32, half: ti.i32, x: reals):
        """Go from a half of x, or from 0 into that half, to and fro between the halves."""
        for s in ti.static(range(count)):
            for c in range(number):
                plane, row, column = f.find(grid, c)
                old, at = (half + s) % 2 * grid[SIZE], f.place(grid, plane, row, column)
                total = b[at]
                if zero == 0:
                    for d in ti.static(range(3 - dim, 3)):
                        for step in ti.static((-1, 1)):
                            p, q, r = ti.static([step if d == axis else 0 for axis in range(3)])
                            near = f.place(grid, plane + p, row + q, column + r)
                            total += x[old + near]
                x[ti.select(zero == 1, old, grid[SIZE] - old) + at] = e[at] * total

    return sweep


class JacobiSweeps:
    """Solver of `count` Jacobi sweeps from 0, which is a linear symmetric map from b to z, on the device."""

    def __init__(self, system: Poisson, count: int) -> None:
        self.b, self.z = device.to_device(system.array()), device.to_device(system.array(2))
        self.iterations, self.residual = count, 0.0  # 0 by definition: these sweeps are the result wanted
        half = (count - 1) % 2  # from which the last sweep ends in the first half
        grid, inverse = device.to_device(system.grid), device.to_device(system.inverse)
        if not runtime.settings().on_gpu:
            launch = kernels(runtime.real(), system.dim, stores_blocks()).relax
            self._launches = [launch.bind(grid, self.b, inverse, np.ones(count, self.z.dtype), half, target(self.z))]
            return
        self._launches = []
        given = grid, math.prod(system.cells), self.b, inverse
        for first, several in _in_parts(count):
            launch = sweeps_of_cells(runtime.real(), system.dim, several)
            self._launches.append(launch.bind(*given, int(first == 0), (half + max(first - 1, 0)) % 2, self.z))

    def solve(self) -> None:
        """Compute z from b."""
        for launch in self._launches:
            launch()


def _in_parts(count: int, most: int = 4) -> list[tuple[int, int]]:
    """Divide sweeps: the number of the first one of each part, and how many it has; the first sweep is by itself."""
    first, parts = min(count, 1), [(0, 1)] if count else []
    while first < count:
        several = most if count - first >= most else 1
        parts.append((first, several))
        first += several
    return parts
