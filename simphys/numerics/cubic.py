"""Cubic convolution on a regular grid: the nodes that interact with a point between them, and their weights.

Node i of an axis lies at i dx. Along each axis, a point x interacts with 4 nodes, from floor(x / dx) - 1 on. With
f = x / dx - floor(x / dx), between 0 and 1,

    w_0 = -f^3 / 2 + f^2 - f / 2              w_0' = -3/2 f^2 + 2 f - 1/2          (d/df)
    w_1 = 3/2 f^3 - 5/2 f^2 + 1               w_1' = 9/2 f^2 - 5 f
    w_2 = -3/2 f^3 + 2 f^2 + f / 2            w_2' = -9/2 f^2 + 4 f + 1/2
    w_3 = f^3 / 2 - f^2 / 2                   w_3' = 3/2 f^2 - f

and the weight of a node is the product over the axes. At a node its own weight is 1 and all others are 0. Weights and
their first derivatives are continuous in x. Quadratic fields are reproduced, so a source spread with these weights has
the zeroth, first and second moments of a delta at x. Nodes beyond a side stand for cells inside, see `boundary`.
Source: Keys 1981, with a = -1/2.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import boundary

STENCIL = 4
"""Number of nodes per axis that interact with a point."""


@functools.cache
@no_type_check
def functions(real: Any, cells: tuple[int, ...], boundaries: tuple[str, ...]) -> SimpleNamespace:
    """The element functions for a grid; `boundaries` are the kinds of its sides x-, x+, y-, ..., see `boundary`."""
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
        """Derivatives of the weights with respect to f."""
        w = table(0.0)
        for d in ti.static(range(dim)):
            w[0, d] = f[d] * (2.0 - 1.5 * f[d]) - 0.5
            w[1, d] = f[d] * (4.5 * f[d] - 5.0)
            w[2, d] = f[d] * (4.0 - 4.5 * f[d]) + 0.5
            w[3, d] = f[d] * (1.5 * f[d] - 1.0)
        return w

    @ti.func
    def stencil(x: vec, inv_dx: real):
        """Stencil of x along each axis: 4 cells, their weights, and the derivatives of these with respect to x.

        The cells lie inside the grid for any x. The weight of a cell that stands for a node beyond a side includes its
        sign.
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
        """Offset of a node from the first one, by its number from 0 to 4^dim - 1."""
        o = ivec(0)
        for d in ti.static(range(dim)):
            o[d] = (number >> (2 * (dim - 1 - d))) & 3
        return o

    @ti.func
    def cell(seen: itable, o: ivec) -> ivec:
        """Cell that the node at this offset stands for."""
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
        """Derivative of that weight with respect to x."""
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
