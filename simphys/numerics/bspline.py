"""Quadratic B-splines on a regular grid: the nodes that interact with a point, and their weights.

Along each axis, a point x interacts with 3 nodes, from base = int(x / dx - 1/2) on. With f = x / dx - base, between 1/2
and 3/2,

    w_0 = (3/2 - f)^2 / 2      w_1 = 3/4 - (f - 1)^2      w_2 = (f - 1/2)^2 / 2
    w_0' = f - 3/2             w_1' = -2 (f - 1)          w_2' = f - 1/2            (d/df)

and the weight of a node is the product over the axes. Weights and their first derivatives are continuous in x, also
where base changes. Source: Steffen, Kirby and Berzins 2008; Hu et al. 2018 (MLS-MPM).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

STENCIL = 3
"""Number of nodes per axis that interact with a point."""


def count_lines(dim: int) -> int:
    """Number of lines of 3 nodes, parallel to the last axis, that interact with a point.

    Sums over the nodes go line by line, so that factors common to a line are computed once.
    """
    return int(STENCIL ** (dim - 1))


@functools.cache
@no_type_check
def functions(real: Any, dim: int, cells: tuple[int, ...]) -> SimpleNamespace:
    """The element functions for a grid in row-major order, with the given number of nodes along each axis."""
    vec, ivec, table = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32), ti.types.matrix(3, dim, real)
    places = ti.types.vector(dim - 1, ti.i32)
    strides = [1]
    for count in reversed(cells[1:]):
        strides.insert(0, strides[0] * count)

    @ti.func
    def base(x: vec, inv_dx: real) -> ivec:
        """First node; clamped so that all 3 nodes per axis lie inside the grid for any x."""
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
        """Derivatives of the weights with respect to f."""
        w = table(0.0)
        for d in ti.static(range(dim)):
            w[0, d] = f[d] - 1.5
            w[1, d] = -2.0 * (f[d] - 1.0)
            w[2, d] = f[d] - 0.5
        return w

    @ti.func
    def offset(number) -> places:
        """Offset of a line along all axes but the last, by its number; lines are numbered in memory order."""
        o = places(0)
        if ti.static(dim == 2):
            o[0] = number
        else:
            o[0] = number // 3
            o[1] = number % 3
        return o

    @ti.func
    def line_weight(w: table, o: places) -> real:
        """Factor of the weight that all nodes of the line at this offset share."""
        product = w[o[0], 0]
        for d in ti.static(range(1, dim - 1)):
            product *= w[o[d], d]
        return product

    @ti.func
    def line_slope(w: table, s: table, o: places, axis: ti.template()) -> real:
        """Derivative of that factor with respect to f along an axis."""
        product = s[o[axis], axis]
        for d in ti.static(range(dim - 1)):
            if ti.static(d != axis):
                product *= w[o[d], d]
        return product

    @ti.func
    def start(b: ivec) -> ti.i32:
        """Memory index of the first node of the first line."""
        place = 0
        for d in ti.static(range(dim)):
            place += b[d] * strides[d]
        return place

    @ti.func
    def line_offset(o: places) -> ti.i32:
        """Distance in memory from the first line to the line at this offset."""
        place = 0
        for d in ti.static(range(dim - 1)):
            place += o[d] * strides[d]
        return place

    return SimpleNamespace(
        base=base,
        weights=weights,
        slopes=slopes,
        offset=offset,
        line_weight=line_weight,
        line_slope=line_slope,
        start=start,
        line_offset=line_offset,
    )
