"""The box of grid nodes that a piece of the particles reaches, processed line by line.

On a CPU the particles are divided into pieces, each of which adds to a grid of its own. The grids are summed in a fixed
order, so no result depends on the number of threads. Only nodes in the box of a piece are cleared and summed. A line
is the part of a box along the last axis, whose nodes are contiguous in memory.
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
    """Functions on boxes. `span` holds 2 dim numbers per piece: the lower corner, then the (exclusive) upper corner."""
    ivec, spline, read = ti.types.vector(dim, ti.i32), bspline.functions(real, dim, cells), memory.functions(real, dim)

    @ti.func
    def find(span: ti.template(), piece: ti.i32, x: ti.template(), first: ti.i32, last: ti.i32, inv_dx: real):
        """Find the box of the particles first ... last - 1 at positions x."""
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
        """Return the corners of the bounding box of all boxes."""
        a, b = low(span, 0), high(span, 0)
        for piece in range(1, pieces):
            a, b = ti.min(a, low(span, piece)), ti.max(b, high(span, piece))
        return a, b

    @ti.func
    def count_lines(a: ivec, b: ivec) -> ti.i32:
        """Count the lines of a box."""
        count = b[0] - a[0]
        if ti.static(dim == 3):
            count *= b[1] - a[1]
        return count

    @ti.func
    def first_node(a: ivec, b: ivec, line: ti.i32) -> ivec:
        """Return the first node of a line."""
        found = a
        if ti.static(dim == 3):
            width = ti.max(b[1] - a[1], 1)
            found[0] += line // width
            found[1] += line % width
        else:
            found[0] += line
        return found

    @ti.func
    def node_index(cell: ivec) -> ti.i32:
        """Return the index of a node in memory."""
        at = cell[0]
        for d in ti.static(range(1, dim)):
            at = at * cells[d] + cell[d]
        return at

    @ti.func
    def clear(span: ti.template(), piece: ti.i32, grid: ti.template(), at: ti.i32, size: ti.template()):
        """Clear the box of a piece in its grid, which begins at `at` and has `size` numbers for each node."""
        a, b = low(span, piece), high(span, piece)
        for line in range(count_lines(a, b)):
            first = at + node_index(first_node(a, b, line)) * size
            for k in range(first, first + (b[dim - 1] - a[dim - 1]) * size):
                grid[k] = 0.0

    @ti.func
    def sum_line(
        span: ti.template(), pieces: ti.i32, a: ivec, b: ivec, line: ti.i32, grid: ti.template(), stride: ti.i32,
        total: ti.template(), size: ti.template(),
    ):
        """Sum a line of the box (a, b) over the pieces' grids in order, into `total`; a grid has `stride` numbers."""
        start = first_node(a, b, line)
        for k in range(node_index(start) * size, (node_index(start) + b[dim - 1] - a[dim - 1]) * size):
            total[k] = 0.0
        for piece in range(pieces):
            lower, upper = low(span, piece), high(span, piece)
            inside = True
            for d in ti.static(range(dim - 1)):
                inside = inside and start[d] >= lower[d] and start[d] < upper[d]
            if inside:
                here = start
                here[dim - 1] = lower[dim - 1]
                first = node_index(here)
                for k in range(first * size, (first + upper[dim - 1] - lower[dim - 1]) * size):
                    total[k] = total[k] + grid[piece * stride + k]

    return SimpleNamespace(
        find=find, clear=clear, union=union,
        count_lines=count_lines, first_node=first_node, node_index=node_index, sum_line=sum_line,
    )
