"""Pairs of segments, or points, with radii; and pairs of crossing edges of two boxes.

With the middles m_a, m_b and half vectors u, v of both (feature.py), m = d + m_a - m_b, d = x_a - x_b, and s, t, w from
closest.py:

    round     gap = |w| - rho_a - rho_b,  n = w / |w|
    edges     gap = n.w,  n = +-(u x v) / |u x v|                                               in space

    r_a = m_a + s u - rho_a n                                               contact point on a

Pairs with corners and edges of boxes are active only if n lies in their cones (feature.py) and neither point is at an
end; there a corner or a side takes over. Edges of two boxes must also not be parallel. They may overlap by at most DEEP
times the least depth of a side of one box in the other: otherwise edges that cross far from the surface would push
boxes through each other. The sign of their n is the one in their cones.

Adjoint, for g_gap, g_n, g_r of gap, n, r_a, with z = g_n - rho_a g_r and z' = z - n n.z:

    adj_w = g_gap n + z' / |w|,   or for edges  g_gap n  and  adj_c = z' / (n.c),  c = u x v
    adj_s, adj_t = u.(adj_w + g_r), -v.adj_w,  with lambda, mu and p as in closest.py;   f = adj_w - p
    adj_u = s (f + g_r) - lambda w + v x adj_c     adj_v = mu w - t f + adj_c x u
    adj_d = f     adj_theta_a = m_a x (f + g_r) + u x adj_u     adj_theta_b = -m_b x f + v x adj_v

Tangent, with dm_a = dtheta_a x m_a, du = dtheta_a x u and the same for b, dm = dd + dm_a - dm_b, ds and dt as in
closest.py, and dw = dm + s du + ds u - t dv - dt v:

    dgap = n.dw     dn = (1 - n n^T) dw / |w|,   or for edges  (1 - n n^T) (du x v + u x dv) / (n.c)
    dr_a = dm_a + s du + ds u - rho_a dn

At the kinks: if both points coincide (|w| = 0, to rounding), n is the first axis of the world, and constant; for ends
and parallel segments see closest.py. Source: Ericson 2005, Real-Time Collision Detection, section 5.1.9; crossing edges
as sides of the Minkowski difference: Gregorius 2013, The Separating Axis Test (GDC); the adjoint is derived here.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.rotation import cross, moment

from .closest import adj_closest, are_parallel, closest, is_inside
from .feature import CONE, ROUND, outward_components

CLOSE = 1e-6
"""|w| relative to the size of the segments, below which both points coincide."""
DEEP = 2.0
"""Largest depth of edges relative to that of sides (see above); for flush sides the two are equal up to their tilt."""


@ti.func
def coincide(m, u, v, w):
    return w.dot(w) <= CLOSE * CLOSE * (m.dot(m) + u.dot(u) + v.dot(v))


@ti.func
def round(d, a, b):
    m_a, u, v = a.middle, a.half, b.half
    m = d + m_a - b.middle
    s, t = closest(m, u, v)
    w = m + s * u - t * v
    n = w / ti.max(w.norm(), 1e-30)
    if coincide(m, u, v, w):
        n = 0.0 * m
        n[0] = 1.0
    is_active = True
    if ti.abs(a.sigma).max() + ti.abs(b.sigma).max() > 0:
        is_active = is_inside(s, u) and is_inside(t, v)
        is_active = is_active and outward_components(a, n).max() <= CONE and outward_components(b, n).min() >= -CONE
    return w.norm() - a.rho - b.rho, n, m_a + s * u - a.rho * n, is_active


@ti.func
def edges(d, a, b):
    m_a, u, v = a.middle, a.half, b.half
    m = d + m_a - b.middle
    s, t = closest(m, u, v)
    c = u.cross(v)
    n = c / ti.max(c.norm(), 1e-30)
    out_a, out_b = outward_components(a, n), outward_components(b, n)
    is_outward, is_inward = (
        out_a.max() <= CONE and out_b.min() >= -CONE,
        out_a.min() >= -CONE and out_b.max() <= CONE,
    )
    if not is_outward:
        n = -n
    gap = n.dot(m)
    is_active = (is_outward or is_inward) and not are_parallel(u, v) and gap >= DEEP * side_separation(d, a, b)
    return gap, n, m_a + s * u, is_active and is_inside(s, u) and is_inside(t, v)


@ti.func
def side_separation(d, a, b):
    """Return the separation of the boxes of two edges along side normals: negative if they overlap, at most 0."""
    centre = d + a.R @ a.o - b.R @ b.o
    relative = ti.abs(b.R.transpose() @ a.R)
    out_a = ti.abs(a.R.transpose() @ centre) - a.h - relative.transpose() @ b.h
    out_b = ti.abs(b.R.transpose() @ centre) - b.h - relative @ a.h
    return ti.min(ti.max(out_a.max(), out_b.max()), 0.0)


@ti.func
def adj_segments(kind, d, a, b, _, n, g_gap, g_n, g_r):
    """Return the adjoints of d, theta_a and theta_b."""
    m_a, m_b, u, v = a.middle, b.middle, a.half, b.half
    m = d + m_a - m_b
    s, t = closest(m, u, v)
    w, z = m + s * u - t * v, g_n - a.rho * g_r
    z -= n.dot(z) * n
    adj_w, adj_u, adj_v = g_gap * n, 0.0 * u, 0.0 * v
    if kind == ROUND:
        if not coincide(m, u, v, w):
            adj_w += z / w.norm()
    elif ti.static(n.n == 3):
        adj_c = z / n.dot(u.cross(v))
        adj_u = v.cross(adj_c)
        adj_v = adj_c.cross(u)
    lam, mu = adj_closest(u, v, s, t, u.dot(adj_w + g_r), -v.dot(adj_w))
    f = adj_w - lam * u + mu * v
    adj_u += s * (f + g_r) - lam * w
    adj_v += mu * w - t * f
    return f, moment(m_a, f + g_r) + moment(u, adj_u), moment(v, adj_v) - moment(m_b, f)


@ti.func
def jvp_segments(kind, d, a, b, _, n, dd, da, db):
    """Return the tangents of gap, n and r_a, from those of d, theta_a and theta_b."""
    m_a, m_b, u, v = a.middle, b.middle, a.half, b.half
    dm_a, du, dv = cross(da, m_a), cross(da, u), cross(db, v)
    m, dm = d + m_a - m_b, dd + dm_a - cross(db, m_b)
    s, t = closest(m, u, v)
    w, dw = m + s * u - t * v, dm + s * du - t * dv
    ds, dt = adj_closest(u, v, s, t, -dw.dot(u) - w.dot(du), dw.dot(v) + w.dot(dv))
    dw += ds * u - dt * v
    dn = 0.0 * m
    if kind == ROUND:
        if not coincide(m, u, v, w):
            dn = (dw - n.dot(dw) * n) / w.norm()
    elif ti.static(n.n == 3):
        dc = du.cross(v) + u.cross(dv)
        dn = (dc - n.dot(dc) * n) / n.dot(u.cross(v))
    return n.dot(dw), dn, dm_a + s * du + ds * u - a.rho * dn
