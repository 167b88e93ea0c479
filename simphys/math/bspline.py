"""Quadratic B-splines on a regular grid: which nodes a point sees, with which weights.

A point x sees the 3 nodes an axis from base = int(x / dx - 1/2) on. With f = x / dx - base, between 1/2 and 3/2,

    w_0 = (3/2 - f)^2 / 2      w_1 = 3/4 - (f - 1)^2      w_2 = (f - 1/2)^2 / 2
    w_0' = f - 3/2             w_1' = -2 (f - 1)          w_2' = f - 1/2            (by f)

and the weight of a node is the product over the axes. Weights and their first derivatives are continuous in x, so that
nothing happens where base changes. Source: Steffen, Kirby and Berzins 2008; Hu et al. 2018 (MLS-MPM).
"""

import functools
import itertools
from types import SimpleNamespace
from typing import Any, no_type_check

from ..autograd.runtime import ti

STENCIL = 3
"""Nodes that a point sees along an axis."""


def offsets(dim: int) -> list[tuple[int, ...]]:
    """Of the nodes that a point sees from the first of them, in the order of the grid's memory."""
    return list(itertools.product(range(STENCIL), repeat=dim))


@functools.cache
@no_type_check
def functions(real: Any, dim: int, cells: tuple[int, ...]) -> SimpleNamespace:
    """The element functions for a grid of so many nodes along each axis, which lie in row-major order."""
    vec, ivec, table = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32), ti.types.matrix(3, dim, real)
    strides = [1]
    for count in reversed(cells[1:]):
        strides.insert(0, strides[0] * count)

    @ti.func
    def base(x: vec, inv_dx: real) -> ivec:
        """The first node; inside the grid wherever x is, so that no memory outside it is touched."""
        b = ivec(0)
        for d in ti.static(range(dim)):
            b[d] = ti.max(0, ti.min(int(x[d] * inv_dx - 0.5), cells[d] - 3))
        return b

    @ti.func
    def weights(f: vec) -> table:
        w = table(0.0)
        for d in ti.static(range(dim)):
            w[0, d] = 0.5 * (1.5 - f[d]) * (1.5 - f[d])
            w[1, d] = 0.75 - (f[d] - 1.0) * (f[d] - 1.0)
            w[2, d] = 0.5 * (f[d] - 0.5) * (f[d] - 0.5)
        return w

    @ti.func
    def slopes(f: vec) -> table:
        """The derivatives of the weights by f."""
        w = table(0.0)
        for d in ti.static(range(dim)):
            w[0, d] = f[d] - 1.5
            w[1, d] = -2.0 * (f[d] - 1.0)
            w[2, d] = f[d] - 0.5
        return w

    @ti.func
    def weight(w: table, o: ti.template()) -> real:
        """Of the node at offset o."""
        product = w[o[0], 0]
        for d in ti.static(range(1, dim)):
            product *= w[o[d], d]
        return product

    @ti.func
    def gradient(w: table, s: table, o: ti.template()) -> vec:
        """Of that weight, by f."""
        g = vec(0.0)
        for d in ti.static(range(dim)):
            product = s[o[d], d]
            for e in ti.static(range(dim)):
                if ti.static(e != d):
                    product *= w[o[e], e]
            g[d] = product
        return g

    @ti.func
    def node(b: ivec, o: ti.template()) -> ti.i32:
        """The place in memory of the node at offset o from b."""
        place = 0
        for d in ti.static(range(dim)):
            place += (b[d] + o[d]) * strides[d]
        return place

    @ti.func
    def distance(f: vec, o: ti.template()) -> vec:
        """From the point to the node at offset o, in spacings."""
        away = vec(0.0)
        for d in ti.static(range(dim)):
            away[d] = o[d] - f[d]
        return away

    return SimpleNamespace(
        base=base, weights=weights, slopes=slopes, weight=weight, gradient=gradient, node=node, distance=distance
    )
