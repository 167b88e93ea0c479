"""Conjugate gradients as in conjugate_gradients.py, with a thread for each cell, for a GPU.

All arrays stay on the device. An iteration is one launch, after which a few numbers come back: `scalars`.
"""

import functools
import math
from typing import Any, no_type_check

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.calls import Chain, KernelCall, Launch, join
from simphys.autograd.kernels.runtime import ti

from .cell_multigrid import CellMultigrid
from .cell_scalars import ALPHA, BETA, INVERSE, MAGNITUDE, MEAN, PRODUCT, SCALARS, iteration_scalars, magnitude_kernel
from .cell_sums import Sums, count_terms
from .conjugate_gradients import ConjugateGradients
from .jacobi import cells as find_cells
from .poisson import Poisson


def conjugate_gradients(
    system: Poisson, *, tolerance: float, most_iterations: int, preconditioned: bool
) -> "ConjugateGradients | CellConjugateGradients":
    """Make the solver for the device in force, with b and z where its kernels run."""
    kind = CellConjugateGradients if runtime.settings().on_gpu else ConjugateGradients
    return kind(system, tolerance=tolerance, most_iterations=most_iterations, preconditioned=preconditioned)


@functools.cache
def frame_kernels(real: Any, dim: int) -> dict[str, Any]:
    """Kernels before and after iterations, with a thread for each cell."""
    f = find_cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def begin(grid: integers, cells: ti.i32, scalars: reals, r: reals, p: reals, z: reals):
        """Divide r by the magnitude; start from p = 0 and z = 0."""
        for c in range(cells):
            at = f.find_place(grid, c)
            r[at] *= scalars[INVERSE]
            p[at] = 0.0
            z[at] = 0.0

    @no_type_check
    @kernel
    def subtract_mean(grid: integers, cells: ti.i32, scalars: reals, x: reals):
        for c in range(cells):
            x[f.find_place(grid, c)] -= scalars[MEAN]

    @no_type_check
    @kernel
    def finish(grid: integers, cells: ti.i32, scalars: reals, z: reals):
        """Subtract the mean from z, and multiply it by the magnitude of b."""
        for c in range(cells):
            at = f.find_place(grid, c)
            z[at] = scalars[MAGNITUDE] * (z[at] - scalars[MEAN])

    return {"begin": begin, "subtract_mean": subtract_mean, "finish": finish}


@functools.cache
def iteration_kernels(real: Any, dim: int) -> dict[str, Any]:
    """Kernels of an iteration, with a thread for each cell, or for those whose products it adds up."""
    f = find_cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def update_direction(grid: integers, cells: ti.i32, scalars: reals, y: reals, p: reals):
        """Compute p = y + beta p."""
        for c in range(cells):
            at = f.find_place(grid, c)
            p[at] = y[at] + scalars[BETA] * p[at]

    @no_type_check
    @kernel
    def apply(grid: integers, cells: ti.i32, threads: ti.i32, d: reals, p: reals, q: reals, parts: reals):
        """Compute q = A p, and parts of p.q."""
        for t in range(threads):
            product = real(0.0)
            for k in range(count_terms(t, cells, threads)):
                plane, row, column = f.find(grid, t + k * threads)
                at = f.place(grid, plane, row, column)
                q[at] = d[at] * p[at] - f.sum_neighbours(grid, p, 0, plane, row, column)
                product += p[at] * q[at]
            parts[t] = product

    @no_type_check
    @kernel
    def update(
        grid: integers, cells: ti.i32, threads: ti.i32, scalars: reals, p: reals, q: reals, z: reals, r: reals,
        parts: reals,
    ):  # fmt: skip
        """Compute z = z + alpha p and r = r - alpha q, and parts [2, threads] of r.r and of the sum of r."""
        for t in range(threads):
            square, total = real(0.0), real(0.0)
            for k in range(count_terms(t, cells, threads)):
                at = f.find_place(grid, t + k * threads)
                z[at] += scalars[ALPHA] * p[at]
                r[at] -= scalars[ALPHA] * q[at]
                square += r[at] * r[at]
                total += r[at]
            parts[t], parts[threads + t] = square, total

    return {"update_direction": update_direction, "apply": apply, "update": update}


