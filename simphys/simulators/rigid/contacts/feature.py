"""A feature of a body that may touch another: a point, a segment or a box, each with a radius.

Each is a part of a box with centre o and half extents h [m] along the axes of its body. Signs sigma in {-1, 0, 1} give
the sides of the box on which the feature lies; rho [m] is its radius.

    corner      sigma = (+-1, +-1, +-1)         edge        sigma with one 0
    box         sigma = 0, and rho = 0          sphere      h = 0, sigma = 0
    capsule     h = (L, 0, 0), sigma = 0        its ends    h = (L, 0, 0), sigma = (+-1, 0, 0)

From the centre of its body, in the world frame: the middle is R (o + sigma h), and the half vector of a segment is R
((1 - |sigma|) h), from the middle to its end, with componentwise products. A plane of the world has its unit normal in
place of o and its distance from the origin, along the normal, in place of rho.

The kind of a pair determines its features:

    PLANE     a point with a radius, and a plane of the world             ROUND     points or segments with radii,
    BOX       a point with a radius, and a box                                      corners or edges of boxes
    CORNER    a corner of a box, and another box                          EDGES     edges of two boxes that cross

An outward normal at a corner or an edge of a box lies in the cone of its sides, sigma (R^T n) >= 0.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

PLANE, BOX, CORNER, ROUND, EDGES = range(5)
CONE = 0.05
"""Tolerance of the cone of a corner or an edge [rad].

Flush sides have several contacts, whose normals lie on the border of the cone.
"""


def numbers(dim: int) -> int:
    """Count the numbers that describe a feature, in the order o, h, sigma, rho."""
    return 3 * dim + 1


@ti.func
def outward_components(f, n):
    """Return sigma (R^T n), the outward component of n for each side; 0 for axes without a side."""
    return f.sigma * (f.R.transpose() @ n)


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return the element functions in `dim` dimensions."""
    vec, mat = ti.types.vector(dim, real), ti.types.matrix(dim, dim, real)
    spin = ti.types.vector(1 if dim == 2 else 3, real)
    Feature = ti.types.struct(R=mat, o=vec, h=vec, sigma=vec, rho=real, middle=vec, half=vec)

    @ti.func
    def read(constants: ti.template(), at, R):
        """Read the feature whose numbers begin at an index, for a body rotated by R."""
        o = vec([constants[at + j] for j in ti.static(range(dim))])
        h = vec([constants[at + dim + j] for j in ti.static(range(dim))])
        sigma = vec([constants[at + 2 * dim + j] for j in ti.static(range(dim))])
        middle, half = R @ (o + sigma * h), R @ ((1 - ti.abs(sigma)) * h)
        return Feature(R=R, o=o, h=h, sigma=sigma, rho=constants[at + 3 * dim], middle=middle, half=half)

    return SimpleNamespace(vec=vec, spin=spin, Feature=Feature, read=read)
