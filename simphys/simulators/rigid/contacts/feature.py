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

from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.rotation import matrix

from ..rows import read

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


def _feature(real: Any, dim: int) -> Any:
    """Make the type of a feature that is rotated by R."""
    vec = ti.types.vector(dim, real)
    return ti.types.struct(R=ti.types.matrix(dim, dim, real), o=vec, h=vec, sigma=vec, rho=real, middle=vec, half=vec)


FEATURES = {is_single: {dim: _feature(real, dim) for dim in (2, 3)} for is_single, real in enumerate((ti.f64, ti.f32))}
"""Types of features, by precision and dimensions of space."""


@ti.func
def read_features(c, model: ti.template(), q_a, q_b):
    """Read both features of a candidate, for the orientations of its bodies."""
    return read_feature(2 * c, model, matrix(q_a)), read_feature(2 * c + 1, model, matrix(q_b))


@ti.func
def read_feature(k, model: ti.template(), R):
    """Read one of the features of all candidates, for a body rotated by R."""
    dim = ti.static(model.dim)
    constants = ti.static(model.candidates.constants)
    at = k * (3 * dim + 1)
    o, h, sigma = read(constants, at, dim), read(constants, at + dim, dim), read(constants, at + 2 * dim, dim)
    middle, half = R @ (o + sigma * h), R @ ((1 - ti.abs(sigma)) * h)
    rho = constants[at + 3 * dim]
    return FEATURES[model.is_single][dim](R=R, o=o, h=h, sigma=sigma, rho=rho, middle=middle, half=half)
