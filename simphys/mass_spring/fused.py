"""Kernels of the fused rollout: stages of the same element functions as in the nested sub-steps, and their adjoint.

A stage is forces, kick, drift (Topology.stages). Small systems, or one thread: the loop over stages lies inside one
serial kernel, where springs scatter into their nodes. Large systems, and GPUs: each stage is a launch of parallel
loops, where nodes gather from their springs in the same order, without atomics: results do not depend on the thread
count.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, no_type_check

from ..autograd import kernel
from ..autograd.runtime import ti
from . import external, integrate, spring


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What a compiled rollout does; terms that are zero and adjoints that nobody asked for are left out."""

    real: Any
    dim: int
    serial: bool
    """All stages in one launch, on one thread; else a launch of parallel loops a stage."""
    damped: bool
    """Springs have dashpots."""
    ground: bool
    """There is a ground."""
    width: int = 1
    """Springs are taken in blocks of so many, that the compiler vectorizes; their number is a multiple of it."""
    stiffness: bool = False
    damping: bool = False
    rest_length: bool = False
    """The adjoint of this parameter of the springs is wanted."""
    decay: bool = False
    impulse: bool = False
    """The adjoint of this kick coefficient, a or b, is wanted: for drag, or for mass or drag."""
    weight: bool = False
    """Adjoints of mass and gravity as they make the weight are wanted."""
    floor: bool = False
    """Adjoints of the ground's height, stiffness and friction are wanted."""
    dense: bool = False
    """The adjoint of the state is given, and kept, at every stage; else only the running one is."""


def types(real: Any, dim: int) -> SimpleNamespace:
    """The annotations of array arguments, flat over stages and nodes."""
    array = functools.partial(ti.types.ndarray, ndim=1)
    return SimpleNamespace(
        vectors=array(dtype=ti.types.vector(dim, real)),
        reals=array(dtype=real),
        floors=array(dtype=ti.types.vector(3, real)),
        pairs=array(dtype=ti.types.vector(2, ti.i32)),
        ints=array(dtype=ti.i32),
    )


def elements(variant: Variant) -> tuple[SimpleNamespace, SimpleNamespace, SimpleNamespace]:
    """The element functions of spring, external force and integration."""
    real, dim = variant.real, variant.dim
    return (
        spring.functions(real, dim, variant.damped),
        external.functions(real, dim, variant.ground),
        integrate.functions(real, dim),
    )


