"""A sub-step over faces and one over open sides, on small grids, with the same in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.substep import element, faces, per_element, sides

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Grid:
    """Everything that the patterns read of a model."""

    cells: tuple[int, ...]
    wraps: tuple[bool, ...] = ()
    open_sides: tuple[int, ...] = ()


GRIDS = {
    "closed": Grid((4, 5), (False, False), (0, 3)),
    "torus": Grid((3, 4), (True, True), (1,)),
    "half a torus": Grid((3, 2, 4), (False, True, False), (5, 0, 1)),
    "line": Grid((6,), (False,), (1, 0)),
    "long rows": Grid((3, 37), (False, False), (2,)),
    "long rows of a torus": Grid((2, 2, 18), (False, True, True), (0,)),
}
"""Rows of 18 cells and more are computed in blocks."""


@element
def leak(d, a, b, g, h):
    """Compute a flux that depends on the lower and the upper cell in different ways."""
    return -g / h * (a * a + b) * d


@leak.adjoint
def adj_leak(d, a, b, g, h, adj):
    s = a * a + b
    return -g / h * s * adj, -2 * g / h * a * d * adj, -g / h * d * adj, -s / h * d * adj


@leak.tangent
def jvp_leak(d, a, b, g, h, dd, da, db, dg):
    s = a * a + b
    return -g / h * s * dd - g / h * d * (2 * a * da + db) - dg / h * s * d


@element
def inflow(u, k, outside, g):
    return g * k * (outside - u) * outside


@inflow.adjoint
def adj_inflow(u, k, outside, g, adj):
    d = outside - u
    return -g * k * outside * adj, g * d * outside * adj, g * k * (d + outside) * adj, k * d * outside * adj


@inflow.tangent
def jvp_inflow(u, k, outside, g, du, dk, doutside, dg):
    d = outside - u
    return (g * dk + dg * k) * d * outside + g * k * (doutside * (d + outside) - du * outside)


@element
def scale_cell(u, c, h):
    return h * c * u


@scale_cell.adjoint
def adj_scale_cell(u, c, h, adj):
    return h * c * adj, h * u * adj


@scale_cell.tangent
def jvp_scale_cell(u, c, h, du, dc):
    return h * (c * du + u * dc)


@element
def relax(d, g):
    return -g * d


@relax.adjoint
def adj_relax(d, g, adj):
    return -g * adj, -d.dot(adj)


@relax.tangent
def jvp_relax(d, g, dd, dg):
    return -g * dd - dg * d


Relax = faces(relax, onto="gain", between={"d": "u"}, shared={"g": "g"}, periodic="wraps")
Leak = faces(
    leak,
    onto="gain",
    between={"d": "u"},
    both={("a", "b"): "k"},
    shared={"g": "g"},
    constant={"h": "h"},
    periodic="wraps",
)
Inflow = sides(inflow, onto="gain", cells={"u": "u", "k": "k"}, of_side={"outside": "outside"}, shared={"g": "g"})
ScaleCell = per_element(
    scale_cell, over="cells", own={"u": "u", "c": "c"}, constant={"h": "h"}, results={"scaled": "u"}
)


def leak_by_numpy(grid: Grid, u: Array, k: Array, g: float, h: float) -> Array:
    """Compute what `Leak` does."""
    gain = np.zeros_like(u)
    for axis, wraps in enumerate(grid.wraps):
        d, b = np.roll(u, -1, axis) - u, np.roll(k, -1, axis)
        flux = -g / h * (k * k + b) * d
        if not wraps:
            np.moveaxis(flux, axis, 0)[-1] = 0
        gain += np.roll(flux, 1, axis) - flux
    return gain


def inflow_by_numpy(grid: Grid, u: Array, k: Array, outside: Array, g: float) -> Array:
    """Compute what `Inflow` does."""
    gain = np.zeros_like(u)
    for side in grid.open_sides:
        layer = -(side % 2)
        at = tuple([layer if axis == side // 2 else slice(None) for axis in range(u.ndim)])
        gain[at] += g * k[at] * (outside[side] - u[at]) * outside[side]
    return gain
