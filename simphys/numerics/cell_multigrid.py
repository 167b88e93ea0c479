"""The V-cycle of multigrid.py with a thread for each cell, for a GPU.

Ghosts are not filled: at periodic sides the cell is read of which a ghost is the image, and beyond other sides arrays
are 0 in memory. The first two sweeps from 0 are one loop, which computes the first one also at the neighbours.
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

from .jacobi import cells as find_cells
from .multigrid import NEXT_WEIGHT, can_be_halved, chebyshev_weights, coarsen, interpolation_weights
from .poisson import PLANES, ROWS, Poisson
from .separable import CellDirectSolver


@functools.cache
def smoothing(real: Any, dim: int) -> SimpleNamespace:
    """Kernels of sweeps and residuals."""
    f = find_cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def sweep_twice(grid: integers, cells: ti.i32, first: real, second: real, b: reals, e: reals, x: reals):
        """Do two sweeps of damped Jacobi from 0; e is 1 / diagonal. The first makes first e b."""
        for c in range(cells):
            plane, row, column = f.find(grid, c)
            at = f.place(grid, plane, row, column)
            total = b[at]
            for d in ti.static(range(3 - dim, 3)):
                for step in ti.static((-1, 1)):
                    i, j, k = ti.static([step if d == axis else 0 for axis in range(3)])
                    near = f.place(grid, plane + i, row + j, column + k)
                    total += first * (e[near] * b[near])
            x[at] = second * (e[at] * total) + (1 - second) * first * (e[at] * b[at])

    @no_type_check
    @kernel
    def sweep(grid: integers, cells: ti.i32, omega: real, b: reals, e: reals, x: reals, new: reals):
        """Do a sweep: new = x + omega (e (b + sum of neighbours) - x)."""
        for c in range(cells):
            plane, row, column = f.find(grid, c)
            at = f.place(grid, plane, row, column)
            total = b[at] + f.sum_neighbours(grid, x, 0, plane, row, column)
            new[at] = omega * (e[at] * total) + (1 - omega) * x[at]

    @no_type_check
    @kernel
    def residual(grid: integers, cells: ti.i32, b: reals, d: reals, x: reals, r: reals):
        """Compute r = b - A x."""
        for c in range(cells):
            plane, row, column = f.find(grid, c)
            at = f.place(grid, plane, row, column)
            r[at] = b[at] - d[at] * x[at] + f.sum_neighbours(grid, x, 0, plane, row, column)

    return SimpleNamespace(sweep_twice=sweep_twice, sweep=sweep, residual=residual)


@functools.cache
def transfers(real: Any, dim: int) -> SimpleNamespace:
    """Kernels between a grid and the next coarser one; w are the interpolation weights of planes, rows and columns."""
    f = find_cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    fine_planes, coarse_planes = (4, 2) if dim == 3 else (1, 1)

    @ti.func
    def weight(w: ti.template(), first, cell, k):
        """Weight of the k-th of the four fine cells around a coarse one."""
        found = NEXT_WEIGHT
        if k == 1 or k == 2:
            found = w[first + 2 * cell + k - 1]
        return found

    @no_type_check
    @kernel
    def restrict(grid: integers, w: reals, r: reals, coarse: integers, cells: ti.i32, b: reals):
        """Compute b = R r in coarse cells."""
        rows, columns = grid[PLANES], grid[PLANES] + grid[ROWS]
        for c in range(cells):
            plane, row, column = f.find(coarse, c)
            total = real(0.0)
            for i, j in ti.ndrange(fine_planes, 4):
                part = real(0.0)
                for k in range(4):
                    fine_plane = (2 * plane - 1 + i) * (dim - 2)
                    at = f.place(grid, fine_plane, 2 * row - 1 + j, 2 * column - 1 + k)
                    part += weight(w, columns, column, k) * r[at]
                part *= weight(w, rows, row, j)
                if ti.static(dim == 3):
                    part *= weight(w, 0, plane, i)
                total += part
            b[f.place(coarse, plane, row, column)] = 4.0 / 2.0**dim * total

    @ti.func
    def fraction(w: ti.template(), first, cell, k):
        """Fraction of the coarse cell around a fine one (k = 0), or of the next one (k = 1), in its value."""
        found = NEXT_WEIGHT
        if k == 0:
            found = w[first + cell]
        return found

    @no_type_check
    @kernel
    def prolong(grid: integers, cells: ti.i32, w: reals, coarse: integers, y: reals, x: reals):
        """Compute x = x + P y."""
        rows, columns = grid[PLANES], grid[PLANES] + grid[ROWS]
        for c in range(cells):
            plane, row, column = f.find(grid, c)
            total = real(0.0)
            for i, j, k in ti.ndrange(coarse_planes, 2, 2):
                part = fraction(w, columns, column, k) * fraction(w, rows, row, j)
                if ti.static(dim == 3):
                    part *= fraction(w, 0, plane, i)
                coarse_plane = plane // 2 + i * (2 * (plane % 2) - 1)
                coarse_row, coarse_column = row // 2 + j * (2 * (row % 2) - 1), column // 2 + k * (2 * (column % 2) - 1)
                total += part * y[f.place(coarse, coarse_plane, coarse_row, coarse_column)]
            x[f.place(grid, plane, row, column)] += total

    return SimpleNamespace(restrict=restrict, prolong=prolong)


class CellMultigrid:
    """Approximate solver as `Multigrid`, on the device; b may be an array that is there already."""

    def __init__(self, system: Poisson, b: Any = None) -> None:
        self.solve: Chain
        """Launch that computes z from b."""
        if not can_be_halved(system.cells):
            coarsest = CellDirectSolver(system, b)
            self.b, self.z, self.solve = coarsest.b, coarsest.z, coarsest.solve
            return
        real, coarse = runtime.real(), coarsen(system)
        below = CellMultigrid(coarse)
        self.b = device.to_device(system.array()) if b is None else b
        self.z, between, r = (device.to_device(system.array()) for _ in range(3))
        diagonal, inverse = device.to_device(system.diagonal), device.to_device(system.inverse)
        grid = device.to_device(system.grid), math.prod(system.cells)
        coarse_grid = device.to_device(coarse.grid), math.prod(coarse.cells)
        weights = [interpolation_weights(system, axis) for axis in range(system.dim)]
        w = device.to_device(np.concatenate([np.ones(3 - system.dim, runtime.real_dtype()), *weights]))
        first, second = [float(omega) for omega in chebyshev_weights(system.dim)]
        smooth, transfer = smoothing(real, system.dim), transfers(real, system.dim)
        self.solve = Chain(
            KernelCall(smooth.sweep_twice, *grid, first, second, self.b, inverse, self.z),
            KernelCall(smooth.residual, *grid, self.b, diagonal, self.z, r),
            KernelCall(transfer.restrict, grid[0], w, r, *coarse_grid, below.b),
            below.solve,
            KernelCall(transfer.prolong, *grid, w, coarse_grid[0], below.z, self.z),
            KernelCall(smooth.sweep, *grid, first, self.b, inverse, self.z, between),
            KernelCall(smooth.sweep, *grid, second, self.b, inverse, between, self.z),
        )
