"""A V-cycle of geometric multigrid for the Poisson problem on a box (Briggs, Henson and McCormick 2000, chapter 3).

From fine to coarse, each level does `DEGREE` sweeps of damped Jacobi from 0 with Chebyshev weights (Adams et al. 2003)
and restricts the residual. The coarsest level is solved directly. On the way back, each level adds the correction and
repeats the same sweeps.

    z <- S(b);  b_c = R (b - A z);  z_c = cycle(b_c);  z <- z + P z_c;  z <- S(z, b)

P is linear in each axis between centres of cells; R = 4 / 2^dim P^T, as A carries the spacing squared. The sweeps are a
polynomial in D^-1 A, so the whole cycle is a symmetric positive map, which preconditions conjugate gradients. Grids are
halved as long as all counts are even; the rest, even if it is a large odd grid, is solved directly. At an open side,
the plane of z = 0 keeps its place, half a fine cell beyond the side. For arrays see `poisson`.
"""

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.tensor import Array

from .poisson import (
    BLOCK,
    COLUMNS,
    PLANE_STRIDE,
    PLANES,
    ROW_STRIDE,
    ROWS,
    SIZE,
    Poisson,
    target,
    target_type,
)
from .poisson import functions as grid_functions
from .separable import DirectSolver

DEGREE = 2
"""Number of sweeps before, and after, the correction from the coarser grid."""

COARSEST = 16
"""Largest number of cells along the longest axis that is not halved any further."""

NEXT_WEIGHT = 0.25
"""Weight of the next coarse cell in linear interpolation, halfway between the centre of a coarse cell and its edge."""


def chebyshev_weights(dim: int) -> Array:
    """Weights of the sweeps that best damp the modes a coarser grid cannot represent: D^-1 A in [1/dim, 2]."""
    low, high = 1 / dim, 2.0
    roots = np.cos(np.pi * (np.arange(DEGREE) + 0.5) / DEGREE)
    return (1 / ((high + low) / 2 + (high - low) / 2 * roots)).astype(runtime.real_dtype())


def interpolation_weights(system: Poisson, axis: int) -> Array:
    """Weights [n] along an axis of the coarse cell around each fine cell; the next coarse cell has `NEXT_WEIGHT`."""
    weights = np.full(system.cells[axis], 1 - NEXT_WEIGHT)
    for end, cell in zip(system.ends[axis], (0, -1), strict=True):
        if end == "closed":
            weights[cell] = 1.0
        elif end == "open":
            distance = 2 * _coarse_distance(system)  # from the coarse centre to the plane z = 0, in fine cells
            weights[cell] = (distance - 0.5) / distance
    return weights.astype(runtime.real_dtype())


def can_be_halved(cells: Sequence[int]) -> bool:
    """True if a grid has a coarser one."""
    return not any([n % 2 for n in cells]) and max(cells) > COARSEST


