"""Linear interpolation on a regular grid: which entries a point lies between, and the value and slopes there.

A point p, in units of the spacing, lies r = p - floor(p) behind entry floor(p) along each axis. Of the 2^dim entries
around it, corner c stands at bit a of c along axis a. Axis after axis, pairs become one value each, until one is left:

    f <- f_0 + r (f_1 - f_0)          adj_f_1 = r adj_f     adj_f_0 = (1 - r) adj_f     adj_r = (f_1 - f_0) adj_f

so that equal values give just that value. The slope jumps from cell to cell: at an entry itself it is that of the cell
of higher indices, which floor names. Along each axis the frame of a field tells where it ends: points are moved to
between `low` and `high` first, and a field that repeats after `period` entries is entered in the first of these. A
point that is moved has no slope; at `low` or `high` itself it is not moved.
"""

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

from simphys.autograd.kernels.runtime import ti

UNBOUNDED = 1e30
"""`low` and `high` of an axis without ends."""


class Axis(NamedTuple):
    """The frame of a field along an axis."""

    low: float
    high: float
    last: float
    """The highest entry that a point may lie behind; the lowest is -1."""
    period: float = 0.0
    """0 for none."""
    inv_period: float = 0.0


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions in `dim` dimensions; `corners` [2^dim] are the entries around a point."""
    count = 2**dim
    vec, ivec, corners = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32), ti.types.vector(count, real)

    @ti.func
    def enter(p: real, low: real, high: real, last: real, period: real, inv_period: real):
        """Along an axis: the entry below, how far behind it p lies, and 1 where p was not moved to an end, else 0."""
        inside = ti.select(p >= low, ti.select(p <= high, real(1.0), real(0.0)), real(0.0))
        q = ti.min(ti.max(p, low), high)
        below = ti.floor(q)
        # Half an entry keeps the quotient clear of rounding at multiples of the period.
        first = below - period * ti.floor((below + 0.5) * inv_period)
        # As an integer, so that not even a velocity that is no number leads out of memory.
        return ti.max(ti.min(ti.cast(first, ti.i32), ti.cast(last, ti.i32)), -1), q - below, inside

    @ti.func
    def interpolate(f: corners, r: vec) -> real:
        left = f
        for a in ti.static(range(dim)):
            for c in ti.static(range(count >> (a + 1))):
                left[c] = left[2 * c] + r[a] * (left[2 * c + 1] - left[2 * c])
        return left[0]

    @ti.func
    def slopes(f: corners, r: vec) -> vec:
        """The derivative by r."""
        found = vec(0.0)
        for axis in ti.static(range(dim)):
            left = f
            for a in ti.static(range(dim)):
                for c in ti.static(range(count >> (a + 1))):
                    rise = left[2 * c + 1] - left[2 * c]
                    left[c] = rise if ti.static(a == axis) else left[2 * c] + r[a] * rise
            found[axis] = left[0]
        return found

    @ti.func
    def adj_corners(r: vec, g: real) -> corners:
        """g times the weight of each corner; the adjoint of r is g times the slopes."""
        adj_f = corners(0.0)
        adj_f[0] = g
        for back in ti.static(range(dim)):
            a = ti.static(dim - 1 - back)
            for before in ti.static(range(count >> (a + 1))):
                c = ti.static((count >> (a + 1)) - 1 - before)
                whole = adj_f[c]
                adj_f[2 * c + 1] = r[a] * whole
                adj_f[2 * c] = whole - r[a] * whole
        return adj_f

    @ti.func
    def jvp_interpolate(f: corners, r: vec, df: corners, dr: vec) -> real:
        return interpolate(df, r) + slopes(f, r).dot(dr)

    return SimpleNamespace(
        vec=vec, ivec=ivec, corners=corners, count=count, enter=enter,
        interpolate=interpolate, slopes=slopes, adj_corners=adj_corners, jvp=jvp_interpolate,
    )  # fmt: skip
