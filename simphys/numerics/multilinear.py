"""Linear interpolation on a regular grid: the 2^dim entries around a point, and the value and slopes there.

Along each axis, a point p, in units of the spacing, lies at r = p - floor(p) beyond entry floor(p). Bit a of the
index c gives the position of corner c along axis a. Pairs become single values, axis by axis, until one is left:

    f <- f_0 + r (f_1 - f_0)          adj_f_1 = r adj_f     adj_f_0 = (1 - r) adj_f     adj_r = (f_1 - f_0) adj_f

Equal values thus give exactly that value. The slope jumps between cells; at an entry itself it is that of the cell with
higher indices. The `Axis` of a field describes where it ends: points are first clamped to between `low` and `high`, and
a field with a period is evaluated in its first one. A point that is moved by clamping has slope 0; at `low` or `high`
itself it is not moved.
"""

from typing import NamedTuple

from simphys.autograd.kernels.runtime import ti

from .element import element
from .forward_mode import tangent_of

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


@ti.func
def locate(p, low, high, last, period, inv_period):
    """Locate p along an axis: the entry below, the distance from it, and 0 if p was clamped to an end, else 1."""
    inside = ti.select(p >= low, ti.select(p <= high, 1.0, 0.0), 0.0)
    q = ti.min(ti.max(p, low), high)
    below = ti.floor(q)
    # Adding half an entry protects the floor against rounding at multiples of the period.
    first = below - period * ti.floor((below + 0.5) * inv_period)
    # Clamped as an integer, so that not even a NaN leads outside the memory of the field.
    return ti.max(ti.min(ti.cast(first, ti.i32), ti.cast(last, ti.i32)), -1), q - below, inside


@element
def interpolate(f, r):
    left = f
    for a in ti.static(range(r.n)):
        for c in ti.static(range(f.n >> (a + 1))):
            left[c] = left[2 * c] + r[a] * (left[2 * c + 1] - left[2 * c])
    return left[0]


@interpolate.adjoint
def adj_interpolate(f, r, adj):
    return adj_corners(f, r, adj), adj * slopes(f, r)


jvp_interpolate = tangent_of(interpolate, "f", "r")


@ti.func
def adj_corners(f, r, adj):
    """Adjoint of the corners, `adj` times the weight of each, in a vector like f."""
    adj_f = 0 * f
    adj_f[0] = adj
    for back in ti.static(range(r.n)):
        for before in ti.static(range(f.n >> (r.n - back))):
            a = ti.static(r.n - 1 - back)
            c = ti.static((f.n >> (a + 1)) - 1 - before)
            whole = adj_f[c]
            adj_f[2 * c + 1] = r[a] * whole
            adj_f[2 * c] = whole - r[a] * whole
    return adj_f


@ti.func
def slopes(f, r):
    """Derivative of the interpolated value with respect to r."""
    found = 0 * r
    for axis in ti.static(range(r.n)):
        left = f
        for a in ti.static(range(r.n)):
            for c in ti.static(range(f.n >> (a + 1))):
                rise = left[2 * c + 1] - left[2 * c]
                left[c] = rise if ti.static(a == axis) else left[2 * c] + r[a] * rise
        found[axis] = left[0]
    return found
