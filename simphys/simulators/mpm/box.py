"""The part of the grid that a piece of the particles sees: a box of nodes, worked through line by line.

A CPU shares the particles out in pieces, and each adds to a grid of its own, so that no sum depends on the number of
threads: sums over the pieces have one order. Only nodes in the box of a piece are cleared and added up. A line is what
a box holds of a row of nodes along the last axis, which follow each other in memory.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import bspline, memory


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any, dim: int, cells: tuple[int, ...]) -> SimpleNamespace:
    """`span` holds the box of each piece, the lower corner and then the upper one, which is outside: 2 dim numbers."""
    ivec, spline, read = ti.types.vector(dim, ti.i32), bspline.functions(real, dim, cells), memory.functions(real, dim)

    @ti.func
    def find(span: ti.template(), piece: ti.i32, x: ti.template(), first: ti.i32, last: ti.i32, inv_dx: real):
        """The box of the particles first ... last - 1 of positions x."""
        low, high = ivec(ti.static(cells)), ivec(0)
        for i in range(first, last):
            base = spline.base(read.vector(x, i), inv_dx)
            low, high = ti.min(low, base), ti.max(high, base + 3)
        for d in ti.static(range(dim)):
            span[2 * dim * piece + d] = low[d]
            span[2 * dim * piece + dim + d] = ti.max(low[d], high[d])

    @ti.func
    def low(span: ti.template(), piece: ti.i32) -> ivec:
        return ivec([span[2 * dim * piece + d] for d in ti.static(range(dim))])

    @ti.func
    def high(span: ti.template(), piece: ti.i32) -> ivec:
        return ivec([span[2 * dim * piece + dim + d] for d in ti.static(range(dim))])

    @ti.func
    def union(span: ti.template(), pieces: ti.i32):
        """The corners of the box around all boxes."""
        a, b = low(span, 0), high(span, 0)
        for piece in range(1, pieces):
            a, b = ti.min(a, low(span, piece)), ti.max(b, high(span, piece))
        return a, b

    @ti.func
    def lines(a: ivec, b: ivec) -> ti.i32:
        """How many a box has."""
        count = b[0] - a[0]
        if ti.static(dim == 3):
            count *= b[1] - a[1]
        return count

    @ti.func
    def cell(a: ivec, b: ivec, line: ti.i32) -> ivec:
        """The first node of a line."""
        found = a
        if ti.static(dim == 3):
            width = ti.max(b[1] - a[1], 1)
            found[0] += line // width
            found[1] += line % width
        else:
            found[0] += line
        return found

    @ti.func
    def place(cell: ivec) -> ti.i32:
        """Of a node in memory."""
        at = cell[0]
        for d in ti.static(range(1, dim)):
            at = at * cells[d] + cell[d]
        return at

    @ti.func
    def clear(span: ti.template(), piece: ti.i32, grid: ti.template(), at: ti.i32, size: ti.template()):
        """The box of a piece in its grid, which begins at `at`, of `size` numbers a node."""
        a, b = low(span, piece), high(span, piece)
        for line in range(lines(a, b)):
            first = at + place(cell(a, b, line)) * size
            for k in range(first, first + (b[dim - 1] - a[dim - 1]) * size):
                grid[k] = 0.0

    @ti.func
    def add_up(
        span: ti.template(), pieces: ti.i32, a: ivec, b: ivec, line: ti.i32, grid: ti.template(), stride: ti.i32,
        total: ti.template(), size: ti.template(),
    ):
        """The line of the box (a, b) of all grids of the pieces, `stride` numbers each, in their order, to `total`."""
        start = cell(a, b, line)
        for k in range(place(start) * size, (place(start) + b[dim - 1] - a[dim - 1]) * size):
            total[k] = 0.0
        for piece in range(pieces):
            lower, upper = low(span, piece), high(span, piece)
            inside = True
            for d in ti.static(range(dim - 1)):
                inside = inside and start[d] >= lower[d] and start[d] < upper[d]
            if inside:
                here = start
                here[dim - 1] = lower[dim - 1]
                first = place(here)
                for k in range(first * size, (first + upper[dim - 1] - lower[dim - 1]) * size):
                    total[k] = total[k] + grid[piece * stride + k]

    return SimpleNamespace(find=find, clear=clear, union=union, lines=lines, cell=cell, place=place, add_up=add_up)
