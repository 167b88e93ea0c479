"""Quaternions q = (w, x, y, z), with Hamilton's product; a unit quaternion rotates r to q r q*.

The exponential of half a rotation vector phi (axis times angle a [rad]) rotates by phi:

    e(phi) = (cos(a/2), k phi),   k = sin(a/2) / a

Adjoint, for (g_w, g) = adj_e and k' = (dk/da) / a:   adj_phi = k g + (k' phi.g - k/2 g_w) phi. Both k and k' are even
in a, and are evaluated as series for small a, since e is smooth at phi = 0. Adjoint of a product r = p q, for
g = adj_r:

    adj_p = g q*     adj_q = p* g

Source: Sola 2017, Quaternion kinematics for the error-state Kalman filter, sections 1 and 2.
"""

from simphys.autograd.kernels.runtime import ti

from .forward_mode import tangent_of

SMALL = 0.1
"""Value of a^2 below which k and k' are series; there, six terms err by 1e-14, and the quotients by 10 roundings."""


@ti.func
def product(p, q):
    return ti.Vector([
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    ])  # fmt: skip


@ti.func
def conjugate(q):
    return ti.Vector([q[0], -q[1], -q[2], -q[3]])


@ti.func
def adj_product(p, q, g):
    return product(g, conjugate(q)), product(conjugate(p), g)


jvp_product = tangent_of(product, "p", "q")


@ti.func
def vector_part(q):
    return ti.Vector([q[1], q[2], q[3]])


@ti.func
def with_scalar(w, v):
    return ti.Vector([w, v[0], v[1], v[2]])


@ti.func
def series(b):
    """Compute cos(a/2), k and k' from b = a^2."""
    c = 1 - b / 8 * (1 - b / 48 * (1 - b / 120 * (1 - b / 224 * (1 - b / 360))))
    k = 0.5 - b / 48 * (1 - b / 80 * (1 - b / 168 * (1 - b / 288 * (1 - b / 440))))
    slope = -(1 - b / 40 * (1 - b / 112 * (1 - b / 216 * (1 - b / 352)))) / 24
    if b > SMALL:
        a = ti.sqrt(b)
        c = ti.cos(a / 2)
        k = ti.sin(a / 2) / a
        slope = (c / 2 - k) / b
    return c, k, slope


@ti.func
def exponential(phi):
    c, k, _ = series(phi.dot(phi))
    return with_scalar(c, k * phi)


@ti.func
def adj_exponential(phi, g):
    _, k, slope = series(phi.dot(phi))
    along = vector_part(g)
    return k * along + (slope * phi.dot(along) - k / 2 * g[0]) * phi


jvp_exponential = tangent_of(exponential, "phi")
