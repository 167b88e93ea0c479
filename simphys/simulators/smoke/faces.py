"""The locations of velocity entries, at faces or centres of cells, and means of cell quantities at these locations.

On a staggered grid entry i of component a is at the face between cells i - 1 and i along axis a, and

    m_a,i = 1/2 (s_i-1 + s_i),           m_a,i = w s_j at a face on a side, with j its only cell and w = 0 or 1.

On a collocated grid m_a,i = s_i. With a factor c_a for each component, the adjoint is the transpose, a sum over the
faces of a cell (or over its components):

    f_a = c_a m_a            adj_s_i = sum_a c_a (w_a,i g_a,i + w_a,i+1 g_a,i+1)            adj_c_a = sum_i g_a,i m_a,i

Loops always have three axes; in 2-D the first has a single cell, which is its own neighbour. Component c is along axis
c + 3 - dim of these. Source: the staggered grid of Harlow and Welch 1965.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from .model import Smoke

WRAP, FLAT, WALL, GIVEN = 0, 1, 2, 3
"""Kinds of ghosts of a component beyond a side: the entry at the opposite side (WRAP); the last value (FLAT); the value
whose mean with the last one is that of the side (WALL); none, as the face on the side has a given value (GIVEN)."""

FACE_US = 0.004
"""Serial cost [us] of one velocity entry in a loop."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The grid of a model in the form that kernels take, with three axes."""

    components: int
    cells: tuple[int, int, int]
    faces: tuple[int, int, int]
    """Number of entries of a component along each axis."""
    stride: int
    """Distance between the two cells of a face, in cells: 1, or 0 on a collocated grid."""
    table: Array
    """Nine integers for each component: number of its own faces along each axis, and ghost kinds of six sides."""
    walls: Array
    """Factors of boundary_velocity in ghosts, [dim, 6]: 1 for ghosts that depend on it, else 0."""


@functools.cache
def layout(model: Smoke) -> Layout:
    """Build the layout of a model's grid."""
    lost = 3 - model.dim
    table = np.zeros((model.dim, 9), np.int32)
    walls = np.zeros((model.dim, 6))
    table[:, :3] = 1
    for component in range(model.dim):
        for axis in range(model.dim):
            table[component, lost + axis] = own_faces(model, component)[axis]
        for side, kind in enumerate(model.boundaries):
            beyond = _ghost_kind(model, component, side)
            table[component, 3 + 2 * lost + side] = beyond
            walls[component, 2 * lost + side] = beyond == WALL and side // 2 != component
            assert kind == "periodic" or beyond != WRAP
    cells, faces = ((*(1,) * lost, *shape) for shape in (model.cells, model.faces))
    stride = int(model.grid == "staggered")
    return Layout(model.dim, _triple(cells), _triple(faces), stride, table.reshape(-1), walls)


def own_faces(model: Smoke, component: int) -> tuple[int, ...]:
    """Return the number of faces of a component along each axis; entries beyond are 0."""
    return tuple([f if a == component else n for a, (f, n) in enumerate(zip(model.faces, model.cells, strict=True))])


