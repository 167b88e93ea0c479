"""Damped spring: a spring with a dashpot along its axis, between two points a and b.

With d the vector from a to b, u its rate, l = |d| and r = 1/l, the force on a is f = s d, and that on b is -f, where

    s = k (1 - L r) + c (u.d) r^2                                           [N/m]

k stiffness [N/m], L rest length [m], c damping [N s/m]. A spring with L = 0 is linear: f = k d, also at l = 0.
Adjoint, for g = adj_f (which is adj_f_a - adj_f_b) and e = g.d:

    adj_k = (1 - L r) e     adj_L = -k r e     adj_c = (u.d) r^2 e     adj_u = c r^2 e d
    adj_d = k ((1 - L r) g + L r^3 e d) + c r^2 ((u.d) g + e u - 2 (u.d) r^2 e d)

Convention at l = 0, where the direction is undefined: r = 0, so that only the linear part k d remains, in the force,
in its tangent and in its adjoint. Source: Hooke's law; the adjoint is the transpose of the Jacobian.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any, dim: int, damped: bool) -> SimpleNamespace:
    """The element functions for springs in `dim` dimensions; without `damped` the dashpot terms are left out."""
    vec = ti.types.vector(dim, real)
    tiny = 1e-37 if real is ti.f32 else 1e-300

    @ti.func
    def inverse_length(d: vec) -> real:
        l2 = d.dot(d)  # the result is 0 at d = 0 without a branch or a select, so that blocks of springs vectorize
        return ti.sqrt(l2) / ti.max(l2, tiny)

    @ti.func
    def spring_force(d: vec, u: vec, k: real, c: real, L: real) -> vec:
        r = inverse_length(d)
        s = k * (1 - L * r)
        if ti.static(damped):
            s += c * u.dot(d) * r * r
        return s * d

    @ti.func
    def adj_spring_force(d: vec, u: vec, k: real, c: real, L: real, adj_f: vec):
        r = inverse_length(d)
        h = L * r
        e = adj_f.dot(d)
        adj_d = k * ((1 - h) * adj_f + (h * r * r * e) * d)
        adj_u = vec(0.0)
        adj_c = 0.0
        if ti.static(damped):
            q, p = c * r * r, u.dot(d)
            adj_d += q * (p * adj_f + e * u - (2 * p * r * r * e) * d)
            adj_u = (q * e) * d
            adj_c = p * r * r * e
        return adj_d, adj_u, (1 - h) * e, adj_c, -k * r * e

    @ti.func
    def jvp_spring_force(
        d: vec, u: vec, k: real, c: real, L: real, dd: vec, du: vec, dk: real, dc: real, dL: real
    ) -> vec:
        r = inverse_length(d)
        h = L * r
        stretch = d.dot(dd) * r * r
        s = k * (1 - h)
        ds = dk * (1 - h) - k * dL * r + k * h * stretch
        if ti.static(damped):
            rate = u.dot(d) * r * r
            s += c * rate
            ds += dc * rate + c * (du.dot(d) + u.dot(dd)) * r * r - 2 * c * rate * stretch
        return ds * d + s * dd

    return SimpleNamespace(force=spring_force, adj=adj_spring_force, jvp=jvp_spring_force)
