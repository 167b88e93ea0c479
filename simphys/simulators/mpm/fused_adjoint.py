"""Kernels of the adjoint of the fused step: its loops in reverse, with the same element functions, one kernel each.

The grid of the step is not stored: `to_grid` and `nodes` of the step run once more. Then

1. `from_particles`, piece by piece: scatter the adjoint of the new state to the velocities of nodes.
2. `nodes`: sum the grids of all pieces, in order; overwrite momentum and mass by their adjoints.
3. `from_grid`, over particles: gather these adjoints and reverse stress, law and deformation.
4. `reduce_partial_sums`: sum the adjoints of environment and controls over parts of nodes and pieces of particles.
"""

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
    """The loops of `fused.kernels` in reverse. ax ... aq [n, ...] hold the adjoint of the state after the step, and on
    return that of the state before it.

    s_mass, s_volume, s_c are adjoint sums. Workspace, besides that of the step: adj_U, a grid for each piece, and
    `partial`: first the adjoint of env from each part of the nodes, then that of the control [A + 1] from each piece.
    """
    t, s = types(variant), shared_functions(variant)
    real, vec, reals, ints, at = variant.real, t.vec, t.reals, t.ints, t.at
    dim, spread, atomic, L = variant.dim, variant.spread, variant.atomic, variant.block
    table, places = ti.types.vector(t.transfer.width * L, real), ti.types.vector(L, ti.i32)
    vectors = ti.types.vector(dim * L, real)
    q_at = 2 * (dim + dim * dim)  # columns of the table of results, after those of x, v, C and F
    m_at, V_at, u_at, c_at = q_at + 1, q_at + 2, q_at + 3, q_at + 4
    results = ti.types.vector((c_at + variant.width) * L, real)

    @ti.func
    def adj_node(
        cell, node: ti.i32, total: ti.template(), adj_u: ti.template(), env: ti.template(), env_at: ti.i32,
        sizes: ti.template(), dx: real, h: real, skin: real, floor: real, partial: ti.template(), slot: ti.i32,
    ):
        p = vec(0.0)
        for d in ti.static(range(dim)):
            p[d] = total[node * (dim + 1) + d]
        m = total[node * (dim + 1) + dim]
        adj_m, adj_p = t.grid.adj_velocity(
            cell, m, p, at.vector(adj_u, node), env, env_at, sizes, dx, h, skin, floor,
            partial, slot, variant.adj_environment, atomic,
        )
        for d in ti.static(range(dim)):
            total[node * (dim + 1) + d] = adj_p[d]
        total[node * (dim + 1) + dim] = adj_m

    @kernel
    def from_particles(
        x: reals, U: reals, span: ints, adj_U: reals, ax: reals, av: reals, aC: reals, h: real, dx: real, n: ti.i32,
        pieces: ti.i32, now: ti.i32,
    ):
        """Compute adj_U, and add to ax."""
        if ti.static(atomic):
            for k in range(t.nodes * dim):
                adj_U[k] = 0.0
        ti.loop_config(serialize=not variant.parallel_particles)
        for r in range(pieces * spread):
            if r % spread == 0:
                piece = r // spread
                U_at = 0 if ti.static(atomic) else piece * t.nodes * dim
                if ti.static(not atomic):
                    t.box.clear(span, piece, adj_U, U_at, dim)
                begin, end = n * piece // pieces, n * (piece + 1) // pieces
                for number in range((end - begin + L - 1) // L):
                    low = begin + number * L
                    count = ti.min(L, end - low)
                    shares, nodes, new_x = table(0.0), places(0), vectors(0.0)
                    for lane in range(count):
                        k = low + lane
                        gx, node, share = t.g2p.adj(
                            U, at.vector(x, now * n + k), at.vector(ax, k), at.vector(av, k), at.matrix(aC, k), h, dx
                        )
                        nodes[lane] = node
                        for e in range(t.transfer.width):
                            shares[e * L + lane] = share[e]
                        for d in ti.static(range(dim)):
                            new_x[d * L + lane] = gx[d]
                    for lane in range(count):
                        share = t.transfer.table(0.0)
                        for e in range(t.transfer.width):
                            share[e] = shares[e * L + lane]
                        t.g2p.scatter(adj_U, U_at, nodes[lane], share, atomic)
                    for lane in range(count):
                        for d in ti.static(range(dim)):
                            ax[(low + lane) * dim + d] = new_x[d * L + lane]

    @kernel
    def nodes(
        env: reals, sizes: reals, total: reals, U: reals, span: ints, adj_U: reals, partial: reals, h: real, dx: real,
        skin: real, floor: real, pieces: ti.i32, parts: ti.i32, env_size: ti.i32, env_at: ti.i32,
    ):
        """Overwrite total by its adjoint. With several pieces, adj_U is summed into U, which is no longer needed."""
        if ti.static(variant.adj_environment):
            for k in range(parts * env_size):
                partial[k] = 0.0
        if ti.static(atomic):
            for node in range(t.nodes):
                adj_node(s.cell_of(node), node, total, adj_U, env, env_at, sizes, dx, h, skin, floor, partial, 0)
        else:
            ti.loop_config(serialize=not variant.parallel_nodes)
            for r in range(parts * spread):
                if r % spread == 0:
                    part = r // spread
                    a, b = t.box.union(span, pieces)
                    lines = t.box.count_lines(a, b)
                    for line in range(lines * part // parts, lines * (part + 1) // parts):
                        cell = t.box.first_node(a, b, line)
                        first = t.box.node_index(cell)
                        if ti.static(not variant.single):
                            t.box.sum_line(span, pieces, a, b, line, adj_U, t.nodes * dim, U, dim)
                        for k in range(b[dim - 1] - a[dim - 1]):
                            adj_node(
                                cell, first + k, total, adj_U if ti.static(variant.single) else U, env, env_at, sizes,
                                dx, h, skin, floor, partial, part * env_size,
                            )
                            cell[dim - 1] += 1

    @kernel
    def from_grid(
        x: reals, v: reals, C: reals, F: reals, q: reals, mass: reals, volume: reals, c: reals, law: ints, act: ints,
        fibre: reals, control: reals, total: reals, ax: reals, av: reals, aC: reals, aF: reals, aq: reals,
        s_mass: reals, s_volume: reals, s_c: reals, partial: reals, h: real, dx: real, n: ti.i32, pieces: ti.i32,
        parts: ti.i32, env_size: ti.i32, controls: ti.i32, now: ti.i32, control_at: ti.i32,
    ):
        """Update ax ... aq, and add to s_mass ... s_c and to `partial`."""
        if ti.static(variant.adj_control):
            for k in range((1 if ti.static(atomic) else pieces) * controls):
                partial[parts * env_size + k] = 0.0
        ti.loop_config(serialize=not variant.parallel_particles)
        for r in range(pieces * spread):
            if r % spread == 0:
                piece = r // spread
                begin, end = n * piece // pieces, n * (piece + 1) // pieces
                for number in range((end - begin + L - 1) // L):
                    low = begin + number * L
                    count = ti.min(L, end - low)
                    new = results(0.0)
                    for lane in range(count):
                        k = low + lane
                        i = now * n + k
                        C_i, q_i, c_k, law_k = (
                            at.matrix(C, i), s.read_hidden(q, i), s.read_coefficients(c, k), s.read_law(law, k)
                        )
                        trial, F_new, _, tau = s.respond(C_i, F, q, c, law, act, fibre, control, h, i, k, control_at)
                        gx, gv, gC, gtau, gm, gV = t.p2g.adj(
                            total, at.vector(x, i), at.vector(v, i), C_i, tau, mass[k], volume[k], h, dx
                        )
                        gF_new = at.matrix(aF, k)
                        if ti.static(variant.actuated):
                            gF, gu = t.actuate.adj(F_new, at.vector(fibre, k), control[control_at + act[k]], gtau)
                            gF_new += gF
                            new[u_at * L + lane] = gu
                        gtrial, gq, gc = t.law.adj(law_k, trial, q_i, c_k, gF_new, s.read_hidden(aq, k), gtau)
                        gC_trial, gF_old = t.deformation.adj(C_i, at.matrix(F, i), h, gtrial)
                        for d in ti.static(range(dim)):
                            new[d * L + lane] = gx[d]
                            new[(dim + d) * L + lane] = gv[d]
                        for d in ti.static(range(dim * dim)):
                            new[(2 * dim + d) * L + lane] = gC[d // dim, d % dim] + gC_trial[d // dim, d % dim]
                            new[(2 * dim + dim * dim + d) * L + lane] = gF_old[d // dim, d % dim]
                        new[q_at * L + lane] = gq
                        new[m_at * L + lane] = gm
                        new[V_at * L + lane] = gV
                        for e in ti.static(range(variant.width)):
                            new[(c_at + e) * L + lane] = gc[e]
                    for lane in range(count):
                        k = low + lane
                        for d in ti.static(range(dim)):
                            ax[k * dim + d] = ax[k * dim + d] + new[d * L + lane]
                            av[k * dim + d] = new[(dim + d) * L + lane]
                    for lane in range(count):
                        k = low + lane
                        for d in ti.static(range(dim * dim)):
                            aC[k * dim * dim + d] = new[(2 * dim + d) * L + lane]
                            aF[k * dim * dim + d] = new[(2 * dim + dim * dim + d) * L + lane]
                    for lane in range(count):
                        k = low + lane
                        if ti.static(variant.has_hidden):
                            aq[k] = new[q_at * L + lane]
                        if ti.static(variant.adj_mass):
                            s_mass[k] = s_mass[k] + new[m_at * L + lane]
                        if ti.static(variant.adj_volume):
                            s_volume[k] = s_volume[k] + new[V_at * L + lane]
                        if ti.static(variant.adj_coefficients):
                            for e in ti.static(range(variant.width)):
                                s_c[k * variant.width + e] = s_c[k * variant.width + e] + new[(c_at + e) * L + lane]
                        if ti.static(variant.adj_control):
                            slot = parts * env_size + act[k]
                            if ti.static(atomic):
                                ti.atomic_add(partial[slot], new[u_at * L + lane])
                            else:
                                slot += piece * controls
                                partial[slot] = partial[slot] + new[u_at * L + lane]

    @kernel
    def reduce_partial_sums(
        partial: reals, total: reals, pieces: ti.i32, parts: ti.i32, env_size: ti.i32, controls: ti.i32,
        total_at: ti.i32,
    ):
        """Sum the adjoints of the step's env and of its control [A + 1] in order, into `total` from total_at on."""
        ti.loop_config(serialize=not atomic)
        for e in range(env_size + controls):
            sum_e = real(0.0)
            if e < env_size:
                for part in range(1 if ti.static(atomic) else parts):
                    sum_e += partial[part * env_size + e]
            else:
                for piece in range(1 if ti.static(atomic) else pieces):
                    sum_e += partial[parts * env_size + piece * controls + e - env_size]
            total[total_at + e] = sum_e

    return SimpleNamespace(
        from_particles=from_particles, nodes=nodes, from_grid=from_grid, reduce_partial_sums=reduce_partial_sums
    )