def side_index(model: Smoke, component: int, side: int) -> tuple[Any, ...]:
    """Return the index of a component's entries nearest to a side, in a velocity array."""
    counts: list[Any] = [slice(count) for count in own_faces(model, component)]
    counts[side // 2] = 0 if side % 2 == 0 else own_faces(model, component)[side // 2] - 1
    return (component, *counts)


def is_prescribed(model: Smoke, side: int) -> bool:
    """Return True if the normal velocity at the faces of a side is prescribed, by a wall or an inflow."""
    return model.grid == "staggered" and model.boundaries[side] in ("closed", "inflow")


def _ghost_kind(model: Smoke, component: int, side: int) -> int:
    kind, normal = model.boundaries[side], component == side // 2
    if kind == "periodic":
        return WRAP
    if normal and is_prescribed(model, side):
        return GIVEN
    return WALL if kind == "inflow" or (kind == "closed" and (normal or not model.slip)) else FLAT


def _triple(counts: tuple[int, ...]) -> tuple[int, int, int]:
    return counts[0], counts[1], counts[2]


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The element functions along one axis. `e` is the index along it, of n cells that are `stride` numbers apart."""

    @ti.func
    def mean(s: ti.template(), cell, e, n, stride, wraps, sides: real) -> real:
        """Average the cells below and above face `e`; `cell` is the one above."""
        half = real(0.5)
        found = real(0.0)
        if e > 0 and e < n:
            found = half * (s[cell - stride] + s[cell])
        elif wraps:
            found = half * (s[cell + (n - 1) * stride] + s[cell])
        elif e == 0:
            found = sides * s[cell]
        else:
            found = sides * s[cell - stride]
        return found

    @ti.func
    def adj_mean(g: ti.template(), face, e, n, stride, wraps, sides: real) -> real:
        """Sum the adjoints from the faces below and above cell `e`; `face` is the one below."""
        half = real(0.5)
        below = ti.select(wraps or e > 0, half, sides)
        above = ti.select(wraps or e < n - 1, half, sides)
        beyond = ti.select(wraps and e == n - 1, face - e * stride, face + stride)
        return below * g[face] + above * g[beyond]

    return SimpleNamespace(mean=mean, adj_mean=adj_mean)


@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Loops over faces and over cells; f0, f1, f2 count the faces and n0, n1, n2 the cells along the axes."""
    f = functions(real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        base: reals, s: reals, scale: reals, table: integers, components: ti.i32, stride: ti.i32, sides: real,
        f0: ti.i32, f1: ti.i32, f2: ti.i32, n0: ti.i32, n1: ti.i32, n2: ti.i32, out: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for row in range(components * f0 * f1):
            c, i, j = row // (f0 * f1), (row // f1) % f0, row % f1
            axis = c + 3 - components
            step = stride * ti.select(axis == 0, n1 * n2, ti.select(axis == 1, n2, 1))
            n = ti.select(axis == 0, n0, ti.select(axis == 1, n1, n2))
            wraps = stride == 0 or table[9 * c + 3 + 2 * axis] == WRAP
            own = i < table[9 * c] and j < table[9 * c + 1]
            for k in range(f2):
                at = row * f2 + k
                value = base[at]
                if own and k < table[9 * c + 2]:
                    e = ti.select(axis == 0, i, ti.select(axis == 1, j, k))
                    value += scale[c] * f.mean(s, (i * n1 + j) * n2 + k, e, n, step, wraps, sides)
                out[at] = value

    @kernel
    def adjoint(
        g: reals, scale: reals, table: integers, components: ti.i32, stride: ti.i32, sides: real,
        f0: ti.i32, f1: ti.i32, f2: ti.i32, n0: ti.i32, n1: ti.i32, n2: ti.i32, adj_s: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for row in range(n0 * n1):
            i, j = row // n1, row % n1
            for k in range(n2):
                total = real(0.0)
                for c in range(components):
                    axis = c + 3 - components
                    step = stride * ti.select(axis == 0, f1 * f2, ti.select(axis == 1, f2, 1))
                    n = ti.select(axis == 0, n0, ti.select(axis == 1, n1, n2))
                    wraps = stride == 0 or table[9 * c + 3 + 2 * axis] == WRAP
                    e = ti.select(axis == 0, i, ti.select(axis == 1, j, k))
                    total += scale[c] * f.adj_mean(g, ((c * f0 + i) * f1 + j) * f2 + k, e, n, step, wraps, sides)
                adj_s[row * n2 + k] = total

    return SimpleNamespace(forward=forward, adjoint=adjoint)


def add_mean(model: Smoke, base: Array, cells: Array, scale: Array, *, sides: float, out: Array | None = None) -> Array:
    """Compute base + scale mean(cells), [dim, *faces], with scale [dim] and w = `sides`; `out` may be the base."""
    out = np.empty_like(base) if out is None else out
    grid = layout(model)
    _kernels(grid).forward(
        base.reshape(-1), cells.reshape(-1), scale, grid.table, grid.components, grid.stride, sides,
        *grid.faces, *grid.cells, out.reshape(-1),
    )  # fmt: skip
    return out


def adj_mean(model: Smoke, adj: Array, scale: Array, *, sides: float) -> Array:
    """Compute adj_s [*cells] for scale mean(s), whose adjoint is `adj` [dim, *faces]."""
    adj_s = np.empty(model.cells, adj.dtype)
    grid = layout(model)
    _kernels(grid).adjoint(
        adj.reshape(-1), scale, grid.table, grid.components, grid.stride, sides,
        *grid.faces, *grid.cells, adj_s.reshape(-1),
    )  # fmt: skip
    return adj_s


def work_us(grid: Layout) -> float:
    """Estimate the serial cost [us] of a loop over all entries of a velocity."""
    return float(FACE_US * grid.components * np.prod(grid.faces))


def _kernels(grid: Layout) -> SimpleNamespace:
    return kernels(runtime.real(), runtime.parallel(work_us(grid)))
