"""Closest points of two segments.

With m from the middle of segment b to that of a, half vectors u, v [m], and s, t in [-1, 1], the vector

    w(s, t) = m + s u - t v

leads from a point of b to a point of a. Where |w| is minimal, each of s, t is at an end or free: w.u = 0 or w.v = 0. A
point is a segment with half vector 0, with s = 0 (or t = 0). For segments that are parallel to within PARALLEL, the
middle of their common part is taken.

Adjoint: from adj_s, adj_t to m, u, v. The free ones of lambda, mu solve the linear system

    (u.u  -u.v) (lambda)   (adj_s)
    (-u.v  v.v) (mu    ) = (adj_t),    p = lambda u - mu v

of the free rows, the others are 0. By the implicit function theorem,

    adj_m = -p     adj_u = -s p - lambda w     adj_v = t p + mu w

In the tangent, ds and dt solve the same system with -(dw_0.u + w.du) and dw_0.v + w.dv in place of adj_s and adj_t,
where dw_0 = dm + s du - t dv.

At the kinks: an end that is just reached counts as held; for parallel segments the derivative of the closest points
does not exist, so t is held and only s is free.
Source: Ericson 2005, Real-Time Collision Detection, section 5.1.9; parallel segments and the adjoint are derived here.
"""

from simphys.autograd.kernels.runtime import ti

PARALLEL = 1e-6
"""Square of the sine of the angle below which segments are parallel."""
TINY = 1e-30
"""Smallest divisor, in place of a squared length of 0."""


@ti.func
def are_parallel(u, v):
    """Return True for parallel segments, and if one is a point."""
    return u.dot(u) * v.dot(v) - u.dot(v) ** 2 <= PARALLEL * u.dot(u) * v.dot(v)


@ti.func
def closest(m, u, v):
    """Return s and t."""
    uu, vv, uv, mu, mv = u.dot(u), v.dot(v), u.dot(v), m.dot(u), m.dot(v)
    start = 0.0
    if not are_parallel(u, v):
        start = (uv * mv - vv * mu) / (uu * vv - uv * uv)
    elif uu * vv > 0:
        centre, reach = -mv / uv, vv / ti.abs(uv)
        start = (ti.max(-1.0, centre - reach) + ti.min(1.0, centre + reach)) / 2
    t = clamp((mv + clamp(start) * uv) / ti.max(vv, TINY))
    return clamp((t * uv - mu) / ti.max(uu, TINY)), t


@ti.func
def clamp(s):
    return ti.max(-1.0, ti.min(1.0, s))


@ti.func
def is_inside(s, u):
    """Return True if s is not at an end of its segment; always True for a point."""
    return ti.abs(s) < 1 or u.dot(u) == 0


@ti.func
def adj_closest(u, v, s, t, adj_s, adj_t):
    """Return lambda and mu."""
    uu, vv, uv = u.dot(u), v.dot(v), u.dot(v)
    lam, mu = 0.0, 0.0
    if is_inside(s, u):
        lam = adj_s / ti.max(uu, TINY)
    if is_inside(t, v):
        if not is_inside(s, u) or uu == 0:
            mu = adj_t / ti.max(vv, TINY)
        elif not are_parallel(u, v):
            det = uu * vv - uv * uv
            lam = (vv * adj_s + uv * adj_t) / det
            mu = (uu * adj_t + uv * adj_s) / det
    return lam, mu
