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

from simphys.autograd import View, kernel
from simphys.autograd.kernels.runtime import ti

from . import arrays
from .arrays import Boundary
from .fused import Variant, parts_of_step, shared_functions


# fmt: off
@functools.cache
@no_type_check
def kernels(variant: Variant) -> SimpleNamespace:
    """The loops of `fused.kernels` in reverse. `adj` [n, ...] holds the adjoint of the state after the step, and on
    return that of the state before it.

    `sums` are adjoint sums. Workspace, besides that of the step: adj_U, a grid for each piece, and `partial`: first the
    adjoint of env from each part of the nodes, then that of the control [A + 1] from each piece.
    """
    t, s, types = parts_of_step(variant), shared_functions(variant), arrays.types(variant.real)
    real, vec, reals, at = variant.real, t.vec, types.reals, t.at
    dim, spread, atomic, L = variant.dim, variant.spread, variant.atomic, variant.block
    table, places = ti.types.vector(t.transfer.width * L, real), ti.types.vector(L, ti.i32)
    vectors = ti.types.vector(dim * L, real)
    q_at = 2 * (dim + dim * dim)  # columns of the table of results, after those of x, v, C and F
    m_at, V_at, u_at, c_at = q_at + 1, q_at + 2, q_at + 3, q_at + 4
    results = ti.types.vector((c_at + variant.width) * L, real)

    particles_type, material_type, sums_type, moved_type = (
        types.particles, types.material, types.material_sums, types.moved
    )
    boundary_type, constants_type, counts_type = types.boundary, types.constants, types.counts
    velocities_type, grid_type = types.part(arrays.Grid, "U span"), types.part(arrays.Grid, "total U span")

    @ti.func
    def adj_node(
        cell, node: ti.i32, total: ti.template(), adj_u: ti.template(), boundary: ti.template(),
        constants: ti.template(), adj_env: ti.template(),
    ):
        p = vec(0.0)
        for d in ti.static(range(dim)):
            p[d] = total[node * (dim + 1) + d]
        m = total[node * (dim + 1) + dim]
        adj_m, adj_p = t.grid.adj_velocity(
            cell, m, p, at.vector(adj_u, node), boundary, constants, adj_env, variant.adj_environment, atomic
        )
        for d in ti.static(range(dim)):
            total[node * (dim + 1) + d] = adj_p[d]
        total[node * (dim + 1) + dim] = adj_m

    @kernel
    def from_particles(
        states: moved_type, grid: velocities_type, adj_U: reals, adj: moved_type, constants: constants_type, n: ti.i32,
        pieces: ti.i32, now: ti.i32,
    ):
        """Compute adj_U, and add to adj.x."""
        if ti.static(atomic):
            for k in range(t.nodes * dim):
                adj_U[k] = 0.0
        ti.loop_config(serialize=not variant.parallel_particles)
        for r in range(pieces * spread):
            if r % spread == 0:
                piece = r // spread
                U_at = 0 if ti.static(atomic) else piece * t.nodes * dim
                if ti.static(not atomic):
                    t.box.clear(grid.span, piece, adj_U, U_at, dim)
                begin, end = n * piece // pieces, n * (piece + 1) // pieces
                for number in range((end - begin + L - 1) // L):
                    low = begin + number * L
                    count = ti.min(L, end - low)
                    shares, nodes, new_x = table(0.0), places(0), vectors(0.0)
                    for lane in range(count):
                        k = low + lane
                        gx, node, share = t.g2p.adj(
                            grid.U, at.vector(states.x, now * n + k), at.vector(adj.x, k), at.vector(adj.v, k),
                            at.matrix(adj.C, k), constants.h, constants.dx,
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
                            adj.x[(low + lane) * dim + d] = new_x[d * L + lane]

    @kernel
    def nodes(
        boundary: boundary_type, grid: grid_type, adj_U: reals, partial: reals, constants: constants_type,
        pieces: ti.i32, parts: ti.i32, env_size: ti.i32, env_at: ti.i32,
    ):
        """Overwrite the total by its adjoint. With several pieces, adj_U is summed into U, no longer needed."""
        if ti.static(variant.adj_environment):
            for k in range(parts * env_size):
                partial[k] = 0.0
        if ti.static(atomic):
            for node in range(t.nodes):
                here = ti.static(Boundary(View(boundary.env, env_at), boundary.sizes))
                adj_node(s.cell_of(node), node, grid.total, adj_U, here, constants, partial)
        else:
            ti.loop_config(serialize=not variant.parallel_nodes)
            for r in range(parts * spread):
                if r % spread == 0:
                    part = r // spread
                    a, b = t.box.union(grid.span, pieces)
                    here = ti.static(Boundary(View(boundary.env, env_at), boundary.sizes))
                    adj_env = ti.static(View(partial, part * env_size))
                    lines = t.box.count_lines(a, b)
                    for line in range(lines * part // parts, lines * (part + 1) // parts):
                        cell = t.box.first_node(a, b, line)
                        first = t.box.node_index(cell)
                        if ti.static(not variant.single):
                            t.box.sum_line(grid.span, pieces, a, b, line, adj_U, t.nodes * dim, grid.U, dim)
                        for k in range(b[dim - 1] - a[dim - 1]):
                            adj_node(
                                cell, first + k, grid.total, adj_U if ti.static(variant.single) else grid.U, here,
                                constants, adj_env,
                            )
                            cell[dim - 1] += 1

    @kernel
    def from_grid(
        states: particles_type, material: material_type, total: reals, adj: particles_type, sums: sums_type,
        partial: reals, constants: constants_type, counts: counts_type, now: ti.i32, control_at: ti.i32,
    ):
        """Update `adj`, and add to `sums` and to `partial`."""
        if ti.static(variant.adj_control):
            for k in range((1 if ti.static(atomic) else counts.pieces) * counts.controls):
                partial[counts.parts * counts.env_size + k] = 0.0
        ti.loop_config(serialize=not variant.parallel_particles)
        for r in range(counts.pieces * spread):
            if r % spread == 0:
                piece = r // spread
                n, pieces = counts.n, counts.pieces
                begin, end = n * piece // pieces, n * (piece + 1) // pieces
                for number in range((end - begin + L - 1) // L):
                    low = begin + number * L
                    count = ti.min(L, end - low)
                    new = results(0.0)
                    for lane in range(count):
                        k = low + lane
                        i = now * n + k
                        C_i, q_i, c_k, law_k = (
                            at.matrix(states.C, i), s.read_hidden(states.q, i), s.read_coefficients(material.c, k),
                            s.read_law(material.law, k),
                        )
                        trial, F_new, _, tau = s.respond(C_i, states, material, constants.h, i, k, control_at)
                        gx, gv, gC, gtau, gm, gV = t.p2g.adj(
                            total, at.vector(states.x, i), at.vector(states.v, i), C_i, tau, material.mass[k],
                            material.volume[k], constants.h, constants.dx,
                        )
                        gF_new = at.matrix(adj.F, k)
                        if ti.static(variant.actuated):
                            gF, gu = t.actuate.adj(
                                F_new, at.vector(material.fibre, k), material.control[control_at + material.act[k]],
                                gtau,
                            )
                            gF_new += gF
                            new[u_at * L + lane] = gu
                        gtrial, gq, gc = t.law.adj(law_k, trial, q_i, c_k, gF_new, s.read_hidden(adj.q, k), gtau)
                        gC_trial, gF_old = t.deformation.adj(C_i, at.matrix(states.F, i), constants.h, gtrial)
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
                            adj.x[k * dim + d] = adj.x[k * dim + d] + new[d * L + lane]
                            adj.v[k * dim + d] = new[(dim + d) * L + lane]
                    for lane in range(count):
                        k = low + lane
                        for d in ti.static(range(dim * dim)):
                            adj.C[k * dim * dim + d] = new[(2 * dim + d) * L + lane]
                            adj.F[k * dim * dim + d] = new[(2 * dim + dim * dim + d) * L + lane]
                    for lane in range(count):
                        k = low + lane
                        if ti.static(variant.has_hidden):
                            adj.q[k] = new[q_at * L + lane]
                        if ti.static(variant.adj_mass):
                            sums.mass[k] = sums.mass[k] + new[m_at * L + lane]
                        if ti.static(variant.adj_volume):
                            sums.volume[k] = sums.volume[k] + new[V_at * L + lane]
                        if ti.static(variant.adj_coefficients):
                            for e in ti.static(range(variant.width)):
                                entry = k * variant.width + e
                                sums.c[entry] = sums.c[entry] + new[(c_at + e) * L + lane]
                        if ti.static(variant.adj_control):
                            slot = counts.parts * counts.env_size + material.act[k]
                            if ti.static(atomic):
                                ti.atomic_add(partial[slot], new[u_at * L + lane])
                            else:
                                slot += piece * counts.controls
                                partial[slot] = partial[slot] + new[u_at * L + lane]

    @kernel
    def reduce_partial_sums(partial: reals, total: reals, counts: counts_type, total_at: ti.i32):
        """Sum the adjoints of the step's env and of its control [A + 1] in order, into `total` from total_at on."""
        ti.loop_config(serialize=not atomic)
        for e in range(counts.env_size + counts.controls):
            sum_e = real(0.0)
            if e < counts.env_size:
                for part in range(1 if ti.static(atomic) else counts.parts):
                    sum_e += partial[part * counts.env_size + e]
            else:
                for piece in range(1 if ti.static(atomic) else counts.pieces):
                    sum_e += partial[
                        counts.parts * counts.env_size + piece * counts.controls + e - counts.env_size
                    ]
            total[total_at + e] = sum_e

    return SimpleNamespace(
        from_particles=from_particles, nodes=nodes, from_grid=from_grid, reduce_partial_sums=reduce_partial_sums
    )
