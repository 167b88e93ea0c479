"""Linear interpolation on a regular grid: the entries around a point, and the value and slopes there.

Along each axis, a point p, in units of the spacing, lies at r = p - floor(p) beyond entry floor(p). It has 2^dim
corners; bit a of the index c gives the position of corner c along axis a. Interpolation reduces pairs to single values,
axis by axis, until one is left:

    f <- f_0 + r (f_1 - f_0)          adj_f_1 = r adj_f     adj_f_0 = (1 - r) adj_f     adj_r = (f_1 - f_0) adj_f

Equal values thus give exactly that value. The slope jumps between cells; at an entry itself it is that of the cell with
higher indices. The `Axis` of a field describes where it ends: points are first clamped to between `low` and `high`, and
a field with a period is evaluated in its first one. A point that is moved by clamping has slope 0; at `low` or `high`
itself it is not moved.
"""

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

from simphys.autograd.kernels.runtime import ti

UNBOUNDED = 1e30
"""Value of -`low` and `high` for an axis without ends."""


class Axis(NamedTuple):
    """Extent of a field along an axis, in units of the spacing."""

    low: float
    high: float
    last: float
    """Largest index of the entry below a point; the smallest is -1."""
    period: float = 0.0
    """Number of entries after which the field repeats; 0 for none."""
    inv_period: float = 0.0
    """Inverse of the period; 0 for none."""


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions in `dim` dimensions; `corners` is the vector type of the 2^dim entries around a point."""
    count = 2**dim
    vec, ivec, corners = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32), ti.types.vector(count, real)

    @ti.func
    def locate(p: real, low: real, high: real, last: real, period: real, inv_period: real):
        """Locate p along an axis: the entry below, the distance from it, and 0 if p was clamped to an end, else 1."""
        inside = ti.select(p >= low, ti.select(p <= high, real(1.0), real(0.0)), real(0.0))
        q = ti.min(ti.max(p, low), high)
        below = ti.floor(q)
        # Adding half an entry protects the floor against rounding at multiples of the period.
        first = below - period * ti.floor((below + 0.5) * inv_period)
        # Clamped as an integer, so that not even a NaN leads outside the memory of the field.
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
        """Derivative of the interpolated value with respect to r."""
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
        """Adjoint of the corners: g times the weight of each. The adjoint of r is g times the slopes."""
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
        vec=vec, ivec=ivec, corners=corners, count=count, locate=locate,
        interpolate=interpolate, slopes=slopes, adj_corners=adj_corners, jvp=jvp_interpolate,
    )  # fmt: skip
