"""The locations of velocity entries, at faces or centres of cells, and means of cell quantities at these locations.

On a staggered grid entry i of component a is at the face between cells i - 1 and i along axis a, and

    m_a,i = 1/2 (s_i-1 + s_i),           m_a,i = w s_j at a face on a side, with j its only cell and w = 0 or 1.

On a collocated grid m_a,i = s_i. With a factor c_a for each component, the adjoint is the transpose, a sum over the
faces of a cell (or over its components):

    f_a = c_a m_a            adj_s_i = sum_a c_a (w_a,i g_a,i + w_a,i+1 g_a,i+1)            adj_c_a = sum_i g_a,i m_a,i

Source: the staggered grid of Harlow and Welch 1965.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.simulator import Array

from .model import Smoke


def own_faces(model: Smoke, component: int) -> tuple[int, ...]:
    """Return the number of faces of a component along each axis; entries beyond are 0."""
    return tuple([f if a == component else n for a, (f, n) in enumerate(zip(model.faces, model.cells, strict=True))])


def own_index(model: Smoke, component: int) -> tuple[Any, ...]:
    """Return the index of a component's own faces in a velocity array."""
    return (component, *map(slice, own_faces(model, component)))


def side_index(model: Smoke, component: int, side: int) -> tuple[Any, ...]:
    """Return the index of a component's entries nearest to a side, in a velocity array."""
    counts: list[Any] = [slice(count) for count in own_faces(model, component)]
    counts[side // 2] = 0 if side % 2 == 0 else own_faces(model, component)[side // 2] - 1
    return (component, *counts)


def is_prescribed(model: Smoke, side: int) -> bool:
    """Return True if the normal velocity at the faces of a side is prescribed, by a wall or an inflow."""
    return model.grid == "staggered" and model.boundaries[side] in ("closed", "inflow")


def mean(model: Smoke, cells: Array, component: int, *, sides: float) -> Array:
    """Compute m_a at a component's own faces, with w = `sides`."""
    if model.grid == "collocated":
        return cells
    if model.boundaries[2 * component] == "periodic":
        found: Array = 0.5 * (np.roll(cells, 1, component) + cells)
        return found
    found = np.empty(own_faces(model, component), cells.dtype)
    m, s = np.moveaxis(found, component, 0), np.moveaxis(cells, component, 0)
    m[1:-1] = 0.5 * (s[:-1] + s[1:])
    m[0], m[-1] = sides * s[0], sides * s[-1]
    return found


def adj_mean(model: Smoke, adj: Array, component: int, *, sides: float) -> Array:
    """Compute adj_s [*cells] from the adjoint of m_a at a component's own faces."""
    if model.grid == "collocated":
        return adj
    if model.boundaries[2 * component] == "periodic":
        adj_s: Array = 0.5 * (np.roll(adj, -1, component) + adj)
        return adj_s
    adj_s = np.empty(model.cells, adj.dtype)
    a, g = np.moveaxis(adj_s, component, 0), np.moveaxis(adj, component, 0)
    a[:] = 0.5 * (g[:-1] + g[1:])
    a[0] += (sides - 0.5) * g[0]
    a[-1] += (sides - 0.5) * g[-1]
    return adj_s
