"""The loops of absorbing layers over the lines of a slab, for all batch members.

A slab has a layout of its own, with a halo of zeros on either side, twice as wide as the differences reach. Its first
cell is number m0 of the grid's layout. s1, s2 are the strides between lines of the slab, and M1, M2 the strides between
the same lines in the grid. Line l is at l // line_step % width along the layer's axis, unless lines run along that
axis. In that case the slab's layout begins and ends at blocks of the grid. In cells outside of the layer a, b and
`mask` are 0; `mask` is 1 inside. Each array is read from an offset ..._at, a multiple of BLOCK; ..._stride is the
distance between batch members.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import differences, layer
from .layout import BLOCK, INDEX, STRIDE


@dataclass(frozen=True)
class Variant:
    """Constants fixed when the loops are compiled."""

    real: Any
    order: int
    on_last_axis: bool
    """True if the layer's axis is the last one, so that lines run along it."""
    parallel: bool
    spread: int
    """Loop iterations for each piece, one of which does the work, see `grid_loops.SPREAD`."""


# fmt: off
@functools.cache
@no_type_check
def kernels(variant: Variant) -> SimpleNamespace:
    """Compile the loops described at the top of this module."""
    real, on_last_axis, spread = variant.real, variant.on_last_axis, variant.spread
    reals = ti.types.ndarray(dtype=real, ndim=1)
    blocks_of = ti.types.ndarray(dtype=ti.types.vector(BLOCK, real), ndim=1)
    table = ti.types.vector(BLOCK, real)
    f, diff = layer.functions(real, variant.order), differences.functions(real, variant.order)

    @ti.func
    def axis_position(line_step, width, line) -> ti.i32:
        """Return the position of a line along the layer's axis; 0 if the line runs along that axis."""
        return 0 if ti.static(on_last_axis) else (line // line_step % width) & INDEX

    @ti.func
    def profile_at(profile: ti.template(), first, k, n) -> real:
        """Read a profile at entry n of block k of a line."""
        return profile[((k * BLOCK) & INDEX) + n] if ti.static(on_last_axis) else profile[first]

    @ti.func
    def mask_outside(mask: ti.template(), k, n, value: real) -> real:
        """Return `value` inside of the slab, 0 where the line extends beyond it."""
        return mask[((k * BLOCK) & INDEX) + n] * value if ti.static(on_last_axis) else value

    @kernel
    def slope_memory(
        u: reals, psi: reals, new: blocks_of, a: reals, b: reals,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32, m0: ti.i32, M1: ti.i32, M2: ti.i32, stride: ti.i32, line_step: ti.i32, width: ti.i32,
        u_stride: ti.i32, psi_stride: ti.i32, u_at: ti.i32, psi_at: ti.i32, new_at: ti.i32,
    ):
        """Compute psi'."""
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * pieces * spread):
            if r % spread == 0:
                member, piece = r // spread // pieces, r // spread % pieces
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    i = member * u_stride + u_at + m0 + line // lines2 * M1 + line % lines2 * M2
                    j = member * psi_stride + origin + line // lines2 * s1 + line % lines2 * s2
                    first = axis_position(line_step, width, line)
                    for k in range(blocks):
                        t, here, there = table(0.0), (i + k * BLOCK) & INDEX, (psi_at + j + k * BLOCK) & INDEX
                        for n in range(BLOCK):
                            a_n, b_n = profile_at(a, first, k, n), profile_at(b, first, k, n)
                            Du = diff.first(u, here + n, stride & STRIDE)
                            t[n] = f.slope_memory(psi[there + n], a_n, b_n, Du)
                        new[(new_at + j) // BLOCK + k] = t

    @kernel
    def curvature_memory(
        u: reals, psi: reals, zeta: reals, new: blocks_of, extra: reals, extra_blocks: blocks_of,
        a: reals, b: reals, mask: reals,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32, m0: ti.i32, M1: ti.i32, M2: ti.i32, stride: ti.i32, line_step: ti.i32, width: ti.i32,
        own_stride: ti.i32, u_stride: ti.i32, psi_stride: ti.i32, extra_stride: ti.i32,
        u_at: ti.i32, psi_at: ti.i32, zeta_at: ti.i32, new_at: ti.i32,
    ):
        """Compute zeta' and add to `extra`; psi holds psi', and own_stride is that of the layer's axis in the slab."""
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * pieces * spread):
            if r % spread == 0:
                member, piece = r // spread // pieces, r // spread % pieces
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    i = m0 + line // lines2 * M1 + line % lines2 * M2
                    j = member * psi_stride + origin + line // lines2 * s1 + line % lines2 * s2
                    first = axis_position(line_step, width, line)
                    for k in range(blocks):
                        t, e, m = table(0.0), table(0.0), j + k * BLOCK
                        here, there = (i + k * BLOCK) & INDEX, (member * extra_stride + i + k * BLOCK) & INDEX
                        p, z = (psi_at + m) & INDEX, (zeta_at + m) & INDEX
                        seen = (member * u_stride + u_at + here) & INDEX
                        for n in range(BLOCK):
                            a_n, b_n = profile_at(a, first, k, n), profile_at(b, first, k, n)
                            Dpsi = mask_outside(mask, k, n, diff.first(psi, p + n, own_stride & STRIDE))
                            D2u = diff.second(u, seen + n, stride & STRIDE)
                            t[n] = f.curvature_memory(zeta[z + n], a_n, b_n, D2u, Dpsi)
                            e[n] = extra[there + n] + (Dpsi + t[n])
                        new[(new_at + j) // BLOCK + k] = t
                        extra_blocks[there // BLOCK] = e

    @kernel
    def adj_curvature_memory(
        w: reals, adj_zeta: blocks_of, zeta: reals, q: blocks_of, s: blocks_of, a: reals, b: reals, mask: reals,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32, m0: ti.i32, M1: ti.i32, M2: ti.i32, line_step: ti.i32, width: ti.i32,
        w_stride: ti.i32, psi_stride: ti.i32, w_at: ti.i32, start: ti.i32,
    ):
        """Compute adj_zeta, q and s for w = adj_extra; `zeta` is the same array as adj_zeta, read before written."""
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * pieces * spread):
            if r % spread == 0:
                member, piece = r // spread // pieces, r // spread % pieces
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    i = member * w_stride + w_at + m0 + line // lines2 * M1 + line % lines2 * M2
                    j = member * psi_stride + start + origin + line // lines2 * s1 + line % lines2 * s2
                    first = axis_position(line_step, width, line)
                    for k in range(blocks):
                        t, u, v = table(0.0), table(0.0), table(0.0)
                        here, there = (i + k * BLOCK) & INDEX, (j + k * BLOCK) & INDEX
                        for n in range(BLOCK):
                            a_n, b_n = profile_at(a, first, k, n), profile_at(b, first, k, n)
                            g = mask_outside(mask, k, n, w[here + n])
                            t[n], u[n], v[n] = f.adj_curvature_memory(zeta[there + n], a_n, b_n, g)
                        adj_zeta[j // BLOCK + k] = t
                        q[j // BLOCK + k] = u
                        s[j // BLOCK + k] = v

    @kernel
    def adj_slope_memory(
        s: reals, adj_psi: blocks_of, psi: reals, r_: blocks_of, a: reals, b: reals,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32, line_step: ti.i32, width: ti.i32, own_stride: ti.i32, psi_stride: ti.i32, start: ti.i32,
    ):
        """Compute adj_psi and r; `psi` is the same array as adj_psi, read before written."""
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * pieces * spread):
            if r % spread == 0:
                member, piece = r // spread // pieces, r // spread % pieces
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    j = member * psi_stride + start + origin + line // lines2 * s1 + line % lines2 * s2
                    first = axis_position(line_step, width, line)
                    for k in range(blocks):
                        t, u, there = table(0.0), table(0.0), (j + k * BLOCK) & INDEX
                        for n in range(BLOCK):
                            a_n, b_n = profile_at(a, first, k, n), profile_at(b, first, k, n)
                            t[n], u[n] = f.adj_slope_memory(
                                psi[there + n], a_n, b_n, diff.first(s, there + n, own_stride & STRIDE)
                            )
                        adj_psi[j // BLOCK + k] = t
                        r_[j // BLOCK + k] = u

    @kernel
    def adj_height(
        q: reals, r_: reals, extra: reals, extra_blocks: blocks_of,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32, m0: ti.i32, M1: ti.i32, M2: ti.i32, own_stride: ti.i32,
        psi_stride: ti.i32, extra_stride: ti.i32, start: ti.i32,
    ):
        """Add adj_u to `extra`, in the slab's cells and in cells of the grid within reach of its differences.

        `origin` and m0 belong to the first of these cells.
        """
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * pieces * spread):
            if r % spread == 0:
                member, piece = r // spread // pieces, r // spread % pieces
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    i = member * extra_stride + m0 + line // lines2 * M1 + line % lines2 * M2
                    j = member * psi_stride + start + origin + line // lines2 * s1 + line % lines2 * s2
                    for k in range(blocks):
                        e, here, there = table(0.0), (i + k * BLOCK) & INDEX, (j + k * BLOCK) & INDEX
                        for n in range(BLOCK):
                            D2q = diff.second(q, there + n, own_stride & STRIDE)
                            Dr = diff.first(r_, there + n, own_stride & STRIDE)
                            e[n] = extra[here + n] + f.adj_height(D2q, Dr)
                        extra_blocks[here // BLOCK] = e

    return SimpleNamespace(
        slope_memory=slope_memory, curvature_memory=curvature_memory,
        adj_curvature_memory=adj_curvature_memory, adj_slope_memory=adj_slope_memory, adj_height=adj_height,
    )
