"""The fused loops over the lines of a grid in its layout, for all batch members; see `layout` and `advance`.

Each field is read from an offset ..._at, a multiple of BLOCK. ..._stride is the distance in memory between batch
members; for `kappa` it is 0 if all members share one.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import advance, differences
from .layout import BLOCK, INDEX, STRIDE


@dataclass(frozen=True)
class Variant:
    """Constants fixed when the loops are compiled."""

    real: Any
    dim: int
    order: int
    layers: bool
    """True if `extra` holds further terms of the curvature, such as those of absorbing layers."""
    parallel: bool
    spread: int
    """Loop iterations for each piece, one of which does the work, see `grid_loops.SPREAD`."""


# fmt: off
@functools.cache
@no_type_check
def kernels(variant: Variant) -> SimpleNamespace:
    """Compile the loops described at the top of this module."""
    real, dim, spread, reach = variant.real, variant.dim, variant.spread, variant.order // 2
    reals = ti.types.ndarray(dtype=real, ndim=1)
    blocks_of = ti.types.ndarray(dtype=ti.types.vector(BLOCK, real), ndim=1)
    table = ti.types.vector(BLOCK, real)
    f, diff = advance.functions(real), differences.functions(real, variant.order)

    @ti.func
    def laplace(u: ti.template(), i, s1, s2) -> real:
        """Return dx^2 laplace u."""
        total = diff.second(u, i, 1)
        if ti.static(dim > 1):
            total += diff.second(u, i, s2 & STRIDE)
        if ti.static(dim > 2):
            total += diff.second(u, i, s1 & STRIDE)
        return total

    @ti.func
    def total_curvature(u: ti.template(), extra: ti.template(), i, j, s1, s2) -> real:
        k = laplace(u, i, s1, s2)
        if ti.static(variant.layers):
            k += extra[j]
        return k

    @kernel
    def curvature(
        u: reals, new: blocks_of, extra: reals,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32,
    ):
        """Compute dx^2 laplace u, plus `extra`, for one batch member."""
        ti.loop_config(serialize=not variant.parallel)
        for r in range(pieces * spread):
            if r % spread == 0:
                piece = r // spread
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    i = origin + line // lines2 * s1 + line % lines2 * s2
                    for k in range(blocks):
                        t, at = table(0.0), (i + k * BLOCK) & INDEX
                        for n in range(BLOCK):
                            t[n] = total_curvature(u, extra, at + n, at + n, s1, s2)
                        new[at // BLOCK] = t

    @kernel
    def leap(
        before: reals, u: reals, new: blocks_of, kappa: reals, extra: reals,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32, u_stride: ti.i32, kappa_stride: ti.i32, extra_stride: ti.i32,
        before_at: ti.i32, u_at: ti.i32, new_at: ti.i32,
    ):
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * pieces * spread):
            if r % spread == 0:
                member, piece = r // spread // pieces, r // spread % pieces
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    i = origin + line // lines2 * s1 + line % lines2 * s2
                    j = member * u_stride + i
                    for k in range(blocks):
                        t, m = table(0.0), k * BLOCK
                        here, there = (u_at + j + m) & INDEX, (before_at + j + m) & INDEX
                        c, e = (member * kappa_stride + i + m) & INDEX, (member * extra_stride + i + m) & INDEX
                        for n in range(BLOCK):
                            K = total_curvature(u, extra, here + n, e + n, s1, s2)
                            t[n] = f.leap(u[here + n], before[there + n], kappa[c + n], K)
                        new[(new_at + j) // BLOCK + k] = t

    @kernel
    def adj_log_courant(
        u: reals, w: reals, total: blocks_of, sums: reals, extra: reals,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32, u_stride: ti.i32, w_stride: ti.i32, extra_stride: ti.i32, u_at: ti.i32, w_at: ti.i32,
    ):
        """Add to l = adj log kappa, from u before a step and w after it; `sums` is the same array as `total`."""
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * pieces * spread):
            if r % spread == 0:
                member, piece = r // spread // pieces, r // spread % pieces
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    i = origin + line // lines2 * s1 + line % lines2 * s2
                    j = member * extra_stride + i
                    for k in range(blocks):
                        t, m = table(0.0), i + k * BLOCK
                        here, there = (member * u_stride + u_at + m) & INDEX, (member * w_stride + w_at + m) & INDEX
                        e = (j + k * BLOCK) & INDEX
                        for n in range(BLOCK):
                            K = total_curvature(u, extra, here + n, e + n, s1, s2)
                            t[n] = sums[e + n] + f.adj_log_courant(K, w[there + n])
                        total[e // BLOCK] = t

    @kernel
    def jvp_kappa(
        u: reals, new: blocks_of, dnew: reals, dkappa: reals, extra: reals,
        B: ti.i32, pieces: ti.i32, lines: ti.i32, s1: ti.i32, s2: ti.i32, lines2: ti.i32, origin: ti.i32,
        blocks: ti.i32, u_stride: ti.i32, kappa_stride: ti.i32, extra_stride: ti.i32, new_stride: ti.i32,
        u_at: ti.i32, new_at: ti.i32,
    ):
        """Add the effect of dkappa to the tangent of the new height; `dnew` is the same array as `new`."""
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * pieces * spread):
            if r % spread == 0:
                member, piece = r // spread // pieces, r // spread % pieces
                for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):
                    i = origin + line // lines2 * s1 + line % lines2 * s2
                    j = member * new_stride + new_at + i
                    for k in range(blocks):
                        t, m = table(0.0), i + k * BLOCK
                        here, e = (member * u_stride + u_at + m) & INDEX, (member * extra_stride + m) & INDEX
                        at, there = (member * kappa_stride + m) & INDEX, (j + k * BLOCK) & INDEX
                        for n in range(BLOCK):
                            K = total_curvature(u, extra, here + n, e + n, s1, s2)
                            t[n] = dnew[there + n] + f.jvp_kappa(K, dkappa[at + n])
                        new[there // BLOCK] = t

    @kernel
    def fill_halo(
        u: reals, B: ti.i32, u_stride: ti.i32, origin: ti.i32, count: ti.i32, stride: ti.i32,
        n1: ti.i32, s1: ti.i32, n2: ti.i32, s2: ti.i32, low: ti.i32, high: ti.i32, at: ti.i32,
    ):
        """Fill the halo beyond both sides of an axis, see `numerics.boundary`; `low` and `high` are codes of `KINDS`.

        n1, n2 count the cells along the other axes, and s1, s2 are their strides.
        """
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * n1 * n2):
            member, i1, i2 = r // (n1 * n2), r // n2 % n1, r % n2
            first = member * u_stride + at + origin + i1 * s1 + i2 * s2
            last = first + (count - 1) * stride
            for k in ti.static(range(reach)):
                below, above = real(0.0), real(0.0)
                if low == 1:
                    below = u[first + k * stride]
                elif low == 2:
                    below = u[last - k * stride]
                if high == 1:
                    above = u[last - k * stride]
                elif high == 2:
                    above = u[first + k * stride]
                if ti.static(k > 0):
                    if low == 0:
                        below = -u[first + (k - 1) * stride]
                    if high == 0:
                        above = -u[last - (k - 1) * stride]
                u[first - (k + 1) * stride] = below
                u[last + (k + 1) * stride] = above

    return SimpleNamespace(
        curvature=curvature, leap=leap, adj_log_courant=adj_log_courant, jvp_kappa=jvp_kappa, fill_halo=fill_halo
    )


KINDS = {"zero": 0, "free": 1, "periodic": 2, "absorbing": 3}
"""Codes of the boundary kinds in kernels."""
