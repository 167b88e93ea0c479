"""Element functions of the fused loops under a controller, in the precision and dimension of their kernels."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def spring_functions(real: Any, dim: int, damped: bool) -> SimpleNamespace:
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


@functools.cache
@no_type_check
def external_functions(real: Any, dim: int, ground: bool) -> SimpleNamespace:
    """The element functions for nodes in `dim` dimensions. The ground is the vector (h, k_g, mu)."""
    vec, vec3 = ti.types.vector(dim, real), ti.types.vector(3, real)
    up = dim - 1

    @ti.func
    def external_force(x: vec, v: vec, m: real, g: vec, floor: vec3) -> vec:
        f = m * g
        if ti.static(ground):
            normal = floor[1] * ti.max(floor[0] - x[up], 0)
            for j in ti.static(range(up)):
                f[j] -= floor[2] * normal * v[j]
            f[up] += normal
        return f

    @ti.func
    def adj_external_force(x: vec, v: vec, m: real, g: vec, floor: vec3, adj_f: vec):
        adj_x, adj_v, adj_floor = vec(0.0), vec(0.0), vec3(0.0)
        if ti.static(ground):
            p = ti.max(floor[0] - x[up], 0)
            normal = floor[1] * p
            slip = 0.0
            for j in ti.static(range(up)):
                slip += v[j] * adj_f[j]
                adj_v[j] = -floor[2] * normal * adj_f[j]
            adj_normal = adj_f[up] - floor[2] * slip
            adj_height = ti.select(p > 0, floor[1] * adj_normal, 0.0)
            adj_x[up] = -adj_height
            adj_floor = vec3(adj_height, p * adj_normal, -normal * slip)
        return adj_x, adj_v, g.dot(adj_f), m * adj_f, adj_floor

    @ti.func
    def jvp_external_force(
        x: vec, v: vec, m: real, g: vec, floor: vec3, dx: vec, dv: vec, dm: real, dg: vec, dfloor: vec3
    ) -> vec:
        df = dm * g + m * dg
        if ti.static(ground):
            p = ti.max(floor[0] - x[up], 0)
            normal = floor[1] * p
            dnormal = dfloor[1] * p + ti.select(p > 0, floor[1] * (dfloor[0] - dx[up]), 0.0)
            for j in ti.static(range(up)):
                df[j] -= dfloor[2] * normal * v[j] + floor[2] * (dnormal * v[j] + normal * dv[j])
            df[up] += dnormal
        return df

    return SimpleNamespace(force=external_force, adj=adj_external_force, jvp=jvp_external_force)


@functools.cache
@no_type_check
def integrate_functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions for nodes in `dim` dimensions."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def coefficients(drag: real, m: real, h: real, r: real, free: real):
        return free * ti.exp(-drag * h), free * h / m * ti.exp(-drag * r)

    @ti.func
    def adj_coefficients(drag: real, m: real, h: real, r: real, free: real, adj_a: real, adj_b: real):
        a, b = coefficients(drag, m, h, r, free)
        return -h * a * adj_a - r * b * adj_b, -b / m * adj_b

    @ti.func
    def jvp_coefficients(drag: real, m: real, h: real, r: real, free: real, ddrag: real, dm: real):
        a, b = coefficients(drag, m, h, r, free)
        return -h * a * ddrag, -r * b * ddrag - b / m * dm

    @ti.func
    def kick(v: vec, f: vec, a: real, b: real) -> vec:
        return a * v + b * f

    @ti.func
    def adj_kick(v: vec, f: vec, a: real, b: real, w: vec):
        return a * w, b * w, v.dot(w), f.dot(w)

    @ti.func
    def jvp_kick(v: vec, f: vec, a: real, b: real, dv: vec, df: vec, da: real, db: real) -> vec:
        return da * v + a * dv + db * f + b * df

    return SimpleNamespace(
        coefficients=coefficients, adj_coefficients=adj_coefficients, jvp_coefficients=jvp_coefficients,
        kick=kick, adj_kick=adj_kick, jvp_kick=jvp_kick,
    )  # fmt: skip


@functools.cache
@no_type_check
def coefficient_kernels(real: Any) -> SimpleNamespace:
    """Kernels for the kick coefficients of all nodes at one stage, with their adjoint and tangent."""
    reals = ti.types.ndarray(dtype=real, ndim=1)
    f = integrate_functions(real, 1)

    @kernel
    def forward(drag: reals, m: reals, free: reals, h: real, r: real, n: ti.i32, a: reals, b: reals):
        for i in range(n):
            a[i], b[i] = f.coefficients(drag[i], m[i], h, r, free[i])

    @kernel
    def adjoint(
        drag: reals,
        m: reals,
        free: reals,
        h: real,
        r: real,
        n: ti.i32,
        adj_a: reals,
        adj_b: reals,
        adj_drag: reals,
        adj_m: reals,
    ):
        for i in range(n):
            gdrag, gm = f.adj_coefficients(drag[i], m[i], h, r, free[i], adj_a[i], adj_b[i])
            adj_drag[i] = adj_drag[i] + gdrag
            adj_m[i] = adj_m[i] + gm

    @kernel
    def tangent(
        drag: reals, m: reals, free: reals, h: real, r: real, n: ti.i32, ddrag: reals, dm: reals, da: reals, db: reals
    ):
        for i in range(n):
            da[i], db[i] = f.jvp_coefficients(drag[i], m[i], h, r, free[i], ddrag[i], dm[i])

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


@functools.cache
@no_type_check
def actuate_functions(real: Any) -> SimpleNamespace:
    """The element functions."""

    @ti.func
    def rest_length(L: real, amp: real, u: real) -> real:
        return L * (1 + amp * u)

    @ti.func
    def adj_rest_length(L: real, amp: real, u: real, adj: real):
        return (1 + amp * u) * adj, L * u * adj, L * amp * adj

    @ti.func
    def jvp_rest_length(L: real, amp: real, u: real, dL: real, damp: real, du: real) -> real:
        return (1 + amp * u) * dL + L * (u * damp + amp * du)

    return SimpleNamespace(rest_length=rest_length, adj=adj_rest_length, jvp=jvp_rest_length)
