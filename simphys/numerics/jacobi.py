"""A number of Jacobi sweeps for the Poisson problem of poisson.py: row by row on a CPU, and cell by cell on a GPU.

z <- e (b + sum of neighbours of z),      e = 1 / diagonal
"""

import functools
import math
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.calls import Chain, KernelCall
from simphys.autograd.kernels.runtime import ti

from .poisson import (
    COLUMNS,
    LEAD,
    PERIODIC_COLUMNS,
    PERIODIC_PLANES,
    PERIODIC_ROWS,
    PLANE_STRIDE,
    PLANES,
    ROW_STRIDE,
    ROWS,
    SIZE,
    Poisson,
    functions,
    target,
    target_type,
)


@functools.cache
def sweeps_of_rows(real: Any, dim: int) -> Any:
    """Kernel of sweeps from 0, row by row, for a CPU."""
    f, padded = functions(real, dim), target_type(real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel(wide=True)
    def relax(grid: integers, b: reals, e: reals, omega: reals, half: ti.i32, x: padded):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.relax(grid, b, e, omega, x, half, 1)

    return relax


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

    @ti.func
    def find_place(grid: ti.template(), c):
        """Index of cell number c."""
        plane, row, column = find(grid, c)
        return place(grid, plane, row, column)

    @ti.func
    def sum_neighbours(grid: ti.template(), x: ti.template(), offset, plane, row, column):
        """Sum over the neighbours of a cell of x, which begins at `offset`."""
        total = x[offset + place(grid, plane, row, column - 1)] + x[offset + place(grid, plane, row, column + 1)]
        total += x[offset + place(grid, plane, row - 1, column)] + x[offset + place(grid, plane, row + 1, column)]
        if ti.static(dim == 3):
            total += x[offset + place(grid, plane - 1, row, column)] + x[offset + place(grid, plane + 1, row, column)]
        return total

    return SimpleNamespace(find=find, place=place, find_place=find_place, sum_neighbours=sum_neighbours)


@functools.cache
def sweep_of_cells(real: Any, dim: int) -> Any:
    """Kernel of a sweep with a thread for each cell, for a GPU."""
    f = cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def sweep(grid: integers, number: ti.i32, b: reals, e: reals, zero: ti.i32, half: ti.i32, x: reals):
        """Go from a half of x to the other one, or from 0 into that half."""
        for c in range(number):
            plane, row, column = f.find(grid, c)
            old, at = half * grid[SIZE], f.place(grid, plane, row, column)
            total = b[at]
            if zero == 0:
                total += f.sum_neighbours(grid, x, old, plane, row, column)
            x[ti.select(zero == 1, old, grid[SIZE] - old) + at] = e[at] * total

    return sweep


class JacobiSweeps:
    """Solver of `count` Jacobi sweeps from 0, which is a linear symmetric map from b to z, on the device."""

    def __init__(self, system: Poisson, count: int) -> None:
        self.b, self.z = device.to_device(system.array()), device.to_device(system.array(2))
        half = (count - 1) % 2  # from which the last sweep ends in the first half
        grid, inverse = device.to_device(system.grid), device.to_device(system.inverse)
        if not runtime.settings().on_gpu:
            sweep = sweeps_of_rows(runtime.real(), system.dim)
            weights = np.ones(count, self.z.dtype)
            self.solve = Chain(KernelCall(sweep, grid, self.b, inverse, weights, half, target(self.z)))
            """Launch that computes z from b."""
            return
        sweep, cells = sweep_of_cells(runtime.real(), system.dim), math.prod(system.cells)
        sweeps = [(s, (half + max(s - 1, 0)) % 2) for s in range(count)]
        self.solve = Chain(
            *[KernelCall(sweep, grid, cells, self.b, inverse, int(s == 0), start, self.z) for s, start in sweeps]
        )