# fmt: off
@functools.cache
@no_type_check
def forward_kernel(variant: Variant) -> Any:
    """From the state at stage `first` to that at stage `last`; x and v hold n entries a stage."""
    real, serial, width = variant.real, variant.serial, variant.width
    t = types(real, variant.dim)
    vectors, reals, floors, pairs, ints = t.vectors, t.reals, t.floors, t.pairs, t.ints
    spring_, external_, integrate_ = elements(variant)

    @ti.func
    def stage(
        x: ti.template(), v: ti.template(), k: ti.template(), c: ti.template(), L: ti.template(), ends: ti.template(),
        start: ti.template(), incidence: ti.template(), a: ti.template(), b: ti.template(), m: ti.template(),
        g: ti.template(), floor: ti.template(), held: ti.template(), n, S, e, q, now, first,
    ):
        if ti.static(serial):  # noqa: SIM102 - decided when compiling
            if first:
                for i in range(n):
                    held[i] = external_.force(x[now + i], v[now + i], m[i], g[0], floor[0])
        for block in range(S // width):
            springs = [block * width + r for r in ti.static(range(width))]
            i, j = [ends[s][0] for s in ti.static(springs)], [ends[s][1] for s in ti.static(springs)]
            d = [x[now + j[r]] - x[now + i[r]] for r in ti.static(range(width))]
            u = [v[now + j[r]] - v[now + i[r]] for r in ti.static(range(width))]
            f = [
                spring_.force(d[r], u[r], k[springs[r]], c[springs[r]], L[springs[r]])
                for r in ti.static(range(width))
            ]
            for r in ti.static(range(width)):
                if ti.static(serial):
                    at_i, at_j = held[i[r]], held[j[r]]
                    held[i[r]] = at_i + f[r]
                    held[j[r]] = at_j - f[r]
                else:
                    held[springs[r]] = f[r]
        for i in range(n):
            f = held[i]
            if ti.static(not serial):
                f = external_.force(x[now + i], v[now + i], m[i], g[0], floor[0])
                for r in range(start[i], start[i + 1]):
                    f += (1 - 2 * (incidence[r] & 1)) * held[incidence[r] >> 1]
            v_new = integrate_.kick(v[now + i], f, a[q * n + i], b[q * n + i])
            x_new = x[now + i] + e * v_new
            v[now + n + i] = v_new
            x[now + n + i] = x_new
            if ti.static(serial):  # for the next stage
                held[i] = external_.force(x_new, v_new, m[i], g[0], floor[0])

    @kernel
    def forward(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, ends: pairs, start: ints, incidence: ints,
        n: ti.i32, S: ti.i32, a: reals, b: reals, m: reals, g: vectors, floor: floors,
        drifts: reals, stages: ti.i32, held: vectors, first: ti.i32, last: ti.i32,
    ):
        if ti.static(serial):
            ti.loop_config(serialize=True)
            for j in range(first, last):
                q = j % stages
                stage(
                    x, v, k, c, L, ends, start, incidence, a, b, m, g, floor, held, n, S, drifts[q], q, j * n,
                    j == first,
                )
        else:
            q = first % stages
            stage(x, v, k, c, L, ends, start, incidence, a, b, m, g, floor, held, n, S, drifts[q], q, first * n, True)

    return forward


@functools.cache
@no_type_check
def adjoint_kernel(variant: Variant) -> Any:
    """The stages of `forward_kernel` in reverse; adj_x and adj_v hold the adjoint of the state, others accumulate."""
    real, serial, dense, width = variant.real, variant.serial, variant.dense, variant.width
    t = types(real, variant.dim)
    vectors, reals, floors, pairs, ints = t.vectors, t.reals, t.floors, t.pairs, t.ints
    spring_, external_, integrate_ = elements(variant)
    vec = ti.types.vector(variant.dim, real)

    @ti.func
    def stage(
        x: ti.template(), v: ti.template(), k: ti.template(), c: ti.template(), L: ti.template(), ends: ti.template(),
        start: ti.template(), incidence: ti.template(), a: ti.template(), b: ti.template(), m: ti.template(),
        g: ti.template(), floor: ti.template(), w: ti.template(), adj_f: ti.template(), held_d: ti.template(),
        held_u: ti.template(), held_f: ti.template(), adj_x: ti.template(), adj_v: ti.template(), adj_k: ti.template(),
        adj_c: ti.template(), adj_L: ti.template(), adj_a: ti.template(), adj_b: ti.template(), adj_m: ti.template(),
        adj_g: ti.template(), adj_floor: ti.template(), n, S, e, q, now,
    ):
        # Where the state's adjoint before (old) and after (new) this stage lies: along time, or in one running place.
        old = now if ti.static(dense) else 0
        new = now + n if ti.static(dense) else 0
        for i in range(n):
            w_i = adj_v[new + i] + e * adj_x[new + i]
            f = external_.force(x[now + i], v[now + i], m[i], g[0], floor[0])
            gv, gf, ga, gb = integrate_.adj_kick(v[now + i], f, a[q * n + i], b[q * n + i], w_i)
            adj_f[i] = gf
            gx, gv_external, gm, gg, gfloor = external_.adj(x[now + i], v[now + i], m[i], g[0], floor[0], gf)
            if ti.static(dense):
                adj_x[old + i] = adj_x[old + i] + adj_x[new + i] + gx
                adj_v[old + i] = adj_v[old + i] + gv + gv_external
            else:
                if ti.static(variant.ground):
                    adj_x[i] = adj_x[i] + gx
                adj_v[i] = gv + gv_external
            if ti.static(variant.decay):
                adj_a[q * n + i] = adj_a[q * n + i] + ga
            if ti.static(variant.impulse):
                w[i] = w_i
                adj_b[q * n + i] = adj_b[q * n + i] + gb
            if ti.static(variant.weight):
                adj_m[i] = adj_m[i] + gm
                adj_g[i] = adj_g[i] + gg
            if ti.static(variant.floor):
                adj_floor[i] = adj_floor[i] + gfloor
        for block in range(S // width):
            springs = [block * width + r for r in ti.static(range(width))]
            i, j = [ends[s][0] for s in ti.static(springs)], [ends[s][1] for s in ti.static(springs)]
            d = [x[now + j[r]] - x[now + i[r]] for r in ti.static(range(width))]
            u = [v[now + j[r]] - v[now + i[r]] for r in ti.static(range(width))]
            adjoints = [
                spring_.adj(d[r], u[r], k[springs[r]], c[springs[r]], L[springs[r]], adj_f[i[r]] - adj_f[j[r]])
                for r in ti.static(range(width))
            ]
            for r in ti.static(range(width)):
                s, a_, b_ = springs[r], i[r], j[r]
                gd, gu, gk, gc, gL = adjoints[r]
                if ti.static(variant.stiffness):
                    adj_k[s] = adj_k[s] + gk
                if ti.static(variant.damping):
                    adj_c[s] = adj_c[s] + gc
                if ti.static(variant.rest_length):
                    adj_L[s] = adj_L[s] + gL
                if ti.static(serial):  # d = x_j - x_i: end i takes the negative
                    at_a, at_b = adj_x[old + a_], adj_x[old + b_]
                    adj_x[old + a_] = at_a - gd
                    adj_x[old + b_] = at_b + gd
                    if ti.static(variant.damped):
                        at_a, at_b = adj_v[old + a_], adj_v[old + b_]
                        adj_v[old + a_] = at_a - gu
                        adj_v[old + b_] = at_b + gu
                    if ti.static(variant.impulse):
                        f = spring_.force(d[r], u[r], k[s], c[s], L[s])
                        adj_b[q * n + a_] = adj_b[q * n + a_] + f.dot(w[a_])
                        adj_b[q * n + b_] = adj_b[q * n + b_] - f.dot(w[b_])
                else:
                    held_d[s] = gd
                    if ti.static(variant.damped):
                        held_u[s] = gu
                    if ti.static(variant.impulse):
                        held_f[s] = spring_.force(d[r], u[r], k[s], c[s], L[s])
        if ti.static(not serial):
            for i in range(n):
                gx, gv, f = vec(0.0), vec(0.0), vec(0.0)
                for r in range(start[i], start[i + 1]):
                    sign, s = 2 * (incidence[r] & 1) - 1, incidence[r] >> 1
                    gx += sign * held_d[s]
                    if ti.static(variant.damped):
                        gv += sign * held_u[s]
                    if ti.static(variant.impulse):
                        f -= sign * held_f[s]
                adj_x[old + i] = adj_x[old + i] + gx
                if ti.static(variant.damped):
                    adj_v[old + i] = adj_v[old + i] + gv
                if ti.static(variant.impulse):
                    adj_b[q * n + i] = adj_b[q * n + i] + f.dot(w[i])

    @kernel
    def adjoint(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, ends: pairs, start: ints, incidence: ints,
        n: ti.i32, S: ti.i32, a: reals, b: reals, m: reals, g: vectors, floor: floors, drifts: reals, stages: ti.i32,
        w: vectors, adj_f: vectors, held_d: vectors, held_u: vectors, held_f: vectors, adj_x: vectors, adj_v: vectors,
        adj_k: reals, adj_c: reals, adj_L: reals, adj_a: reals, adj_b: reals, adj_m: reals, adj_g: vectors,
        adj_floor: floors, first: ti.i32, last: ti.i32,
    ):
        if ti.static(serial):
            ti.loop_config(serialize=True)
            for r in range(last - first):
                j = last - 1 - r
                q = j % stages
                stage(
                    x, v, k, c, L, ends, start, incidence, a, b, m, g, floor, w, adj_f, held_d, held_u, held_f,
                    adj_x, adj_v, adj_k, adj_c, adj_L, adj_a, adj_b, adj_m, adj_g, adj_floor, n, S, drifts[q], q, j * n,
                )
        else:
            q = first % stages
            stage(
                x, v, k, c, L, ends, start, incidence, a, b, m, g, floor, w, adj_f, held_d, held_u, held_f,
                adj_x, adj_v, adj_k, adj_c, adj_L, adj_a, adj_b, adj_m, adj_g, adj_floor, n, S, drifts[q], q, first * n,
            )

    return adjoint


@functools.cache
@no_type_check
def tangent_kernel(variant: Variant) -> Any:
    """Tangents dx, dv of all stages along a rollout, serial; their first n entries hold the tangent of the start."""
    real = variant.real
    t = types(real, variant.dim)
    vectors, reals, floors, pairs, ints = t.vectors, t.reals, t.floors, t.pairs, t.ints
    spring_, external_, integrate_ = elements(variant)

    @kernel
    def tangent(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, ends: pairs, start: ints, incidence: ints,
        n: ti.i32, S: ti.i32, a: reals, b: reals, m: reals, g: vectors, floor: floors, drifts: reals, stages: ti.i32,
        f: vectors, df: vectors, dx: vectors, dv: vectors, dk: reals, dc: reals, dL: reals, da: reals, db: reals,
        dm: reals, dg: vectors, dfloor: floors, last: ti.i32,
    ):
        ti.loop_config(serialize=True)
        for j in range(last):
            q, now = j % stages, j * n
            for i in range(n):
                x_i, v_i, dx_i, dv_i = x[now + i], v[now + i], dx[now + i], dv[now + i]
                f[i] = external_.force(x_i, v_i, m[i], g[0], floor[0])
                df[i] = external_.jvp(x_i, v_i, m[i], g[0], floor[0], dx_i, dv_i, dm[i], dg[0], dfloor[0])
            for s in range(S):
                h, i = now + ends[s][0], now + ends[s][1]
                d, u, dd, du = x[i] - x[h], v[i] - v[h], dx[i] - dx[h], dv[i] - dv[h]
                force = spring_.force(d, u, k[s], c[s], L[s])
                dforce = spring_.jvp(d, u, k[s], c[s], L[s], dd, du, dk[s], dc[s], dL[s])
                f[ends[s][0]] = f[ends[s][0]] + force
                f[ends[s][1]] = f[ends[s][1]] - force
                df[ends[s][0]] = df[ends[s][0]] + dforce
                df[ends[s][1]] = df[ends[s][1]] - dforce
            for i in range(n):
                y = q * n + i
                dv_new = integrate_.jvp_kick(v[now + i], f[i], a[y], b[y], dv[now + i], df[i], da[y], db[y])
                dv[now + n + i] = dv_new
                dx[now + n + i] = dx[now + i] + drifts[q] * dv_new

    return tangent