def coarsest_cells(cells: Sequence[int]) -> list[int]:
    """Return the grid on which the problem is solved directly, with matrices [n, n] for each axis."""
    return coarsest_cells([n // 2 for n in cells]) if can_be_halved(cells) else list(cells)


def coarsen(system: Poisson) -> Poisson:
    """Operator on the grid with half as many cells along each axis."""
    return Poisson([n // 2 for n in system.cells], system.ends, open_distance=_coarse_distance(system))


def _coarse_distance(system: Poisson) -> float:
    return (system.open_distance + 0.5) / 2


# fmt: off
def residuals(real: Any, dim: int) -> Any:
    """Return the function that computes a residual."""
    f = grid_functions(real, dim)

    @ti.func
    def residual(grid: ti.template(), b: ti.template(), d: ti.template(), x: ti.template(), at, r: ti.template()):
        """Compute r = b - A x."""
        row_stride, plane_stride = grid[ROW_STRIDE], grid[PLANE_STRIDE]
        for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
            first = f.start(grid, plane, row)
            for part in range((grid[COLUMNS] + BLOCK - 1) // BLOCK):
                cell, v = first + part * BLOCK, f.block(0)
                for k in range(BLOCK):
                    total = f.sum_neighbours(x, at + cell + k, row_stride, plane_stride)
                    v[k] = ti.select(d[cell + k] > 0, b[cell + k] - d[cell + k] * x[at + cell + k] + total, 0)
                f.store(r, cell, v)

    return residual


def restriction(real: Any, dim: int) -> Any:
    """Return R, which sums over the fine cells around each coarse one."""
    f = grid_functions(real, dim)

    @ti.func
    def sum_four_rows(r: ti.template(), at, row, weights: ti.template(), coarse_row):
        """Weighted sum over four rows, in one column."""
        inner = weights[2 * coarse_row] * r[at + row] + weights[2 * coarse_row + 1] * r[at + 2 * row]
        return inner + NEXT_WEIGHT * (r[at] + r[at + 3 * row])

    @ti.func
    def sum_column(grid: ti.template(), r: ti.template(), at, w0: ti.template(), w1: ti.template(), plane, row):
        """Weighted sum over four rows, and in 3-D over four planes of these."""
        total = sum_four_rows(r, at, grid[ROW_STRIDE], w1, row)
        if ti.static(dim == 3):
            total = NEXT_WEIGHT * total + w0[2 * plane] * sum_four_rows(
                r, at + grid[PLANE_STRIDE], grid[ROW_STRIDE], w1, row
            )
            total += w0[2 * plane + 1] * sum_four_rows(r, at + 2 * grid[PLANE_STRIDE], grid[ROW_STRIDE], w1, row)
            total += NEXT_WEIGHT * sum_four_rows(r, at + 3 * grid[PLANE_STRIDE], grid[ROW_STRIDE], w1, row)
        return total

    @ti.func
    def restrict(
        grid: ti.template(), r: ti.template(), w0: ti.template(), w1: ti.template(), w2: ti.template(),
        coarse: ti.template(), b: ti.template(),
    ):
        """Compute b = R r."""
        scale = 4.0 / 2.0**dim
        for plane, row in ti.ndrange(coarse[PLANES], coarse[ROWS]):
            to = f.start(coarse, plane, row)
            at = f.start(grid, (2 * plane - 1) * (dim - 2), 2 * row - 1)  # first of the four planes and rows
            before, left = sum_column(grid, r, at - 1, w0, w1, plane, row), sum_column(grid, r, at, w0, w1, plane, row)
            for j in range(coarse[COLUMNS]):
                right = sum_column(grid, r, at + 2 * j + 1, w0, w1, plane, row)
                after = sum_column(grid, r, at + 2 * j + 2, w0, w1, plane, row)
                b[to + j] = scale * (NEXT_WEIGHT * (before + after) + w2[2 * j] * left + w2[2 * j + 1] * right)
                before = right
                left = after

    return restrict


def prolongation(real: Any, dim: int) -> Any:
    """Return P, which interpolates between coarse cells."""
    f = grid_functions(real, dim)

    @ti.func
    def interpolate_rows(y: ti.template(), at, w0: ti.template(), w1: ti.template(), grid: ti.template(), plane, row):
        """Interpolate between two rows, and in 3-D between two planes of these, in a column of coarse cells."""
        down = (2 * (row % 2) - 1) * grid[ROW_STRIDE]
        value = w1[row] * y[at] + NEXT_WEIGHT * y[at + down]
        if ti.static(dim == 3):
            far = at + (2 * (plane % 2) - 1) * grid[PLANE_STRIDE]
            value = w0[plane] * value + NEXT_WEIGHT * (w1[row] * y[far] + NEXT_WEIGHT * y[far + down])
        return value

    @ti.func
    def prolong(
        grid: ti.template(), x: ti.template(), offset, w0: ti.template(), w1: ti.template(), w2: ti.template(),
        coarse: ti.template(), y: ti.template(), y_offset,
    ):
        """Compute x = x + P y."""
        for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
            to = offset + f.start(grid, plane, row)
            at = y_offset + f.start(coarse, plane // 2, row // 2)
            before = interpolate_rows(y, at - 1, w0, w1, coarse, plane, row)
            here = interpolate_rows(y, at, w0, w1, coarse, plane, row)
            for j in range(coarse[COLUMNS]):
                after = interpolate_rows(y, at + j + 1, w0, w1, coarse, plane, row)
                x[to + 2 * j] = x[to + 2 * j] + w2[2 * j] * here + NEXT_WEIGHT * before
                x[to + 2 * j + 1] = x[to + 2 * j + 1] + w2[2 * j + 1] * here + NEXT_WEIGHT * after
                before = here
                here = after

    return prolong


@functools.cache
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Kernels for the two legs of the V-cycle between a grid and the next coarser one (`coarse`)."""
    f, padded = grid_functions(real, dim), target_type(real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    residual, restrict = residuals(real, dim), restriction(real, dim)
    prolong = prolongation(real, dim)

    @no_type_check
    @kernel(wide=True)
    def down(
        grid: integers, b: reals, d: reals, e: reals, omega: reals, x: padded, r: padded,
        w0: reals, w1: reals, w2: reals, coarse: integers, coarse_b: reals,
    ):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.relax(grid, b, e, omega, x, 0, 1)
            at = ((omega.shape[0] + 1) % 2) * grid[SIZE]
            f.wrap(grid, x.numbers, at)
            residual(grid, b, d, x.numbers, at, r)
            f.wrap(grid, r.numbers, 0)
            restrict(grid, r.numbers, w0, w1, w2, coarse, coarse_b)

    @no_type_check
    @kernel(wide=True)
    def up(
        grid: integers, b: reals, e: reals, omega: reals, x: padded, half: ti.i32,
        w0: reals, w1: reals, w2: reals, coarse: integers, y: reals,
    ):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.wrap(coarse, y, 0)
            prolong(grid, x.numbers, half * grid[SIZE], w0, w1, w2, coarse, y, 0)
            f.relax(grid, b, e, omega, x, half, 0)

    return SimpleNamespace(down=down, up=up)
# fmt: on


class Multigrid:
    """Approximate solver z = V b, for one V-cycle V, which approximates A^+."""

    def __init__(self, system: Poisson) -> None:
        self._launches: list[Callable[[], None]]
        if not can_be_halved(system.cells):
            coarsest = DirectSolver(system)
            self.b, self.z, self._launches = coarsest.b, coarsest.z, [coarsest.solve]
            return
        coarse, pair = coarsen(system), system.array(2)
        below = Multigrid(coarse)
        half = (DEGREE + 1) % 2  # of `pair`, after sweeps from 0; an even DEGREE ends there again
        self.b, self.z = system.array(), pair[half * system.size : (half + 1) * system.size]
        omega = chebyshev_weights(system.dim)
        weights = [interpolation_weights(system, axis) for axis in range(system.dim)]
        w0, w1, w2 = weights if system.dim == 3 else (weights[0], *weights)
        legs = kernels(runtime.real(), system.dim)
        down = legs.down.bind(
            *(system.grid, self.b, system.diagonal, system.inverse, omega, target(pair), target(system.array())),
            *(w0, w1, w2, coarse.grid, below.b),
        )
        up = legs.up.bind(
            *(system.grid, self.b, system.inverse, omega, target(pair), half, w0, w1, w2, coarse.grid, below.z),
        )
        self._launches = [down, below.solve, up]

    def solve(self) -> None:
        """Compute z from b."""
        for launch in self._launches:
            launch()
