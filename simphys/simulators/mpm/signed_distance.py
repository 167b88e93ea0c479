"""Signed distance phi from the surface of a body to a point x in its frame, and the normal n = grad phi.

Sphere, box and capsule consist of all points within a radius rho of a core, a box with half edges b:

    shape    b                   rho       d = x - clamp(x, -b, b)
    sphere   0                   size_0    outside the core  phi = |d| - rho,              n = d / |d|
    box      size                0         inside of it      phi = max_i (|x_i| - b_i),    n = sign(x_i) e_i
    capsule  (size_0, 0, ...)    size_1
    plane    phi = x_last, n = e_last

Adjoint and tangent use the Hessian H of phi, which is symmetric and has H n = 0:

    adj_x = adj_phi n + H adj_n      dphi = n.dx      dn = H dx      H v = kappa (M v - (n.v) n)

M drops the axes along which x lies within the extent of the core, and kappa = 1 / |d| outside the core, else 0.
Conventions at the kinks: at equal distance to two faces (the medial axis inside a box), n belongs to the first of these
axes, towards + at x_i = 0. At the centre of a sphere and on the axis of a capsule n = e_0. H = 0 at all of these. Over
an edge of the core, |x_i| = b_i, n is continuous and H is that of the flat side. At the sharp edges of a box n jumps,
and H grows like 1 / |d| outside of them.
Source: Quilez, Distance functions; the derivatives are elementary.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

TINY = 1e-30
"""Least distance from the core [m] used as a divisor."""


def count_extended(shape: str, dim: int) -> int:
    """Count the axes along which the core of a shape extends."""
    return {"sphere": 0, "capsule": 1, "box": dim, "plane": 0}[shape]


def distances(real: Any, dim: int, shape: str) -> SimpleNamespace:
    """Return `distance`, which gives phi, n and kappa, and the test for points near a shape."""
    vec = ti.types.vector(dim, real)
    extended, up, is_box = count_extended(shape, dim), dim - 1, shape == "box"

    @ti.func
    def radius(size):
        return 0.0 if ti.static(is_box) else size[ti.static(min(extended, 1))]

    @ti.func
    def distance(x, size):
        phi, n, kappa = x[up], vec(0.0), real(0.0)
        if ti.static(shape == "plane"):
            n[up] = 1.0
        else:
            d, inside = x, vec(0.0)
            for i in ti.static(range(extended)):
                d[i] = x[i] - ti.min(ti.max(x[i], -size[i]), size[i])
            far = d.norm()
            deepest = real(0.0)
            if ti.static(is_box):
                deepest = ti.abs(x[0]) - size[0]
                for i in ti.static(range(1, dim)):
                    deepest = ti.max(deepest, ti.abs(x[i]) - size[i])
                free = real(1.0)  # 0 once an axis is chosen
                for i in ti.static(range(dim)):
                    chosen = ti.select(ti.abs(x[i]) - size[i] >= deepest, free, 0.0)
                    inside[i] = ti.select(x[i] >= 0, chosen, -chosen)
                    free -= chosen
            else:
                inside[0] = 1.0
            is_out = far > 0
            kappa = ti.select(is_out, 1 / ti.max(far, TINY), 0.0)
            phi = ti.select(is_out, far, deepest) - radius(size)
            for i in ti.static(range(dim)):
                n[i] = ti.select(is_out, kappa * d[i], inside[i])
        return phi, n, kappa

    @ti.func
    def is_near(x, size, reach):
        """Return True if phi may be less than `reach`. The test is cheap, false for most points, exact for a plane."""
        near = x[up] < reach
        if ti.static(shape != "plane"):
            squares = real(0.0)
            for i in ti.static(range(extended)):
                squares += size[i] * size[i]
            bound = ti.sqrt(squares) + radius(size) + reach
            near = x.dot(x) < bound * bound
        return near

    return SimpleNamespace(distance=distance, is_near=is_near)


def derivatives(dim: int, shape: str) -> SimpleNamespace:
    """Return the adjoint and the tangent of `distance`, from H v and its results."""
    extended = count_extended(shape, dim)

    @ti.func
    def apply_hessian(x, n, kappa, size, v):
        """Return H v."""
        turned = v
        for i in ti.static(range(extended)):
            turned[i] = ti.select(ti.abs(x[i]) <= size[i], 0.0, v[i])
        return kappa * (turned - n.dot(v) * n)

    @ti.func
    def adj_distance(x, n, kappa, size, adj_phi, adj_n):
        return adj_phi * n + apply_hessian(x, n, kappa, size, adj_n)

    @ti.func
    def jvp_distance(x, n, kappa, size, dx):
        return n.dot(dx), apply_hessian(x, n, kappa, size, dx)

    return SimpleNamespace(adj=adj_distance, jvp=jvp_distance)


@functools.cache
def functions(real: Any, dim: int, shape: str) -> SimpleNamespace:
    """The element functions of one of `collider.SHAPES`; `size` holds three numbers, of which a shape may use fewer."""
    return SimpleNamespace(**vars(distances(real, dim, shape)), **vars(derivatives(dim, shape)))
