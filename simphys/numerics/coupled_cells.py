"""Conjugate gradients for the cells of a grid that their faces couple, with the diagonal as preconditioner.

    (A x)_i = d_i x_i - sum over neighbours j of g_ij x_j        with g_ij = g_ji >= 0,  d_i >= sum of g_ij

With r = b - A x: rho = r.(r/d);  p <- r/d + rho / rho_before p;  q = A p;  alpha = rho / p.q;  x <- x + alpha p;
r <- r - alpha q. Source: Hestenes and Stiefel 1952; Golub and van Loan, Matrix Computations, algorithm 11.5.1.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti

Array = np.ndarray[Any, Any]

TOLERANCE = {"f32": 1e-6, "f64": 1e-13}
"""Residual relative to b, by precision."""


@functools.cache
@no_type_check
def _kernel(real: Any) -> Any:
    """Kernel of all iterations. The arrays of cells have `pad` zeros before the first cell and after the last one."""
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def solve(strides: integers, d: reals, g: reals, r: reals, p: reals, q: reals, x: reals, info: reals, pad: ti.i32):
        """Solve for b in r, which becomes the residual. info: tolerance and most iterations; iterations, residual."""
        ti.loop_config(serialize=True)
        for _ in range(1):
            n, size = x.shape[0], p.shape[0]
            square = ti.cast(0.0, real)
            for i in range(n):
                square += r[i] * r[i]
            limit, left, before = info[0] * info[0] * square, square, ti.cast(0.0, real)
            rounds = 0
            while left > limit and rounds < info[1]:
                rho = ti.cast(0.0, real)
                for i in range(n):
                    rho += r[i] * r[i] / d[i]
                beta = ti.cast(0.0, real)
                if before > 0:
                    beta = rho / before
                for i in range(n):
                    p[pad + i] = r[i] / d[i] + beta * p[pad + i]
                curvature = ti.cast(0.0, real)
                for i in range(n):
                    total = d[i] * p[pad + i]
                    for axis in range(strides.shape[0]):
                        s, at = strides[axis], axis * size + pad + i
                        total -= g[at] * p[pad + i + s] + g[at - s] * p[pad + i - s]
                    q[i] = total
                    curvature += total * p[pad + i]
                alpha = rho / curvature
                left = ti.cast(0.0, real)
                for i in range(n):
                    x[i] = x[i] + alpha * p[pad + i]
                    rest = r[i] - alpha * q[i]
                    r[i] = rest
                    left += rest * rest
                before = rho
                rounds += 1
            info[2], info[3] = rounds, ti.sqrt(left)

    return solve


def couple_cells(k: Array, spacing: float, open_sides: Sequence[int]) -> tuple[Array, Array]:
    """Compute d [*cells] and g [dim, *cells] of conduction, -div(k grad): the harmonic mean of k through each face.

    open_sides: numbers of the sides that are held at 0, half a cell away.
    """
    diagonal, coupling, factor = np.zeros_like(k), np.zeros((k.ndim, *k.shape), k.dtype), 2 / spacing**2
    for axis in range(k.ndim):
        along, d, g = (np.moveaxis(array, axis, 0) for array in (k, diagonal, coupling[axis]))
        g[:-1] = factor * along[:-1] * along[1:] / (along[:-1] + along[1:])
        d += g
        d[1:] += g[:-1]
    for side in open_sides:
        layer = (slice(None),) * (side // 2) + (-(side % 2),)
        diagonal[layer] += factor * k[layer]
    return diagonal, coupling


class CoupledCells:
    """The matrix A, and its solver.

    diagonal: d [*cells]. coupling: g [dim, *cells] of each cell with the next one along each axis, 0 for the last.
    """

    def __init__(self, diagonal: Array, coupling: Array) -> None:
        cells = diagonal.shape
        strides = [math.prod(cells[axis + 1 :]) for axis in range(len(cells))]
        self._cells, self._pad, self._diagonal = cells, max(strides), diagonal.reshape(-1)
        self._strides = np.array(strides, np.int32)
        flat = coupling.reshape(len(cells), -1)
        self._coupling = np.pad(flat, ((0, 0), (self._pad, self._pad))).reshape(-1)

    def solve(self, b: Array) -> Array:
        """Compute x = A^-1 b. The iterations end at rounding, or after as many as there are cells."""
        real, n = runtime.real_dtype(), b.size
        x, q, p = np.zeros(n, real), np.empty(n, real), np.zeros(n + 2 * self._pad, real)
        info = np.array([TOLERANCE[runtime.settings().precision], 2 * n + 10, 0, 0], real)
        r = np.array(b, real).reshape(-1)
        _kernel(runtime.real())(self._strides, self._diagonal, self._coupling, r, p, q, x, info, self._pad)
        return x.reshape(self._cells)
