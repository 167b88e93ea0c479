"""A point of body a, with a radius, against a flat side: of a plane of the world, or of a box of body b.

With y = d + m_a from the centre of b to the point, d = x_a - x_b, m_a from feature.py, and n from b to a:

    plane     gap = n.y - offset - rho                                              n and the offset are constant
    box       p = R_b^T y - o_b: outside, where |p_k| > h_k for some k, q is p - clamp(p, -h, h),
              gap = |q| - rho,  n = R_b q / |q|;  inside, gap = |p_k| - h_k - rho,  n = R_b e_k sign(p_k)
              of the nearest side k
    corner    of a box against another: gap = sign_k p_k - h_k,  n = R_b e_k sign_k,  with the axis of box b and the
              sign for which the two boxes are farthest apart, or overlap least. The pair is active if p is below that
              side, |p_j| <= h_j for j != k, and not beyond the opposite one

    r_a = m_a - rho n                                                       contact point on a

The side of a corner depends on the whole boxes, since a corner lies on the edge of two sides if a box stands flush on
another. Adjoint, for adjoints g_gap, g_n, g_r of gap, n, r_a, with z = g_n - rho g_r:

    adj_y = g_gap n + (for a box, outside) R_b P (R_b^T (z - n n.z)) / |q|      P: projection on axes with q_k != 0
    adj_d = adj_y     adj_theta_a = m_a x (adj_y + g_r)     adj_theta_b = n x z - y x adj_y

Tangent, with dm_a = dtheta_a x m_a and the change dy' = dd + dm_a - dtheta_b x y of y as seen by b:

    dgap = n.dy'     dn = dtheta_b x n + (for a box, outside) (1 - n n^T) R_b P (R_b^T dy') / |q|
    dr_a = dm_a - rho dn

At the kinks: a point on the surface of a box is inside; among sides equally near, or axes equally deep, the first is
taken; sign(0) = 1. If the side changes, the gap of the box is continuous and n is not. Source: Ericson 2005, Real-Time
Collision Detection, sections 5.1.3 (closest point of a box) and 4.4.1 (separating axes); the adjoint is derived here.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.rotation import cross, moment

from .feature import BOX

EDGE = 1e-5
"""Relative tolerance beyond a side within which a corner is active: on flush sides rounding must not decide."""


@ti.func
def plane(d, a, b):
    m = a.middle
    return b.o.dot(d + m) - b.rho - a.rho, b.o, m - a.rho * b.o, True


@ti.func
def sign(x):
    return ti.select(x >= 0, 1.0, -1.0)


@ti.func
def side(depth, p):
    """Return the outward normal of the side with the least depth, in the direction of p."""
    n, least = 0.0 * p, depth.min()
    found = False
    for k in ti.static(range(p.n)):
        if depth[k] == least and not found:
            n[k] = sign(p[k])
            found = True
    return n


@ti.func
def box(d, a, b):
    m = a.middle
    p = b.R.transpose() @ (d + m) - b.o
    q = p - ti.max(-b.h, ti.min(b.h, p))
    gap = q.norm()
    n = q / ti.max(gap, 1e-30)
    if gap == 0:
        n = side(b.h - ti.abs(p), p)
        gap = -(b.h - ti.abs(p)).min()
    world = b.R @ n
    return gap - a.rho, world, m - a.rho * world, True


@ti.func
def corner(d, a, b):
    m, relative = a.middle, b.R.transpose() @ a.R
    centre = b.R.transpose() @ (d + a.R @ a.o) - b.o
    n = side(b.h + ti.abs(relative) @ a.h - ti.abs(centre), centre)
    p = b.R.transpose() @ (d + m) - b.o
    beyond = ti.abs(p) - b.h * (1 + EDGE)
    height = n.dot(p)
    under = (beyond * (1 - ti.abs(n))).max() <= 0 and height >= -ti.abs(n).dot(b.h)
    return height - ti.abs(n).dot(b.h), b.R @ n, m, under


@ti.func
def adj_flat(kind, d, a, b, gap, n, g_gap, g_n, g_r):
    """Return the adjoints of d, theta_a and theta_b."""
    m = a.middle
    y, z = d + m, g_n - a.rho * g_r
    adj_y, distance = g_gap * n, gap + a.rho
    if kind == BOX and distance > 0:
        p, adj_q = b.R.transpose() @ y - b.o, b.R.transpose() @ (z - n.dot(z) * n)
        for k in ti.static(range(d.n)):
            if ti.abs(p[k]) <= b.h[k]:
                adj_q[k] = 0.0
        adj_y += b.R @ adj_q / distance
    return adj_y, moment(m, adj_y + g_r), moment(n, z) - moment(y, adj_y)


@ti.func
def jvp_flat(kind, d, a, b, gap, n, dd, da, db):
    """Return the tangents of gap, n and r_a, from those of d, theta_a and theta_b."""
    m, dm = a.middle, cross(da, a.middle)
    y = d + m
    dy, dn, distance = dd + dm - cross(db, y), cross(db, n), gap + a.rho
    if kind == BOX and distance > 0:
        p, dq = b.R.transpose() @ y - b.o, b.R.transpose() @ dy
        for k in ti.static(range(d.n)):
            if ti.abs(p[k]) <= b.h[k]:
                dq[k] = 0.0
        across = b.R @ dq
        dn += (across - n.dot(across) * n) / distance
    return n.dot(dy), dn, dm - a.rho * dn
