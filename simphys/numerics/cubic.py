"""Cubic convolution on a regular grid: which nodes a point between them sees, with which weights.

Node i of an axis lies at i dx. A point x sees the 4 nodes an axis from floor(x / dx) - 1 on. With
f = x / dx - floor(x / dx), between 0 and 1,

    w_0 = -f^3 / 2 + f^2 - f / 2              w_0' = -3/2 f^2 + 2 f - 1/2          (by f)
    w_1 = 3/2 f^3 - 5/2 f^2 + 1               w_1' = 9/2 f^2 - 5 f
    w_2 = -3/2 f^3 + 2 f^2 + f / 2            w_2' = -9/2 f^2 + 4 f + 1/2
    w_3 = f^3 / 2 - f^2 / 2                   w_3' = 3/2 f^2 - f

and the weight of a node is the product over the axes. At a node its weight is 1 and that of all others 0; weights and
their first derivatives are continuous in x; quadratic fields are reproduced, so that what is spread with these weights
has the zeroth, first and second moment of a delta at x. Nodes beyond a side stand for cells inside, see `boundary`.
Source: Keys 1981, with a = -1/2.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import boundary

STENCIL = 4
"""Nodes that a point sees along an axis."""


@functools.cache
@no_type_check
def functions(real: Any, cells: tuple[int, ...], boundaries: tuple[str, ...]) -> SimpleNamespace:
    """The element functions for a grid with these sides, x-, x+, y-, ..., each a kind that `boundary` knows."""
    dim = len(cells)
    vec, ivec = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32)
    table, itable = ti.types.matrix(STENCIL, dim, real), ti.types.matrix(STENCIL, dim, ti.i32)
    folds = [boundary.functions(real, cells[d], *boundaries[2 * d : 2 * d + 2]).fold for d in range(dim)]

    @ti.func
    def weights(f: vec) -> table:
        w = table(0.0)
        for d in ti.static(range(dim)):
            w[0, d] = f[d] * (f[d] * (1.0 - 0.5 * f[d]) - 0.5)
            w[1, d] = f[d] * f[d] * (1.5 * f[d] - 2.5) + 1.0
            w[2, d] = f[d] * (f[d] * (2.0 - 1.5 * f[d]) + 0.5)
            w[3, d] = f[d] * f[d] * (0.5 * f[d] - 0.5)
        return w

    @ti.func
    def slopes(f: vec) -> table:
        """The derivatives of the weights by f."""
        w = table(0.0)
        for d in ti.static(range(dim)):
            w[0, d] = f[d] * (2.0 - 1.5 * f[d]) - 0.5
            w[1, d] = f[d] * (4.5 * f[d] - 5.0)
            w[2, d] = f[d] * (4.0 - 4.5 * f[d]) + 0.5
            w[3, d] = f[d] * (1.5 * f[d] - 1.0)
        return w

    @ti.func
    def stencil(x: vec, inv_dx: real):
        """For each axis the 4 cells that x sees, their weights, and the derivatives of these by x.

        Cells are inside the grid wherever x is; the sign of one that stands for a node beyond is in its weight.
        """
        first = ti.floor(x * inv_dx)
        w, s, seen = weights(x * inv_dx - first), slopes(x * inv_dx - first), itable(0)
        for d in ti.static(range(dim)):
            for k in range(STENCIL):
                cell, sign = folds[d](ti.cast(first[d], ti.i32) + (k - 1))
                seen[k, d] = cell
                w[k, d] *= sign
                s[k, d] *= sign * inv_dx
        return seen, w, s

    @ti.func
    def offset(number) -> ivec:
        """Of a node from the first one, by its number from 0 to 4^dim - 1."""
        o = ivec(0)
        for d in ti.static(range(dim)):
            o[d] = (number >> (2 * (dim - 1 - d))) & 3
        return o

    @ti.func
    def cell(seen: itable, o: ivec) -> ivec:
        """What the node at that offset stands for."""
        c = ivec(0)
        for d in ti.static(range(dim)):
            c[d] = seen[o[d], d]
        return c

    @ti.func
    def weight(w: table, o: ivec) -> real:
        product = w[o[0], 0]
        for d in ti.static(range(1, dim)):
            product *= w[o[d], d]
        return product

    @ti.func
    def slope(w: table, s: table, o: ivec) -> vec:
        """The derivative of that weight by x."""
        gradient = vec(1.0)
        for axis in ti.static(range(dim)):
            for d in ti.static(range(dim)):
                if ti.static(d == axis):
                    gradient[axis] *= s[o[d], d]
                else:
                    gradient[axis] *= w[o[d], d]
        return gradient

    return SimpleNamespace(
        weights=weights, slopes=slopes, stencil=stencil, offset=offset, cell=cell, weight=weight, slope=slope
    )
