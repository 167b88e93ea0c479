"""A feature of a body that may touch another: a point, a segment or a box, each with a radius.

Each is a part of a box with centre o, from the centre of mass of its body, and half extents h [m] along the axes of the
body. Signs sigma in {-1, 0, 1} give the sides of the box on which the feature lies; rho [m] is its radius.

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

Where the centre of mass c of a body is a parameter, shapes are given in its frame, and c is subtracted from o. A change
of c moves a feature by s = -R dc, as if its body moved from which its arm is counted. With those of pair.py at fixed c,
for d = x_a - x_b moved by s_a - s_b, dr_a += s_a, dr_b += s_b; and with the adjoints of d and of the arms

    adj_c_a = -R_a^T (adj_d + adj_r_a)              adj_c_b = -R_b^T (adj_r_b - adj_d)
"""

from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.rotation import matrix

from ..rows import add_to_row, read, row_of

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
def read_features(c, model: ti.template(), x: ti.template(), q_a, q_b):
    """Read both features of a candidate, for the orientations of its bodies."""
    i, j = model.candidates.body_a[c], model.candidates.body_b[c]
    return read_feature(2 * c, model, x, i, matrix(q_a)), read_feature(2 * c + 1, model, x, j, matrix(q_b))


@ti.func
def read_feature(k, model: ti.template(), x: ti.template(), body, R):
    """Read one of the features of all candidates, of a body rotated by R."""
    dim = ti.static(model.dim)
    constants = ti.static(model.candidates.constants)
    at = k * (3 * dim + 1)
    o, h, sigma = read(constants, at, dim), read(constants, at + dim, dim), read(constants, at + 2 * dim, dim)
    if ti.static(model.free_anchors):
        o -= row_of(x.centre_of_mass, body)
    middle, half = R @ (o + sigma * h), R @ ((1 - ti.abs(sigma)) * h)
    rho = constants[at + 3 * dim]
    return FEATURES[model.is_single][dim](R=R, o=o, h=h, sigma=sigma, rho=rho, middle=middle, half=half)


@ti.func
def adj_centres(c, model: ti.template(), adj_x: ti.template(), a, b, adj_d, adj_r_a, adj_r_b):
    """Add to the adjoints of the centres of mass of both bodies; nothing where they are no parameters."""
    if ti.static(model.free_anchors):
        add_to_row(adj_x.centre_of_mass, model.candidates.body_a[c], -a.R.transpose() @ (adj_d + adj_r_a))
        add_to_row(adj_x.centre_of_mass, model.candidates.body_b[c], b.R.transpose() @ (adj_d - adj_r_b))


@ti.func
def jvp_centres(c, model: ti.template(), dx: ti.template(), a, b):
    """Return s of both bodies, how their features move with the centres of mass."""
    none = ti.Vector.zero(float, model.dim)
    s_a, s_b = none, none
    if ti.static(model.free_anchors):
        s_a = -a.R @ row_of(dx.centre_of_mass, model.candidates.body_a[c])
        s_b = -b.R @ row_of(dx.centre_of_mass, model.candidates.body_b[c])
    return s_a, s_b
