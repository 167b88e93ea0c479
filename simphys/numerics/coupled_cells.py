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

from .magnitude import find_magnitude

Array = np.ndarray[Any, Any]

TOLERANCE = {"f32": 1e-6, "f64": 1e-13}
"""Residual relative to b, by precision."""


@functools.cache
def _kernel(real: Any) -> Any:
    """Kernel of all iterations. The arrays of cells have `pad` zeros before the first cell and after the last one."""
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
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


def couple_faces(k: Array, spacing: float) -> Array:
    """Compute g [dim, *cells] of conduction, -div(k grad): the harmonic mean of k through each face, by spacing^2."""
    coupling, factor = np.zeros((k.ndim, *k.shape), k.dtype), 2 / spacing**2
    for axis in range(k.ndim):
        low, high = at_faces(k, axis)
        along(coupling[axis], axis)[:-1] = factor * low * high / (low + high)
    return coupling


def adj_couple_faces(k: Array, spacing: float, adj: Array) -> Array:
    """Compute the adjoint of k from that of g."""
    adj_k, factor = np.zeros_like(k), 2 / spacing**2
    for axis in range(k.ndim):
        low, high = at_faces(k, axis)
        w = factor * along(adj[axis], axis)[:-1] / (low + high) ** 2
        along(adj_k, axis)[:-1] += high * high * w
        along(adj_k, axis)[1:] += low * low * w
    return adj_k


def jvp_couple_faces(k: Array, spacing: float, dk: Array) -> Array:
    """Compute the tangent of g from that of k."""
    dcoupling, factor = np.zeros((k.ndim, *k.shape), k.dtype), 2 / spacing**2
    for axis in range(k.ndim):
        (low, high), (dlow, dhigh) = at_faces(k, axis), at_faces(dk, axis)
        along(dcoupling[axis], axis)[:-1] = factor * (high * high * dlow + low * low * dhigh) / (low + high) ** 2
    return dcoupling


def couple_sides(k: Array, spacing: float, open_sides: Sequence[int]) -> Array:
    """Compute the coupling [*cells] with sides that are held at 0, half a cell away. It is linear, and symmetric."""
    found, factor = np.zeros_like(k), 2 / spacing**2
    for side in open_sides:
        layer = (slice(None),) * (side // 2) + (-(side % 2),)
        found[layer] += factor * k[layer]
    return found


def add_faces(own: Array, coupling: Array) -> Array:
    """Compute the diagonal d = e + sum of g over the faces of a cell, for e = `own` [*cells]."""
    diagonal = own.copy()
    for axis in range(own.ndim):
        g = along(coupling[axis], axis)[:-1]
        along(diagonal, axis)[:-1] += g
        along(diagonal, axis)[1:] += g
    return diagonal


def multiply(own: Array, coupling: Array, x: Array) -> Array:
    """Compute A x: for each cell e x, for e = `own`, and the sum of g_ij (x_i - x_j) over its neighbours."""
    product = own * x
    for axis in range(x.ndim):
        flow = along(coupling[axis], axis)[:-1] * np.diff(along(x, axis), axis=0)
        along(product, axis)[:-1] -= flow
        along(product, axis)[1:] += flow
    return product


def adj_multiply(x: Array, adj: Array) -> tuple[Array, Array]:
    """Compute the adjoints of e and g from that of A x."""
    adj_coupling = np.zeros((x.ndim, *x.shape), x.dtype)
    for axis in range(x.ndim):
        pairs = [np.diff(along(values, axis), axis=0) for values in (adj, x)]
        along(adj_coupling[axis], axis)[:-1] = pairs[0] * pairs[1]
    return x * adj, adj_coupling


def couple_cells(k: Array, spacing: float, open_sides: Sequence[int]) -> tuple[Array, Array]:
    """Compute d [*cells] and g [dim, *cells] of conduction.

    open_sides: numbers of the sides that are held at 0, half a cell away.
    """
    coupling = couple_faces(k, spacing)
    return add_faces(couple_sides(k, spacing, open_sides), coupling), coupling


def along(array: Array, axis: int) -> Array:
    """View an array with this axis first."""
    return np.moveaxis(array, axis, 0)


def at_faces(array: Array, axis: int) -> tuple[Array, Array]:
    """View the values at the lower and at the upper cell of the faces along an axis, which comes first."""
    view = along(array, axis)
    return view[:-1], view[1:]


class CoupledCells:
    """The matrix A, and its solver.

    diagonal: d [*cells]. coupling: g [dim, *cells] of each cell with the next one along each axis; the last has none.
    """

    def __init__(self, diagonal: Array, coupling: Array) -> None:
        cells = diagonal.shape
        strides = [math.prod(cells[axis + 1 :]) for axis in range(len(cells))]
        self._cells, self._pad, self._diagonal = cells, max(strides), diagonal.reshape(-1)
        self._strides = np.array(strides, np.int32)
        padded = np.zeros((len(cells), diagonal.size + 2 * self._pad), coupling.dtype)
        for axis, g in enumerate(coupling):
            inner = padded[axis, self._pad : -self._pad].reshape(cells)
            along(inner, axis)[:-1] = along(g, axis)[:-1]
        self._coupling = padded.reshape(-1)

    def solve(self, b: Array) -> Array:
        """Compute x = A^-1 b. The iterations end at rounding, or after as many as there are cells.

        It is of degree one in b, whatever its magnitude. If a number in b is not finite, all of x is NaN.
        """
        real, n = runtime.real_dtype(), b.size
        magnitude = find_magnitude(b)
        if not magnitude > 0:  # iterations would not begin
            return np.full(self._cells, magnitude, real)
        x, q, p = np.zeros(n, real), np.empty(n, real), np.zeros(n + 2 * self._pad, real)
        info = np.array([TOLERANCE[runtime.settings().precision], 2 * n + 10, 0, 0], real)
        r = (b / magnitude).astype(real, copy=False).reshape(-1)
        _kernel(runtime.real())(self._strides, self._diagonal, self._coupling, r, p, q, x, info, self._pad)
        return magnitude * x.reshape(self._cells)
