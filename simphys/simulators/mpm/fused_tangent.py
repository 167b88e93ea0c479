"""Kernels of the tangent of the fused step: its three loops, each with its derivative."""

import functools
from types import SimpleNamespace
from typing import no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from .fused import Variant, shared_functions, types


# fmt: off
@functools.cache
@no_type_check
def kernels(variant: Variant) -> SimpleNamespace:
    """The loops of `fused.kernels` for one piece, from row `now` of the states' tangents tx ... tq to the next row.

    tmass ... tcontrol and tenv are the tangents of mass ... control and env, with the same layout. Workspace: grids
    G and tG, velocities U and tU, the box `span`.
    """
    t, s = types(variant), shared_functions(variant)
    real, vec, reals, ints, at = variant.real, t.vec, t.reals, t.ints, t.at
    dim, size = variant.dim, variant.dim + 1

    @ti.func
    def scatter_particle(
        x: ti.template(), v: ti.template(), C: ti.template(), F: ti.template(), q: ti.template(), mass: ti.template(),
        volume: ti.template(), c: ti.template(), law: ti.template(), act: ti.template(), fibre: ti.template(),
        control: ti.template(), G: ti.template(), tx: ti.template(), tv: ti.template(), tC: ti.template(),
        tF: ti.template(), tq: ti.template(), tmass: ti.template(), tvolume: ti.template(), tc: ti.template(),
        tcontrol: ti.template(), tG: ti.template(), h: real, dx: real, n, now, control_at, k,
    ):
        """Scatter particle k and its tangent to the grids, and store the tangents of its new F and q."""
        i, new, m, V = now * n + k, (now + 1) * n + k, mass[k], volume[k]
        C_i, tC_i, q_i, law_k = at.matrix(C, i), at.matrix(tC, i), s.read_hidden(q, i), s.read_law(law, k)
        c_k, tc_k = s.read_coefficients(c, k), s.read_coefficients(tc, k)
        trial, F_new, _, tau = s.respond(C_i, F, q, c, law, act, fibre, control, h, i, k, control_at)
        ttrial = t.deformation.jvp(C_i, at.matrix(F, i), h, tC_i, at.matrix(tF, i))
        tF_new, tq_new, ttau = t.law.jvp(law_k, trial, q_i, c_k, ttrial, s.read_hidden(tq, i), tc_k)
        if ti.static(variant.actuated):
            f, u, tu = at.vector(fibre, k), control[control_at + act[k]], tcontrol[control_at + act[k]]
            ttau += t.actuate.jvp(F_new, f, u, tF_new, tu)
        at.put_matrix(tF, new, tF_new)
        if ti.static(variant.has_hidden):
            tq[new] = tq_new
        x_i, v_i = at.vector(x, i), at.vector(v, i)
        node, shares = t.p2g.compute_shares(x_i, v_i, C_i, tau, m, V, h, dx)
        t.p2g.scatter(G, 0, node, shares, m, variant.atomic)
        t.p2g.jvp(
            tG, x_i, v_i, C_i, tau, m, V, h, dx, at.vector(tx, i), at.vector(tv, i), tC_i, ttau, tmass[k], tvolume[k],
            variant.atomic,
        )

    @ti.func
    def compute_velocities(
        cell, node: ti.i32, G: ti.template(), tG: ti.template(), U: ti.template(), tU: ti.template(),
        env: ti.template(), tenv: ti.template(), env_at, sizes: ti.template(), dx: real, h: real, skin: real,
        floor: real,
    ):
        p, tp = vec(0.0), vec(0.0)
        for d in ti.static(range(dim)):
            p[d], tp[d] = G[node * size + d], tG[node * size + d]
        m, tm = G[node * size + dim], tG[node * size + dim]
        at.put_vector(U, node, t.grid.velocity(cell, m, p, env, env_at, sizes, dx, h, skin, floor))
        tu = t.grid.jvp_velocity(cell, m, p, tm, tp, env, tenv, env_at, sizes, dx, h, skin, floor)
        at.put_vector(tU, node, tu)

    @kernel
    def to_grid(
        x: reals, v: reals, C: reals, F: reals, q: reals, mass: reals, volume: reals, c: reals, law: ints, act: ints,
        fibre: reals, control: reals, G: reals, span: ints, tx: reals, tv: reals, tC: reals, tF: reals, tq: reals,
        tmass: reals, tvolume: reals, tc: reals, tcontrol: reals, tG: reals, h: real, dx: real, n: ti.i32,
        now: ti.i32, control_at: ti.i32,
    ):
        if ti.static(variant.atomic):
            for k in range(t.nodes * size):
                G[k] = 0.0
                tG[k] = 0.0
        else:
            ti.loop_config(serialize=True)
            for piece in range(1):
                t.box.find(span, piece, x, now * n, now * n + n, 1.0 / dx)
                t.box.clear(span, piece, G, 0, size)
                t.box.clear(span, piece, tG, 0, size)
        ti.loop_config(serialize=not variant.atomic)
        for k in range(n):
            scatter_particle(
                x, v, C, F, q, mass, volume, c, law, act, fibre, control, G, tx, tv, tC, tF, tq, tmass, tvolume, tc,
                tcontrol, tG, h, dx, n, now, control_at, k,
            )

    @kernel
    def nodes(
        env: reals, tenv: reals, sizes: reals, G: reals, tG: reals, U: reals, tU: reals, span: ints, h: real, dx: real,
        skin: real, floor: real, env_at: ti.i32,
    ):
        if ti.static(variant.atomic):
            for node in range(t.nodes):
                compute_velocities(s.cell_of(node), node, G, tG, U, tU, env, tenv, env_at, sizes, dx, h, skin, floor)
        else:
            ti.loop_config(serialize=True)
            for piece in range(1):
                a, b = t.box.union(span, piece + 1)
                for line in range(t.box.count_lines(a, b)):
                    cell = t.box.first_node(a, b, line)
                    begin = t.box.node_index(cell)
                    for k in range(b[dim - 1] - a[dim - 1]):
                        compute_velocities(cell, begin + k, G, tG, U, tU, env, tenv, env_at, sizes, dx, h, skin, floor)
                        cell[dim - 1] += 1

    @kernel
    def to_particles(
        x: reals, U: reals, tx: reals, tv: reals, tC: reals, tU: reals, h: real, dx: real, n: ti.i32, now: ti.i32,
    ):
        ti.loop_config(serialize=not variant.parallel_particles)
        for k in range(n):
            i, new = now * n + k, (now + 1) * n + k
            tx_new, tv_new, tC_new = t.g2p.jvp(U, tU, at.vector(x, i), at.vector(tx, i), h, dx)
            at.put_vector(tx, new, tx_new)
            at.put_vector(tv, new, tv_new)
            at.put_matrix(tC, new, tC_new)

    return SimpleNamespace(to_grid=to_grid, nodes=nodes, to_particles=to_particles)
