"""Kernels of the fused step: the element functions of the nested sub-steps in three loops, one kernel each.

1. `to_grid`, over particles, piece by piece: deform, respond, scatter mass and momentum to the grid of the piece.
2. `nodes`: sum the grids of all pieces, in order; compute velocities.
3. `to_particles`: gather velocities, move.

On a GPU a piece is a single particle, and all add to one grid by atomics, in no fixed order. The adjoint is in
fused_adjoint.py, the tangent in fused_tangent.py. A single kernel for all three loops would save some microseconds per
step, but take several times as long to compile.
"""

import functools
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import View, kernel
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import memory

from . import actuate, arrays, box, constitutive, deformation, g2p, grid, p2g, transfer
from .arrays import Boundary


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Constants fixed when a step is compiled."""

    real: Any
    cells: tuple[int, ...]
    laws: tuple[str, ...]
    width: int
    """Number of coefficients of a particle."""
    has_hidden: bool
    """True if a law has a hidden variable."""
    actuated: bool
    """True if actuators have controls."""
    margin: int
    walls: tuple[str, ...]
    shapes: tuple[str, ...]
    contacts: tuple[str, ...]
    single: bool
    """True if there is only one grid."""
    atomic: bool
    """True if each particle is a piece and all add to one grid by atomics: on a GPU, unless deterministic."""
    parallel_particles: bool = False
    parallel_nodes: bool = False
    block: int = 16
    """Number of particles that a loop processes at a time, see `shared_functions`."""
    spread: int = 1
    """Loop iterations for each piece, one of which does the work, see `engine.SPREAD`."""
    adj_mass: bool = False
    """True if the adjoint of the masses is wanted; the next fields say so for other inputs."""
    adj_volume: bool = False
    adj_coefficients: bool = False
    adj_control: bool = False
    adj_environment: bool = False

    @property
    def dim(self) -> int:
        return len(self.cells)

    @property
    def forward(self) -> "Variant":
        """The same variant without adjoints, so that forward kernels are compiled only once."""
        return replace(
            self, adj_mass=False, adj_volume=False, adj_coefficients=False, adj_control=False, adj_environment=False
        )


def parts_of_step(variant: Variant) -> SimpleNamespace:
    """Return the types of vectors, and the functions of the sub-steps."""
    real, dim, cells = variant.real, variant.dim, variant.cells
    return SimpleNamespace(
        vec=ti.types.vector(dim, real),
        mat=ti.types.matrix(dim, dim, real),
        row=ti.types.vector(variant.width, real),
        ivec=ti.types.vector(dim, ti.i32),
        at=memory.functions(real, dim),
        box=box.functions(real, dim, cells),
        deformation=deformation.functions(real, dim),
        law=constitutive.functions(real, dim, variant.laws),
        actuate=actuate.functions(real, dim),
        transfer=transfer.functions(real, dim, cells),
        p2g=p2g.functions(real, dim, cells),
        g2p=g2p.functions(real, dim, cells),
        grid=grid.functions(
            real, dim, cells, variant.margin, variant.walls, variant.shapes, variant.contacts
        ),
        nodes=functools.reduce(lambda a, b: a * b, cells),
    )  # fmt: skip


# fmt: off
@functools.cache
@no_type_check
def shared_functions(variant: Variant) -> SimpleNamespace:
    """Functions of a particle or a node that forward, adjoint and tangent share.

    A loop that writes to arrays is not vectorized, as any of these may alias its inputs. Particles are therefore
    processed in blocks. One loop computes, and writes to a local table of `block` entries for each result; another
    copies the table to arrays.
    """
    t = parts_of_step(variant)
    real, vec, mat, row, at, dim = variant.real, t.vec, t.mat, t.row, t.at, variant.dim

    @ti.func
    def read_coefficients(c: ti.template(), k: ti.i32) -> row:
        found = row(0.0)
        for j in ti.static(range(variant.width)):
            found[j] = c[k * variant.width + j]
        return found

    @ti.func
    def read_law(law: ti.template(), k: ti.i32) -> ti.i32:
        found = 0
        if ti.static(len(variant.laws) > 1):
            found = law[k]
        return found

    @ti.func
    def read_hidden(q: ti.template(), i: ti.i32) -> real:
        found = real(0.0)
        if ti.static(variant.has_hidden):
            found = q[i]
        return found

    @ti.func
    def respond(
        C: mat, states: ti.template(), material: ti.template(), h: real, i: ti.i32, k: ti.i32, control_at: ti.i32,
    ):
        """Return the trial deformation, F', q' and tau of particle k, whose state is entry i of its arrays."""
        trial = t.deformation.deform(C, at.matrix(states.F, i), h)
        F_new, q_new, tau = t.law.respond(
            read_law(material.law, k), trial, read_hidden(states.q, i), read_coefficients(material.c, k)
        )
        if ti.static(variant.actuated):
            tau += t.actuate.stress(
                F_new, at.vector(material.fibre, k), material.control[control_at + material.act[k]]
            )
        return trial, F_new, q_new, tau

    @ti.func
    def node_velocity(
        cell, node: ti.i32, total: ti.template(), U: ti.template(), boundary: ti.template(), constants: ti.template(),
    ):
        p = vec(0.0)
        for d in ti.static(range(dim)):
            p[d] = total[node * (dim + 1) + d]
        m = total[node * (dim + 1) + dim]
        at.put_vector(U, node, t.grid.velocity(cell, m, p, boundary, constants))

    @ti.func
    def cell_of(node: ti.i32):
        """Return the index of a node along each axis."""
        cell, rest = t.ivec(0), node
        for reverse in ti.static(range(dim)):
            cell[dim - 1 - reverse] = rest % variant.cells[dim - 1 - reverse]
            rest = rest // variant.cells[dim - 1 - reverse]
        return cell

    return SimpleNamespace(
        read_coefficients=read_coefficients, read_law=read_law, read_hidden=read_hidden, respond=respond,
        node_velocity=node_velocity, cell_of=cell_of,
    )


@functools.cache
@no_type_check
def kernels(variant: Variant) -> SimpleNamespace:
    """The loops of a step of one batch member, from row `now` of its states to the next row.

    All arrays are flat; states are [rows, n, ...]. This step's controls begin at control_at, its environment at env_at.
    See arrays.py for the records.
    """
    t, s, types = parts_of_step(variant), shared_functions(variant), arrays.types(variant.real)
    real, reals, at, dim = variant.real, types.reals, t.at, variant.dim
    spread, L, size = variant.spread, variant.block, variant.dim + 1
    results = ti.types.vector((2 * dim + dim * dim) * L, real)
    table, places = ti.types.vector(t.transfer.width * L, real), ti.types.vector(L, ti.i32)
    deformed = ti.types.vector((dim * dim + 1) * L, real)
    particles_type, material_type, boundary_type = types.particles, types.material, types.boundary
    moved_type, constants_type = types.moved, types.constants
    pieces_type, grid_type = types.part(arrays.Grid, "G span"), types.part(arrays.Grid, "G total U span")

    @kernel
    def to_grid(
        states: particles_type, material: material_type, grid: pieces_type, constants: constants_type, n: ti.i32,
        pieces: ti.i32, now: ti.i32, control_at: ti.i32,
    ):
        """Compute the grids and boxes of all pieces, and F and q of the row after `now`."""
        if ti.static(variant.atomic):
            for k in range(t.nodes * size):
                grid.G[k] = 0.0
        ti.loop_config(serialize=not variant.parallel_particles)
        for r in range(pieces * spread):
            if r % spread == 0:
                piece = r // spread
                begin, end, G_at = n * piece // pieces, n * (piece + 1) // pieces, 0
                if ti.static(not variant.atomic):
                    G_at = piece * t.nodes * size
                    t.box.find(grid.span, piece, states.x, now * n + begin, now * n + end, 1.0 / constants.dx)
                    t.box.clear(grid.span, piece, grid.G, G_at, size)
                for number in range((end - begin + L - 1) // L):
                    low = begin + number * L
                    count = ti.min(L, end - low)
                    shares, nodes, new = table(0.0), places(0), deformed(0.0)
                    for lane in range(count):
                        k, i = low + lane, now * n + low + lane
                        C_i, m = at.matrix(states.C, i), material.mass[k]
                        _, F_new, q_new, tau = s.respond(C_i, states, material, constants.h, i, k, control_at)
                        node, share = t.p2g.compute_shares(
                            at.vector(states.x, i), at.vector(states.v, i), C_i, tau, m, material.volume[k],
                            constants.h, constants.dx,
                        )
                        nodes[lane] = node
                        for e in range(t.transfer.width):
                            shares[e * L + lane] = share[e]
                        for d in ti.static(range(dim * dim)):
                            new[d * L + lane] = F_new[d // dim, d % dim]
                        new[dim * dim * L + lane] = q_new
                    for lane in range(count):
                        share = t.transfer.table(0.0)
                        for e in range(t.transfer.width):
                            share[e] = shares[e * L + lane]
                        t.p2g.scatter(grid.G, G_at, nodes[lane], share, material.mass[low + lane], variant.atomic)
                    for lane in range(count):
                        i = (now + 1) * n + low + lane
                        for d in ti.static(range(dim * dim)):
                            states.F[i * dim * dim + d] = new[d * L + lane]
                        if ti.static(variant.has_hidden):
                            states.q[i] = new[dim * dim * L + lane]

    @kernel
    def nodes(
        boundary: boundary_type, grid: grid_type, constants: constants_type, pieces: ti.i32, parts: ti.i32,
        env_at: ti.i32,
    ):
        """Compute total and U."""
        if ti.static(variant.atomic):
            for node in range(t.nodes):
                here = ti.static(Boundary(View(boundary.env, env_at), boundary.sizes))
                s.node_velocity(s.cell_of(node), node, grid.total, grid.U, here, constants)
        else:
            ti.loop_config(serialize=not variant.parallel_nodes)
            for r in range(parts * spread):
                if r % spread == 0:
                    part = r // spread
                    a, b = t.box.union(grid.span, pieces)
                    here = ti.static(Boundary(View(boundary.env, env_at), boundary.sizes))
                    lines = t.box.count_lines(a, b)
                    for line in range(lines * part // parts, lines * (part + 1) // parts):
                        if ti.static(not variant.single):
                            t.box.sum_line(grid.span, pieces, a, b, line, grid.G, t.nodes * size, grid.total, size)
                        cell = t.box.first_node(a, b, line)
                        first = t.box.node_index(cell)
                        for k in range(b[dim - 1] - a[dim - 1]):
                            s.node_velocity(cell, first + k, grid.total, grid.U, here, constants)
                            cell[dim - 1] += 1

    @kernel
    def to_particles(
        states: moved_type, U: reals, constants: constants_type, nan: real, n: ti.i32, pieces: ti.i32, now: ti.i32,
    ):
        """Compute x, v and C of the row after `now`."""
        ti.loop_config(serialize=not variant.parallel_particles)
        for r in range(pieces * spread):
            if r % spread == 0:
                piece = r // spread
                begin, end = n * piece // pieces, n * (piece + 1) // pieces
                for number in range((end - begin + L - 1) // L):
                    low = now * n + begin + number * L
                    count = ti.min(L, now * n + end - low)
                    moved = results(0.0)
                    for lane in range(count):
                        x_new, v_new, C_new = t.g2p.gather(
                            U, at.vector(states.x, low + lane), constants.h, constants.dx, nan
                        )
                        for d in ti.static(range(dim)):
                            moved[d * L + lane], moved[(dim + d) * L + lane] = x_new[d], v_new[d]
                        for d in ti.static(range(dim * dim)):
                            moved[(2 * dim + d) * L + lane] = C_new[d // dim, d % dim]
                    for lane in range(count):
                        new = low + n + lane
                        for d in ti.static(range(dim)):
                            states.x[new * dim + d] = moved[d * L + lane]
                            states.v[new * dim + d] = moved[(dim + d) * L + lane]
                        for d in ti.static(range(dim * dim)):
                            states.C[new * dim * dim + d] = moved[(2 * dim + d) * L + lane]

    return SimpleNamespace(to_grid=to_grid, nodes=nodes, to_particles=to_particles)
