"""Kernel of the tangent of the fused step: its three loops once more, each with its derivative beside it."""

import functools
from typing import Any, no_type_check

from ..autograd import kernel
from ..autograd.runtime import ti
from .fused import Variant, shared, types


# fmt: off
@functools.cache
@no_type_check
def tangent_kernel(variant: Variant) -> Any:
    """A step of `fused.kernels`, of one piece: from row `now` of the tangents dx ... dq of its states to that behind.

    dmass ... denv, laid out as mass ... env, are the tangents of these. Working memory: grids G and dG, velocities U
    and dU, the box `span`.
    """
    t, s = types(variant), shared(variant)
    real, vec, reals, ints, at = variant.real, t.vec, t.reals, t.ints, t.at
    dim, size = variant.dim, variant.dim + 1

    @ti.func
    def scattered(
        x: ti.template(), v: ti.template(), C: ti.template(), F: ti.template(), q: ti.template(), mass: ti.template(),
        volume: ti.template(), c: ti.template(), law: ti.template(), act: ti.template(), fibre: ti.template(),
        control: ti.template(), G: ti.template(), dx_: ti.template(), dv: ti.template(), dC: ti.template(),
        dF: ti.template(), dq: ti.template(), dmass: ti.template(), dvolume: ti.template(), dc: ti.template(),
        dcontrol: ti.template(), dG: ti.template(), h: real, dx: real, n, now, control_at, k,
    ):
        """What particle k hands to the grid, and its tangent; those of its new F and q stay."""
        i, new, factor = now * n + k, (now + 1) * n + k, 4.0 * h / (dx * dx)
        C_i, F_i, dC_i, dF_i = at.matrix(C, i), at.matrix(F, i), at.matrix(dC, i), at.matrix(dF, i)
        m, V = mass[k], volume[k]
        c_j, dc_j, q_i, law_k = s.coefficients(c, k), s.coefficients(dc, k), s.hidden(q, i), s.law_of(law, k)
        trial, dtrial = t.deformation.deform(C_i, F_i, h), t.deformation.jvp(C_i, F_i, h, dC_i, dF_i)
        F_new, _, tau = t.law.respond(law_k, trial, q_i, c_j)
        dF_new, dq_new, dtau = t.law.jvp(law_k, trial, q_i, c_j, dtrial, s.hidden(dq, i), dc_j)
        if ti.static(variant.actuated):
            f, u, du = at.vector(fibre, k), control[control_at + act[k]], dcontrol[control_at + act[k]]
            tau += t.actuate.stress(F_new, f, u)
            dtau += t.actuate.jvp(F_new, f, u, dF_new, du)
        at.put_matrix(dF, new, dF_new)
        if ti.static(variant.hidden):
            dq[new] = dq_new
        A = t.p2g.affine(C_i, tau, m, V, factor)
        dA = t.p2g.jvp_affine(C_i, tau, m, V, factor, dC_i, dtau, dmass[k], dvolume[k])
        x_i, v_i = at.vector(x, i), at.vector(v, i)
        node, shares = t.p2g.spread(x_i, v_i, A, m, dx)
        t.p2g.scatter(G, 0, node, shares, m, variant.atomic)
        t.p2g.jvp_scatter(dG, x_i, v_i, A, m, dx, at.vector(dx_, i), at.vector(dv, i), dA, dmass[k], variant.atomic)

    @ti.func
    def velocities(
        cell, node: ti.i32, G: ti.template(), dG: ti.template(), U: ti.template(), dU: ti.template(),
        env: ti.template(), denv: ti.template(), env_at, sizes: ti.template(), dx: real, h: real, skin: real,
        floor: real,
    ):
        p, dp = vec(0.0), vec(0.0)
        for d in ti.static(range(dim)):
            p[d], dp[d] = G[node * size + d], dG[node * size + d]
        m, dm = G[node * size + dim], dG[node * size + dim]
        at.put_vector(U, node, t.grid.velocity(cell, m, p, env, env_at, sizes, dx, h, skin, floor))
        du = t.grid.jvp_velocity(cell, m, p, dm, dp, env, denv, env_at, sizes, dx, h, skin, floor)
        at.put_vector(dU, node, du)

    @kernel
    def tangent(
        x: reals, v: reals, C: reals, F: reals, q: reals, mass: reals, volume: reals, c: reals, law: ints, act: ints,
        fibre: reals, control: reals, env: reals, sizes: reals, G: reals, U: reals, span: ints,
        dx_: reals, dv: reals, dC: reals, dF: reals, dq: reals, dmass: reals, dvolume: reals, dc: reals,
        dcontrol: reals, denv: reals, dG: reals, dU: reals,
        h: real, dx: real, skin: real, floor: real, n: ti.i32, now: ti.i32, control_at: ti.i32,
        env_at: ti.i32,
    ):
        if ti.static(variant.atomic):
            for k in range(t.nodes * size):
                G[k] = 0.0
                dG[k] = 0.0
            for k in range(n):
                scattered(
                    x, v, C, F, q, mass, volume, c, law, act, fibre, control, G, dx_, dv, dC, dF, dq, dmass, dvolume,
                    dc, dcontrol, dG, h, dx, n, now, control_at, k,
                )
            for node in range(t.nodes):
                velocities(s.cell_of(node), node, G, dG, U, dU, env, denv, env_at, sizes, dx, h, skin, floor)
        else:
            ti.loop_config(serialize=True)
            for _ in range(1):
                t.box.find(span, 0, x, now * n, now * n + n, 1.0 / dx)
                t.box.clear(span, 0, G, 0, size)
                t.box.clear(span, 0, dG, 0, size)
                for k in range(n):
                    scattered(
                        x, v, C, F, q, mass, volume, c, law, act, fibre, control, G, dx_, dv, dC, dF, dq, dmass,
                        dvolume, dc, dcontrol, dG, h, dx, n, now, control_at, k,
                    )
                a, b = t.box.union(span, 1)
                for line in range(t.box.lines(a, b)):
                    cell = t.box.cell(a, b, line)
                    begin = t.box.place(cell)
                    for k in range(b[dim - 1] - a[dim - 1]):
                        velocities(cell, begin + k, G, dG, U, dU, env, denv, env_at, sizes, dx, h, skin, floor)
                        cell[dim - 1] += 1

        ti.loop_config(serialize=not variant.parallel_particles)
        for k in range(n):
            i, new = now * n + k, (now + 1) * n + k
            dx_i = at.vector(dx_, i)
            dv_new, dC_new = t.g2p.jvp_gather(U, dU, at.vector(x, i), dx_i, dx)
            at.put_vector(dx_, new, dx_i + h * dv_new)
            at.put_vector(dv, new, dv_new)
            at.put_matrix(dC, new, dC_new)

    return tangent
