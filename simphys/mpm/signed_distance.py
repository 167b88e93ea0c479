"""Signed distance phi from the surface of a body to a point x of its frame, and the normal n = grad phi.

Sphere, box and capsule are all points within a radius rho of a core, which is a box with the half edges b:

    shape    b                   rho       d = x - clamp(x, -b, b)
    sphere   0                   size_0    outside the core  phi = |d| - rho,                n = d / |d|
    box      size                0         inside of it      phi = max_i (|x_i| - b_i) - rho,  n = sign(x_i) e_i
    capsule  (size_0, 0, ...)    size_1
    plane    phi = x_last, n = e_last

The adjoint takes the Hessian H of phi, which is symmetric and has H n = 0, and the tangent does, too:

    adj_x = adj_phi n + H adj_n      dphi = n.dx      dn = H dx      H v = (M v - (n.v) n) / |d|   outside the core

where M drops the axes on which x lies over the core. Elsewhere H = 0.
Conventions at the kinks: n at places with the same distance to two faces (the medial axis inside a box) is that of
the first of these axes, towards + at x_i = 0, so at the centre of a sphere and on the axis of a capsule, too; with H = 0.
Over an edge of the core, |x_i| = b_i, n is continuous and H is that of the flat side. A box has sharp edges: there n
turns within no distance, and H grows like 1/|d| outside of them.
Source: Quilez, Distance functions; the derivatives are elementary.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from ..autograd.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any, dim: int, shape: str) -> SimpleNamespace:
    """The element functions of one of `collider.SHAPES`; `size` are its three sizes, of which it may need fewer."""
    vec, vec3 = ti.types.vector(dim, real), ti.types.vector(3, real)
    if shape == "plane":
        return _plane(real, dim)
    extended = {"sphere": 0, "capsule": 1, "box": dim}[shape]  # axes along which the core extends
    round_by = 0 if shape == "box" else extended  # the size that is the radius, if not a box

    @ti.func
    def radius(size: vec3) -> real:
        return 0.0 if ti.static(shape == "box") else size[round_by]

    @ti.func
    def from_core(x: vec, size: vec3) -> vec:
        d = x
        for i in ti.static(range(extended)):
            d[i] = x[i] - ti.min(ti.max(x[i], -size[i]), size[i])
        return d

    @ti.func
    def distance(x: vec, size: vec3):
        d = from_core(x, size)
        phi, n = d.norm(), vec(0.0)
        if phi > 0:
            n = d / phi
        else:
            deepest = -ti.math.inf
            for i in ti.static(range(dim)):
                depth = ti.abs(x[i]) - (size[i] if ti.static(i < extended) else 0.0)
                if depth > deepest:
                    deepest = depth
                    n = vec(0.0)
                    n[i] = 1.0 if x[i] >= 0 else -1.0
            phi = deepest
        return phi - radius(size), n

    @ti.func
    def bend(x: vec, size: vec3, v: vec) -> vec:
        """H v."""
        d, turned = from_core(x, size), v
        far = d.norm()
        if far > 0:
            n = d / far
            for i in ti.static(range(extended)):
                if ti.abs(x[i]) <= size[i]:
                    turned[i] = 0.0
            turned = (turned - n.dot(v) * n) / far
        else:
            turned = vec(0.0)
        return turned

    @ti.func
    def is_near(x: vec, size: vec3, reach: real):
        """Whether the surface may be nearer than `reach`: false for most points, and cheap."""
        half = vec([size[i] if ti.static(i < extended) else 0.0 for i in ti.static(range(dim))])
        bound = half.norm() + radius(size) + reach
        return x.dot(x) < bound * bound

    return _with_derivatives(real, dim, distance, bend, is_near)


@no_type_check
def _plane(real: Any, dim: int) -> SimpleNamespace:
    vec, vec3 = ti.types.vector(dim, real), ti.types.vector(3, real)
    up = dim - 1

    @ti.func
    def distance(x: vec, size: vec3):
        n = vec(0.0)
        n[up] = 1.0
        return x[up], n

    @ti.func
    def bend(x: vec, size: vec3, v: vec) -> vec:
        return vec(0.0)

    @ti.func
    def is_near(x: vec, size: vec3, reach: real):
        return True

    return _with_derivatives(real, dim, distance, bend, is_near)


@no_type_check
def _with_derivatives(real: Any, dim: int, distance: Any, bend: Any, is_near: Any) -> SimpleNamespace:
    vec, vec3 = ti.types.vector(dim, real), ti.types.vector(3, real)

    @ti.func
    def adj_distance(x: vec, size: vec3, adj_phi: real, adj_n: vec) -> vec:
        _, n = distance(x, size)
        return adj_phi * n + bend(x, size, adj_n)

    @ti.func
    def jvp_distance(x: vec, size: vec3, dx: vec):
        _, n = distance(x, size)
        return n.dot(dx), bend(x, size, dx)

    return SimpleNamespace(distance=distance, adj=adj_distance, jvp=jvp_distance, is_near=is_near)
