"""Kernels of the tangent of the fused step: its three loops, each with its derivative."""

import functools
from types import SimpleNamespace
from typing import no_type_check

from simphys.autograd import View, kernel
from simphys.autograd.kernels.runtime import ti

from . import arrays
from .arrays import Boundary, Particles
from .fused import Variant, parts_of_step, shared_functions


# fmt: off
@functools.cache
@no_type_check
def kernels(variant: Variant) -> SimpleNamespace:
    """The loops of `fused.kernels` for one piece, from row `now` of the states' tangents to the next row.

    dstates, dmaterial, denv and dgrid are the tangents of records and arrays with the same layout.
    """
    t, s, types = parts_of_step(variant), shared_functions(variant), arrays.types(variant.real)
    vec, reals, at = t.vec, types.reals, t.at
    dim, size = variant.dim, variant.dim + 1
    particles_type, material_type, dmaterial_type = types.particles, types.material, types.dmaterial
    boundary_type, constants_type, moved_type = types.boundary, types.constants, types.moved
    scattered_type, grid_type = types.part(arrays.Grid, "G span"), types.part(arrays.Grid, "G U span")
    dgrid_type = types.part(arrays.Grid, "G U")

    @ti.func
    def scatter_particle(
        states: ti.template(), material: ti.template(), G: ti.template(), dstates: ti.template(),
        dmaterial: ti.template(), dG: ti.template(), constants: ti.template(), n, now, control_at, k,
    ):
        """Scatter particle k and its tangent to the grids, and store the tangents of its new F and q."""
        h, dx = constants.h, constants.dx
        i, new, m, V = now * n + k, (now + 1) * n + k, material.mass[k], material.volume[k]
        C_i, tC_i, q_i = at.matrix(states.C, i), at.matrix(dstates.C, i), s.read_hidden(states.q, i)
        law_k = s.read_law(material.law, k)
        c_k, tc_k = s.read_coefficients(material.c, k), s.read_coefficients(dmaterial.c, k)
        trial, F_new, _, tau = s.respond(C_i, states, material, h, i, k, control_at)
        ttrial = t.deformation.jvp(C_i, at.matrix(states.F, i), h, tC_i, at.matrix(dstates.F, i))
        tF_new, tq_new, ttau = t.law.jvp(law_k, trial, q_i, c_k, ttrial, s.read_hidden(dstates.q, i), tc_k)
        if ti.static(variant.actuated):
            column = control_at + material.act[k]
            f, u, tu = at.vector(material.fibre, k), material.control[column], dmaterial.control[column]
            ttau += t.actuate.jvp(F_new, f, u, tF_new, tu)
        at.put_matrix(dstates.F, new, tF_new)
        if ti.static(variant.has_hidden):
            dstates.q[new] = tq_new
        x_i, v_i = at.vector(states.x, i), at.vector(states.v, i)
        tx_i, tv_i, tm, tV = at.vector(dstates.x, i), at.vector(dstates.v, i), dmaterial.mass[k], dmaterial.volume[k]
        node, shares = t.p2g.compute_shares(x_i, v_i, C_i, tau, m, V, h, dx)
        t.p2g.scatter(G, 0, node, shares, m, variant.atomic)
        particle = ti.static(Particles(x_i, v_i, C_i, tau=tau, m=m, V=V))
        dparticle = ti.static(Particles(tx_i, tv_i, tC_i, tau=ttau, m=tm, V=tV))
        t.p2g.jvp(dG, particle, dparticle, h, dx, variant.atomic)

    @ti.func
    def compute_velocities(
        cell, node: ti.i32, grid: ti.template(), dgrid: ti.template(), boundary: ti.template(), denv: ti.template(),
        constants: ti.template(),
    ):
        p, tp = vec(0.0), vec(0.0)
        for d in ti.static(range(dim)):
            p[d], tp[d] = grid.G[node * size + d], dgrid.G[node * size + d]
        m, tm = grid.G[node * size + dim], dgrid.G[node * size + dim]
        at.put_vector(grid.U, node, t.grid.velocity(cell, m, p, boundary, constants))
        tu = t.grid.jvp_velocity(cell, m, p, tm, tp, boundary, denv, constants)
        at.put_vector(dgrid.U, node, tu)

    @kernel
    def to_grid(
        states: particles_type, material: material_type, grid: scattered_type, dstates: particles_type,
        dmaterial: dmaterial_type, dG: reals, constants: constants_type, n: ti.i32, now: ti.i32, control_at: ti.i32,
    ):
        if ti.static(variant.atomic):
            for k in range(t.nodes * size):
                grid.G[k] = 0.0
                dG[k] = 0.0
        else:
            ti.loop_config(serialize=True)
            for piece in range(1):
                t.box.find(grid.span, piece, states.x, now * n, now * n + n, 1.0 / constants.dx)
                t.box.clear(grid.span, piece, grid.G, 0, size)
                t.box.clear(grid.span, piece, dG, 0, size)
        ti.loop_config(serialize=not variant.atomic)
        for k in range(n):
            scatter_particle(states, material, grid.G, dstates, dmaterial, dG, constants, n, now, control_at, k)

    @kernel
    def nodes(
        boundary: boundary_type, denv: reals, grid: grid_type, dgrid: dgrid_type, constants: constants_type,
        env_at: ti.i32,
    ):
        if ti.static(variant.atomic):
            for node in range(t.nodes):
                here, dhere = ti.static(Boundary(View(boundary.env, env_at), boundary.sizes), View(denv, env_at))
                compute_velocities(s.cell_of(node), node, grid, dgrid, here, dhere, constants)
        else:
            ti.loop_config(serialize=True)
            for piece in range(1):
                a, b = t.box.union(grid.span, piece + 1)
                here, dhere = ti.static(Boundary(View(boundary.env, env_at), boundary.sizes), View(denv, env_at))
                for line in range(t.box.count_lines(a, b)):
                    cell = t.box.first_node(a, b, line)
                    begin = t.box.node_index(cell)
                    for k in range(b[dim - 1] - a[dim - 1]):
                        compute_velocities(cell, begin + k, grid, dgrid, here, dhere, constants)
                        cell[dim - 1] += 1

    @kernel
    def to_particles(
        x: reals, U: reals, dstates: moved_type, dU: reals, constants: constants_type, n: ti.i32, now: ti.i32,
    ):
        ti.loop_config(serialize=not variant.parallel_particles)
        for k in range(n):
            i, new = now * n + k, (now + 1) * n + k
            tx_new, tv_new, tC_new = t.g2p.jvp(
                U, dU, at.vector(x, i), at.vector(dstates.x, i), constants.h, constants.dx
            )
            at.put_vector(dstates.x, new, tx_new)
            at.put_vector(dstates.v, new, tv_new)
            at.put_matrix(dstates.C, new, tC_new)

    return SimpleNamespace(to_grid=to_grid, nodes=nodes, to_particles=to_particles)
