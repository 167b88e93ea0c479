"""Conjugate gradients for the Poisson problem on a box (Hestenes and Stiefel 1952), with or without preconditioner.

With r = b - A z and the preconditioner's y = V r (y = r without one):

    rho = r.y;  p <- y + rho / rho_before p;  q = A p;  alpha = rho / p.q;  z <- z + alpha p;  r <- r - alpha q.

Without an open side, A is singular for constants; these are removed from b and z.
The error e = z - A^+ b has the norm |e|_A^2 = r . A^+ r, which is estimated by r . V r for a multigrid cycle V.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti

from .magnitude import find_magnitude
from .multigrid import Multigrid
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


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Functions of arrays with the layout of `poisson`: products, sums, A p, and the removal of a mean."""
    f = grid_functions(real, dim)

    @ti.func
    def dot(x: ti.template(), y: ti.template(), size):
        total = 0.0
        for i in range(size):
            total += x[i] * y[i]
        return total

    @ti.func
    def add(x: ti.template(), factor, y: ti.template(), size):
        """Compute x = x + factor y."""
        for part in range(size // BLOCK):
            first, v = part * BLOCK, f.block(0)
            for k in range(BLOCK):
                v[k] = x.numbers[first + k] + factor * y[first + k]
            f.store(x, first, v)

    @ti.func
    def update_direction(p: ti.template(), beta, y: ti.template(), size):
        """Compute p = y + beta p."""
        for part in range(size // BLOCK):
            first, v = part * BLOCK, f.block(0)
            for k in range(BLOCK):
                v[k] = y[first + k] + beta * p.numbers[first + k]
            f.store(p, first, v)

    @ti.func
    def apply(grid: ti.template(), d: ti.template(), p: ti.template(), q: ti.template()):
        """Compute q = A p."""
        row_stride, plane_stride = grid[ROW_STRIDE], grid[PLANE_STRIDE]
        for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
            first = f.start(grid, plane, row)
            for part in range((grid[COLUMNS] + BLOCK - 1) // BLOCK):
                cell, v = first + part * BLOCK, f.block(0)
                for k in range(BLOCK):
                    total = f.sum_neighbours(p, cell + k, row_stride, plane_stride)
                    v[k] = ti.select(d[cell + k] > 0, d[cell + k] * p[cell + k] - total, 0)
                f.store(q, cell, v)

    @ti.func
    def subtract_mean(grid: ti.template(), x: ti.template()):
        """Subtract the mean from x."""
        total = 0.0
        for i in range(grid[SIZE]):
            total += x[i]
        mean = total / (grid[PLANES] * grid[ROWS] * grid[COLUMNS])
        for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
            first = f.start(grid, plane, row)
            for j in range(grid[COLUMNS]):
                x[first + j] = x[first + j] - mean

    return SimpleNamespace(
        wrap=f.wrap, dot=dot, add=add, update_direction=update_direction, apply=apply, subtract_mean=subtract_mean
    )


@functools.cache
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Kernel of a step, which follows that of the preconditioner."""
    f, padded = functions(real, dim), target_type(real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel(wide=True)
    def step(
        grid: integers, d: reals, r: padded, y: reals, p: padded, q: padded, z: padded, rho: reals, singular: ti.i32
    ):
        """Make one iteration. rho[0] is r.y of the one before, 0 at first; rho[1] becomes r.r."""
        ti.loop_config(serialize=True)
        for _ in range(1):
            size, before, now = grid[SIZE], rho[0], f.dot(r.numbers, y, grid[SIZE])
            beta = 0.0
            if before > 0:
                beta = now / before
            f.update_direction(p, beta, y, size)
            f.wrap(grid, p.numbers, 0)
            f.apply(grid, d, p.numbers, q)
            curvature, alpha = f.dot(p.numbers, q.numbers, size), 0.0
            if curvature > 0:
                alpha = now / curvature
            f.add(z, alpha, p.numbers, size)
            f.add(r, -alpha, q.numbers, size)
            if singular:  # rounding adds to the mean, which no iteration can reduce
                f.subtract_mean(grid, r.numbers)
            rho[0] = now
            rho[1] = f.dot(r.numbers, r.numbers, size)

    return SimpleNamespace(step=step)


class ConjugateGradients:
    """Solver for z = A^+ b, to a residual of `tolerance` relative to b; `preconditioned` by multigrid or not."""

    def __init__(self, system: Poisson, *, tolerance: float, most_iterations: int, preconditioned: bool) -> None:
        self._system, self._tolerance, self._most_iterations = system, tolerance, most_iterations
        self._cycle = functools.cache(lambda: Multigrid(system))
        self._preconditioned = preconditioned
        self.b, self.z = self._cycle().b if preconditioned else system.array(), system.array()
        self._p, self._rho = system.array(), np.zeros(2, runtime.real_dtype())
        y = self._cycle().z if preconditioned else self.b
        step = kernels(runtime.real(), system.dim).step
        r, p, q, z = (target(array) for array in (self.b, self._p, system.array(), self.z))
        self._step = step.bind(system.grid, system.diagonal, r, y, p, q, z, self._rho, int(system.is_singular))
        self.iterations, self.residual = 0, 0.0
        self._magnitude = 0.0

    def solve(self) -> None:
        """Compute z from b, which is overwritten by the residual over the magnitude of b.

        It is of degree one in b, whatever its magnitude. If a number in b is not finite, all of z is NaN.
        """
        self.iterations, self.residual = 0, 0.0
        self.z.fill(0)
        self._magnitude = find_magnitude(self.b)
        if not self._magnitude > 0:  # iterations would not begin
            self._system.inside(self.z).fill(self._magnitude)
            return
        self.b /= self._magnitude
        self._subtract_mean(self.b)
        self._p.fill(0)
        self._rho.fill(0)
        start = math.sqrt(np.einsum("i,i", self.b, self.b))  # not in BLAS, which would start other threads
        left = start
        while left > self._tolerance * start and self.iterations < self._most_iterations:
            if self._preconditioned:
                self._cycle().solve()
            self._step()
            left = math.sqrt(self._rho[1])
            self.iterations += 1
        self.residual = left / start if start else 0.0
        self._subtract_mean(self.z)
        self.z *= self._magnitude

    def error(self) -> float:
        """Estimate |e|_A with one more multigrid cycle."""
        cycle = self._cycle()
        if cycle.b is not self.b:
            cycle.b[...] = self.b
        cycle.solve()
        return self._magnitude * math.sqrt(max(float(np.einsum("i,i", cycle.b, cycle.z)), 0.0))

    def _subtract_mean(self, array: Any) -> None:
        """Subtract the mean if A is singular for constants."""
        if self._system.is_singular:
            inside = self._system.inside(array)
            inside -= inside.mean()
