"""Undivided divergence of a velocity, and its correction by a pressure; each is the transpose of the other.

Staggered, with the weight m of each face (1, or 0 to exclude it):

    b_i = sum_a m_(i+1) u_a,(i+1) - m_i u_a,i        u'_a,i = u_a,i - m_i (z_(i-1) - z_i)

Collocated, by central differences, with u extended oddly beyond walls, and z evenly:

    b_i = sum_a (u_a,(i+1) - u_a,(i-1)) / 2          u'_a,i = u_a,i - (z_(i-1) - z_(i+1)) / 2

Thus b = D u and u' = u - D^T z; the pressure is -spacing z. In 2-D the axes are rows and columns, in 3-D planes, rows
and columns. See `numerics.poisson` for the layout of b and z.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.poisson import (
    COLUMNS,
    PERIODIC_COLUMNS,
    PERIODIC_PLANES,
    PERIODIC_ROWS,
    PLANE_STRIDE,
    PLANES,
    ROW_STRIDE,
    ROWS,
)
from simphys.numerics.poisson import functions as passes

BLOCK = 32
"""Number of cells of a row that are computed together."""

COMPONENT, WEIGHTS = 3, 4
"""Indices in `faces` of the size of a component and of a row of weights, after the counts along the three axes."""


@ti.func
def weight(w: ti.template(), faces: ti.template(), a: ti.template(), plane, row, column):
    place = 2 * faces[WEIGHTS] + column
    if ti.static(a == 1):
        place = faces[WEIGHTS] + row
    if ti.static(a == 0):
        place = plane
    return w[place]


@ti.func
def sum_at(target: ti.template(), adds: ti.template(), i, value):
    """Return a value, or its sum with what an entry of the target holds already."""
    return target[i] + value if ti.static(adds) else value


def staggered_divergence(real: Any, dim: int) -> Any:
    f, block = passes(real, dim), ti.types.vector(BLOCK, real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @ti.func
    def cross_outflow(faces: ti.template(), w: ti.template(), u: ti.template(), begin, plane, row, j):
        """Return the outflow of a cell through the faces between rows, and in 3-D between planes."""
        here, after = (plane * faces[ROWS] + row) * faces[COLUMNS] + j, (row + 1) % faces[ROWS]
        row_component = begin + (dim - 2) * faces[COMPONENT]
        to = row_component + (plane * faces[ROWS] + after) * faces[COLUMNS] + j
        total = w[faces[WEIGHTS] + row + 1] * u[to] - w[faces[WEIGHTS] + row] * u[row_component + here]
        if ti.static(dim == 3):
            beyond = ((plane + 1) % faces[PLANES] * faces[ROWS] + row) * faces[COLUMNS] + j
            total += w[plane + 1] * u[begin + beyond] - w[plane] * u[begin + here]
        return total

    @no_type_check
    @kernel
    def divergence(grid: integers, faces: integers, w: reals, u: reals, b: reals, begin: ti.i32):
        ti.loop_config(serialize=True)
        for _ in range(1):
            v = block(0)
            for plane, row in ti.ndrange(grid[PLANES], grid[ROWS]):
                to = f.start(grid, plane, row)
                at = begin + (dim - 1) * faces[COMPONENT] + (plane * faces[ROWS] + row) * faces[COLUMNS]
                one = 2 * faces[WEIGHTS]
                blocks = (faces[COLUMNS] - 1) // BLOCK
                for part in range(blocks):
                    first = part * BLOCK
                    for k in range(BLOCK):
                        j = first + k
                        along = w[one + j + 1] * u[at + j + 1] - w[one + j] * u[at + j]
                        v[k] = cross_outflow(faces, w, u, begin, plane, row, j) + along
                    for k in range(BLOCK):
                        b[to + first + k] = v[k]
                for j in range(blocks * BLOCK, grid[COLUMNS]):
                    along = w[one + j + 1] * u[at + (j + 1) % faces[COLUMNS]] - w[one + j] * u[at + j]
                    b[to + j] = cross_outflow(faces, w, u, begin, plane, row, j) + along

    return divergence


def staggered_correction(real: Any, dim: int, adds: bool) -> Any:
    f, block = passes(real, dim), ti.types.vector(BLOCK, real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def correct(
        grid: integers, faces: integers, w: reals, z: reals, u: reals, target: reals, begin: ti.i32,
        target_begin: ti.i32,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.wrap(grid, z, 0)
            v = block(0)
            for a in ti.static(range(3 - dim, 3)):
                planes, rows, columns = grid[PLANES], grid[ROWS], grid[COLUMNS]
                stride = 1
                if ti.static(a == 0):
                    planes, stride = faces[PLANES], grid[PLANE_STRIDE]
                if ti.static(a == 1):
                    rows, stride = faces[ROWS], grid[ROW_STRIDE]
                if ti.static(a == 2):
                    columns = faces[COLUMNS]
                for plane, row in ti.ndrange(planes, rows):
                    at = f.start(grid, plane, row)
                    to = (a + dim - 3) * faces[COMPONENT] + (plane * faces[ROWS] + row) * faces[COLUMNS]
                    blocks = columns // BLOCK
                    for part in range(blocks):
                        first = part * BLOCK
                        for k in range(BLOCK):
                            j = first + k
                            change = weight(w, faces, a, plane, row, j) * (z[at + j - stride] - z[at + j])
                            v[k] = sum_at(target, adds, target_begin + to + j, u[begin + to + j] - change)
                        for k in range(BLOCK):
                            target[target_begin + to + first + k] = v[k]
                    for j in range(blocks * BLOCK, columns):
                        change = weight(w, faces, a, plane, row, j) * (z[at + j - stride] - z[at + j])
                        there = target_begin + to + j
                        target[there] = sum_at(target, adds, there, u[begin + to + j] - change)

    return correct


@functools.cache
def staggered(real: Any, dim: int, adds: bool) -> SimpleNamespace:
    """The loops on a staggered grid, with weights w of faces along each axis; its correction may add to a target."""
    return SimpleNamespace(divergence=staggered_divergence(real, dim), correct=staggered_correction(real, dim, adds))


@ti.func
def neighbours(i, n, periodic):
    """Return the cells before and after i, or i itself at a wall."""
    before, after = i - 1, i + 1
    if i == 0:
        before = ti.select(periodic, n - 1, 0)
    if i == n - 1:
        after = ti.select(periodic, 0, n - 1)
    return before, after


@ti.func
def sign(i, neighbour, periodic):
    """Return -1 for a mirror image, else 1."""
    return ti.select(i == neighbour and periodic == 0, -1.0, 1.0)


def collocated_divergence(real: Any, dim: int) -> Any:
    f, block = passes(real, dim), ti.types.vector(BLOCK, real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def divergence(grid: integers, faces: integers, w: reals, u: reals, b: reals, begin: ti.i32):
        ti.loop_config(serialize=True)
        for _ in range(1):
            planes, rows, columns, periodic = grid[PLANES], grid[ROWS], grid[COLUMNS], grid[PERIODIC_COLUMNS]
            v = block(0)
            for plane, row in ti.ndrange(planes, rows):
                to = f.start(grid, plane, row)
                at = begin + (dim - 1) * faces[COMPONENT] + (plane * rows + row) * columns  # along the row
                row_before, row_after = neighbours(row, rows, grid[PERIODIC_ROWS])
                below, above = sign(row, row_before, grid[PERIODIC_ROWS]), sign(row, row_after, grid[PERIODIC_ROWS])
                below_at = begin + (dim - 2) * faces[COMPONENT] + (plane * rows + row_before) * columns
                above_at = begin + (dim - 2) * faces[COMPONENT] + (plane * rows + row_after) * columns
                plane_before, plane_after = neighbours(plane, planes, grid[PERIODIC_PLANES])
                near = sign(plane, plane_before, grid[PERIODIC_PLANES])
                far = sign(plane, plane_after, grid[PERIODIC_PLANES])
                near_at = begin + (plane_before * rows + row) * columns
                far_at = begin + (plane_after * rows + row) * columns
                blocks = ti.max(columns - 2, 0) // BLOCK
                for part in range(blocks):
                    first = 1 + part * BLOCK
                    for k in range(BLOCK):
                        j = first + k
                        total = above * u[above_at + j] - below * u[below_at + j] + u[at + j + 1] - u[at + j - 1]
                        if ti.static(dim == 3):
                            total += far * u[far_at + j] - near * u[near_at + j]
                        v[k] = 0.5 * total
                    for k in range(BLOCK):
                        b[to + first + k] = v[k]
                for k in range(columns - blocks * BLOCK):  # the first cell, and those after the last block
                    j = ti.select(k == 0, 0, blocks * BLOCK + k)
                    before, after = neighbours(j, columns, periodic)
                    total = above * u[above_at + j] - below * u[below_at + j]
                    total += sign(j, after, periodic) * u[at + after] - sign(j, before, periodic) * u[at + before]
                    if ti.static(dim == 3):
                        total += far * u[far_at + j] - near * u[near_at + j]
                    b[to + j] = 0.5 * total

    return divergence


def collocated_correction(real: Any, dim: int, adds: bool) -> Any:
    f, block = passes(real, dim), ti.types.vector(BLOCK, real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def correct(
        grid: integers, faces: integers, w: reals, z: reals, u: reals, target: reals, begin: ti.i32,
        target_begin: ti.i32,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.wrap(grid, z, 0)
            planes, rows, columns = grid[PLANES], grid[ROWS], grid[COLUMNS]
            v = block(0)
            for a in ti.static(range(3 - dim, 3)):
                for plane, row in ti.ndrange(planes, rows):
                    at = f.start(grid, plane, row)
                    to = (a + dim - 3) * faces[COMPONENT] + (plane * rows + row) * columns
                    lower, upper = at - 1, at + 1
                    if ti.static(a == 1):
                        lower = ti.select(row == 0 and grid[PERIODIC_ROWS] == 0, at, at - grid[ROW_STRIDE])
                        upper = ti.select(row == rows - 1 and grid[PERIODIC_ROWS] == 0, at, at + grid[ROW_STRIDE])
                    if ti.static(a == 0):
                        lower = ti.select(plane == 0 and grid[PERIODIC_PLANES] == 0, at, at - grid[PLANE_STRIDE])
                        upper = ti.select(
                            plane == planes - 1 and grid[PERIODIC_PLANES] == 0, at, at + grid[PLANE_STRIDE]
                        )
                    blocks = columns // BLOCK
                    for part in range(blocks):
                        first = part * BLOCK
                        for k in range(BLOCK):
                            j = first + k
                            change = 0.5 * (z[lower + j] - z[upper + j])
                            v[k] = sum_at(target, adds, target_begin + to + j, u[begin + to + j] - change)
                        for k in range(BLOCK):
                            target[target_begin + to + first + k] = v[k]
                    for j in range(blocks * BLOCK, columns):
                        there = target_begin + to + j
                        change = 0.5 * (z[lower + j] - z[upper + j])
                        target[there] = sum_at(target, adds, there, u[begin + to + j] - change)
                    if ti.static(a == 2) and grid[PERIODIC_COLUMNS] == 0:  # ghosts at the ends of rows are 0: correct
                        there = target_begin + to
                        target[there] = target[there] - 0.5 * z[at]
                        target[there + columns - 1] = target[there + columns - 1] + 0.5 * z[at + columns - 1]

    return correct


@functools.cache
def collocated(real: Any, dim: int, adds: bool) -> SimpleNamespace:
    """The loops on a collocated grid, which has no weights; a correction may add to its target."""
    return SimpleNamespace(divergence=collocated_divergence(real, dim), correct=collocated_correction(real, dim, adds))
