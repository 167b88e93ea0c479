"""Linear interpolation between the 2^dim corners of a cell, as an element function in any dimension.

Bit a of the index c gives the position of corner c along axis a; r is the offset from corner 0, from 0 to 1. Pairs
become single values, axis by axis, until one is left:

    f <- f_0 + r (f_1 - f_0)          adj_f_1 = r adj_f     adj_f_0 = (1 - r) adj_f     adj_r = (f_1 - f_0) adj_f

Equal values thus give exactly that value.
"""

from simphys.autograd.kernels.runtime import ti

from .element import element


@element
def interpolate(f, r):
    left = f
    for a in ti.static(range(r.n)):
        for c in ti.static(range(f.n >> (a + 1))):
            left[c] = left[2 * c] + r[a] * (left[2 * c + 1] - left[2 * c])
    return left[0]


@interpolate.adjoint
def adj_interpolate(f, r, adj):
    adj_f = 0 * f
    adj_f[0] = adj
    for back in ti.static(range(r.n)):
        for before in ti.static(range(f.n >> (r.n - back))):
            a = ti.static(r.n - 1 - back)
            c = ti.static((f.n >> (a + 1)) - 1 - before)
            whole = adj_f[c]
            adj_f[2 * c + 1] = r[a] * whole
            adj_f[2 * c] = whole - r[a] * whole
    return adj_f, adj * slopes(f, r)


@interpolate.tangent
def jvp_interpolate(f, r, df, dr):
    return interpolate(df, r) + slopes(f, r).dot(dr)


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