class CellConjugateGradients:
    """Solver for z = A^+ b, with b and z on the device; for the meaning of all else see `ConjugateGradients`."""

    def __init__(self, system: Poisson, *, tolerance: float, most_iterations: int, preconditioned: bool) -> None:
        self._system, self._tolerance, self._most_iterations = system, tolerance, most_iterations
        self._preconditioned = preconditioned
        self.b, self.z, self._p, self._q = (device.to_device(system.array()) for _ in range(4))
        self._scalars, self._sums = device.device_array((len(SCALARS),)), Sums(system.size)
        real, dim = runtime.real(), system.dim
        self._of_scalars = iteration_scalars(real) | {"magnitude": magnitude_kernel(real)}
        self._of_cells = frame_kernels(real, dim) | iteration_kernels(real, dim)
        self._diagonal = device.to_device(system.diagonal)
        self._grid = device.to_device(system.grid), math.prod(system.cells)
        self.iterations, self.residual, self._magnitude = 0, 0.0, 0.0
        self.solve = Chain(self._start(), self._iterate, self._finish())
        """Launch that computes z from b, which is overwritten by the residual over the magnitude of b."""

    def error(self) -> float:
        """Estimate |e|_A with one more multigrid cycle."""
        self._estimate()
        return self._magnitude * math.sqrt(max(self._read()[PRODUCT], 0.0))

    @functools.cached_property
    def _cycle(self) -> CellMultigrid:
        return CellMultigrid(self._system, self.b)

    def _start(self) -> Chain:
        """Launch what divides b by its magnitude, removes the mean if A is singular, and computes b.b."""
        sums, scalars, b = self._sums, self._scalars, self.b
        mean: list[Launch] = [sums.add_up(b), self._set("mean"), self._call("subtract_mean", scalars, b)]
        return Chain(
            *(sums.find_largest(b), self._set("magnitude"), self._call("begin", scalars, b, self._p, self.z)),
            *(mean if self._system.is_singular else []),
            *(sums.dot(b, b), self._set("product")),
        )

    def _iterate(self) -> None:
        """Iterate until the residual is small; for zeros, or a number that is not finite, do nothing."""
        self.iterations, self.residual = 0, 0.0
        scalars = self._read()
        self._magnitude = scalars[MAGNITUDE]
        if not self._magnitude > 0:
            return
        start = left = math.sqrt(scalars[PRODUCT])
        while left > self._tolerance * start and self.iterations < self._most_iterations:
            self._iteration()
            left = math.sqrt(max(self._read()[PRODUCT], 0.0))
            self.iterations += 1
        self.residual = left / start if start else 0.0

    def _finish(self) -> Chain:
        """Launch what removes the mean of z if A is singular, and multiplies by the magnitude."""
        mean: list[Launch] = [self._sums.add_up(self.z), self._set("mean")]
        return Chain(*(mean if self._system.is_singular else []), self._call("finish", self._scalars, self.z))

    @functools.cached_property
    def _iteration(self) -> Chain:
        """Launch of one iteration; without a preconditioner, the last sum is r.r, which is r.y."""
        sums, scalars, r, p, q = self._sums, self._scalars, self.b, self._p, self._q
        y = self._cycle.z if self._preconditioned else r
        singular = [self._set("mean_and_product"), self._call("subtract_mean", scalars, r)]
        launches = Chain(
            *([self._cycle.solve, sums.dot(r, y)] if self._preconditioned else []),
            self._set("beta"),
            self._call("update_direction", scalars, y, p),
            self._call("apply", sums.threads, self._diagonal, p, q, sums.parts),
            sums.add_up_parts(1),
            self._set("alpha"),
            self._call("update", sums.threads, scalars, p, q, self.z, r, sums.parts),
            sums.add_up_parts(2),
            *(singular if self._system.is_singular else [self._set("product")]),
        )
        return Chain(*join(launches.launches))

    @functools.cached_property
    def _estimate(self) -> Chain:
        """Launch of r.V r."""
        cycle = self._cycle
        return Chain(*join(Chain(cycle.solve, self._sums.dot(cycle.b, cycle.z), self._set("product")).launches))

    def _call(self, name: str, *arguments: Any) -> KernelCall:
        return KernelCall(self._of_cells[name], *self._grid, *arguments)

    def _set(self, name: str) -> KernelCall:
        _, cells = self._grid
        return KernelCall(self._of_scalars[name], cells, self._sums.groups, self._sums.results, self._scalars)

    def _read(self) -> list[float]:
        """Bring the scalars to the host."""
        found: list[float] = device.to_host(self._scalars, (len(SCALARS),)).tolist()
        return found
