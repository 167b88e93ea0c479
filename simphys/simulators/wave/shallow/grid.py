"""Index arithmetic for cells, faces and corners of an Arakawa C-grid.

Cell (i, j) of batch member b has the number c = (b n_x + i) n_y + j. The face before it along an axis and the corner
before it along both have the same number. Numbers wrap around, as on a periodic grid. A wall consists of the faces 0
along an axis, which stay closed; the face beyond the last cell is that same wall.

Components of a vector are stored one after the other, [dim, N]; N counts the cells of all batch members.
Source: Arakawa and Lamb 1977 (the C-grid).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import Tensor, runtime
from simphys.autograd.kernels.runtime import ti

from .model import CELL_US, ShallowWater


@functools.cache
@no_type_check
def functions(real: Any, dim: int, closed: tuple[bool, ...]) -> SimpleNamespace:
    """Neighbours of a cell, and means and differences over them.

    n is the number of cells of a batch member, m the distance in memory between neighbours along the first axis.
    """

    @ti.func
    def before(c, axis: ti.template(), n, m):
        found = ti.select(c % n < m, c + n - m, c - m)
        if ti.static(axis == 1):
            found = ti.select(c % m == 0, c + m - 1, c - 1)
        return found

    @ti.func
    def after(c, axis: ti.template(), n, m):
        found = ti.select(c % n >= n - m, c + m - n, c + m)
        if ti.static(axis == 1):
            found = ti.select(c % m == m - 1, c + 1 - m, c + 1)
        return found

    @ti.func
    def is_open(c, axis: ti.template(), n, m):
        """Return True if the face is not part of a wall."""
        found = True
        if ti.static(closed[axis] and axis == 0):
            found = c % n >= m
        if ti.static(closed[axis] and axis == 1):
            found = c % m != 0
        return found

    @ti.func
    def to_face(x: ti.template(), c, axis: ti.template(), n, m):
        """Average a cell quantity at a face."""
        return 0.5 * (x[c] + x[before(c, axis, n, m)])

    @ti.func
    def to_cell(w: ti.template(), c, axis: ti.template(), n, m, N):
        """Average a quantity of the faces normal to an axis at a cell: the transpose of `to_face`."""
        return 0.5 * (w[axis * N + c] + w[axis * N + after(c, axis, n, m)])

    @ti.func
    def to_corner(w: ti.template(), c, axis: ti.template(), n, m, N):
        """Average a quantity of the faces normal to an axis at a corner."""
        return 0.5 * (w[axis * N + c] + w[axis * N + before(c, 1 - axis, n, m)])

    @ti.func
    def difference(x: ti.template(), c, axis: ti.template(), n, m):
        """Difference a cell quantity across a face."""
        return x[c] - x[before(c, axis, n, m)]

    @ti.func
    def divergence(w: ti.template(), c, n, m, N):
        """Sum the differences of a face quantity across a cell: the negative transpose of `difference`."""
        total = real(0.0)
        for axis in ti.static(range(dim)):
            total += w[axis * N + after(c, axis, n, m)] - w[axis * N + c]
        return total

    return SimpleNamespace(
        before=before, after=after, is_open=is_open,
        to_face=to_face, to_cell=to_cell, to_corner=to_corner, difference=difference, divergence=divergence,
    )  # fmt: skip


def flatten(*arrays: Any) -> list[Any]:
    """Flatten arrays and Tensors, as kernels expect them."""
    return [(x.data if isinstance(x, Tensor) else x).reshape(-1) for x in arrays]


def sizes(model: ShallowWater, batch: int = 1) -> tuple[int, int, int]:
    """Return the counts n, m and N that kernels take."""
    n = model.row * model.cells[0]
    return n, model.row, batch * n


def is_parallel(model: ShallowWater, batch: int = 1) -> bool:
    """Return True if loops over a batch of this size run on several threads."""
    return runtime.parallel(CELL_US * sizes(model, batch)[-1])
