"""The divergence and its correction (see divergence.py) with a thread for each cell or face, for a GPU.

Ghosts are not filled: at periodic sides the cell is read of which a ghost is the image, and on a collocated grid, at a
wall, the outermost cell itself. Beyond other sides z is 0 in memory.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.jacobi import cells as find_cells
from simphys.numerics.poisson import COLUMNS, PERIODIC_PLANES, PLANES, ROWS

from .divergence import COMPONENT, sum_at, weight

ONE = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
"""Step of one cell along each axis."""


@ti.func
def face_place(faces: ti.template(), a: ti.template(), dim: ti.template(), plane, row, column):
    """Index of a component's entry in a velocity."""
    place = (plane * faces[ROWS] + row) * faces[COLUMNS] + column
    return (a + dim - 3) * faces[COMPONENT] + place


@functools.cache
def staggered(real: Any, dim: int, adds: bool) -> SimpleNamespace:
    """The loops on a staggered grid, with weights w of faces along each axis; its correction may add to a target."""
    f = find_cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def divergence(
        cells: ti.i32, grid: integers, faces: integers, w: reals, u: reals, b: reals, begin: ti.i32
    ):  # fmt: skip
        for c in range(cells):
            plane, row, column = f.find(grid, c)
            total = real(0.0)
            for a in ti.static(range(3 - dim, 3)):
                here = ti.Vector([plane, row, column])
                after = here
                after[a] = (here[a] + 1) % faces[a]
                inflow = weight(w, faces, a, plane, row, column)
                outflow = weight(w, faces, a, plane + ONE[a][0], row + ONE[a][1], column + ONE[a][2])
                to = face_place(faces, a, dim, after[0], after[1], after[2])
                total += outflow * u[begin + to] - inflow * u[begin + face_place(faces, a, dim, plane, row, column)]
            b[f.place(grid, plane, row, column)] = total

    @no_type_check
    @kernel
    def correct(
        count: ti.i32, grid: integers, faces: integers, w: reals, z: reals, u: reals, target: reals,
        begin: ti.i32, target_begin: ti.i32,
    ):  # fmt: skip
        for c in range(count):
            line, column = c // faces[COLUMNS], c % faces[COLUMNS]
            plane, row = line // faces[ROWS], line % faces[ROWS]
            for a in ti.static(range(3 - dim, 3)):
                planes, rows, columns = grid[PLANES], grid[ROWS], grid[COLUMNS]
                if ti.static(a == 0):
                    planes = faces[PLANES]
                if ti.static(a == 1):
                    rows = faces[ROWS]
                if ti.static(a == 2):
                    columns = faces[COLUMNS]
                if plane < planes and row < rows and column < columns:
                    before = z[f.place(grid, plane - ONE[a][0], row - ONE[a][1], column - ONE[a][2])]
                    change = weight(w, faces, a, plane, row, column) * (before - z[f.place(grid, plane, row, column)])
                    at = face_place(faces, a, dim, plane, row, column)
                    there = target_begin + at
                    target[there] = sum_at(target, adds, there, u[begin + at] - change)

    return SimpleNamespace(divergence=divergence, correct=correct)


@functools.cache
def collocated(real: Any, dim: int, adds: bool) -> SimpleNamespace:
    """The loops on a collocated grid, which has no weights; a correction may add to its target."""
    f = find_cells(dim)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @ti.func
    def beside(grid: ti.template(), a: ti.template(), here, step: ti.template()):
        """The next cell along an axis, or the same one at a wall, where the second result is -1."""
        there, sign = here, 1
        there[a] += step
        if there[a] < 0 or there[a] == grid[a]:
            there[a] = (there[a] + grid[a]) % grid[a]
            if grid[PERIODIC_PLANES + a] == 0:
                there[a], sign = here[a], -1
        return there, sign

    @no_type_check
    @kernel
    def divergence(
        cells: ti.i32, grid: integers, faces: integers, w: reals, u: reals, b: reals, begin: ti.i32
    ):  # fmt: skip
        for c in range(cells):
            plane, row, column = f.find(grid, c)
            total, here = real(0.0), ti.Vector([plane, row, column])
            for a in ti.static(range(3 - dim, 3)):
                for step in ti.static((-1, 1)):
                    there, sign = beside(grid, a, here, step)
                    total += step * sign * u[begin + face_place(faces, a, dim, there[0], there[1], there[2])]
            b[f.place(grid, plane, row, column)] = 0.5 * total

    @no_type_check
    @kernel
    def correct(
        count: ti.i32, grid: integers, faces: integers, w: reals, z: reals, u: reals, target: reals,
        begin: ti.i32, target_begin: ti.i32,
    ):  # fmt: skip
        for c in range(count):
            plane, row, column = f.find(grid, c)
            here = ti.Vector([plane, row, column])
            for a in ti.static(range(3 - dim, 3)):
                low, _ = beside(grid, a, here, -1)
                high, _ = beside(grid, a, here, 1)
                change = 0.5 * (z[f.place(grid, low[0], low[1], low[2])] - z[f.place(grid, high[0], high[1], high[2])])
                at = face_place(faces, a, dim, plane, row, column)
                there = target_begin + at
                target[there] = sum_at(target, adds, there, u[begin + at] - change)

    return SimpleNamespace(divergence=divergence, correct=correct)
