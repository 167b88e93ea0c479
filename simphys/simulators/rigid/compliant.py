"""Contacts as forces: a stiff spring with damping where features overlap, and friction that is smooth in the slip.

At depth p = -gap > 0, with u the velocity of a relative to b at the contact, u_n = n.u and u_t = u - u_n n, the force

    f = f_n (n - mu y)      f_n = k p max(1 - c u_n, 0)      y = u_t / (|u_t|^2 + v_s^2)^(1/2)         [N]

acts on a, and -f on b, at a point midway between both surfaces: a_a = r_a - gap n / 2 from the centre of a,
a_b = r_b + gap n / 2 from that of b. A single point conserves angular momentum. k stiffness [N/m], c damping [s/m].
v_s, the model's `slip_speed` [m/s], is the slip at which friction has 1/sqrt(2) of its limit mu f_n; below it, bodies
creep. mu is the mean of both bodies' friction; against the world it is the body's own.

Damping is proportional to depth, so that the force starts and ends at 0. For any k, m and shape, an impact at speed v
rebounds at e v, where

    G(v) = G(-e v),   G(v) = c v - ln(1 + c v);      e = 1 - 2/3 c v + O((c v)^2)

Without damping, a contact of mass m lasts pi (m/k)^(1/2). Derivatives through an impact need shorter steps than speeds,
since the depth in the first step of contact matters: an accuracy of 1 % takes about 700 steps per contact. Speeds are
then accurate to 1e-5. Adjoint, for g = adj_f, s = 1 - c u_n:

    adj_f_n = g.(n - mu y)     adj_y = -mu f_n g     adj_mu = -f_n g.y     adj_u_t = (adj_y - y y.adj_y) / (...)^(1/2)
    adj_k = p s adj_f_n     adj_c = -k p u_n adj_f_n     adj_u_n = -k p c adj_f_n     adj_p = k s adj_f_n
    adj_u = adj_u_t + (adj_u_n - n.adj_u_t) n     adj_n = f_n g + (adj_u_n - n.adj_u_t) u - u_n adj_u_t

with g = g_a - g_b + h_a x a_a - h_b x a_b, where (g_a, h_a) and (g_b, h_b) are the adjoints of force and torque on a
and b. The arms get adj_a_a = f x h_a + adj_u x w_a, and a_b the opposite. Tangent:

    du_n = dn.u + n.du      du_t = du - du_n n - u_n dn      dy = (du_t - y y.du_t) / (...)^(1/2)
    df_n = (k dp + p dk) s - k p (u_n dc + c du_n)           df = df_n (n - mu y) + f_n (dn - y dmu - mu dy)

At the kinks p = 0 and 1 = c u_n, beyond
which a contact would pull, there is no contact and the derivative is 0.
Source: Hunt and Crossley 1975, Coefficient of Restitution Interpreted as Damping in Vibroimpact, Journal of Applied
Mechanics 42, with exponent 1.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from . import rows
from .arrays import SETTING


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return the element functions of one contact in `dim` dimensions."""
    vec, Law = ti.types.vector(dim, real), ti.types.struct(mu=real, k=real, c=real)

    @ti.func
    def decompose(p: real, n: vec, u: vec, c: real, v_s: real):
        """1 - c u_n, or 0 without a repulsive force; y; and the denominator of y."""
        u_n = n.dot(u)
        slip = u - u_n * n
        root = ti.sqrt(slip.dot(slip) + v_s * v_s)
        s = real(0.0)
        if p > 0:
            s = ti.max(1 - c * u_n, 0.0)
        return s, slip / root, root

    @ti.func
    def force(p: real, n: vec, u: vec, mu: real, k: real, c: real, v_s: real) -> vec:
        s, y, _ = decompose(p, n, u, c, v_s)
        return (k * p * s) * (n - mu * y)

    @ti.func
    def adj_force(p: real, n: vec, u: vec, mu: real, k: real, c: real, v_s: real, g: vec):
        """Return the adjoints of p, n, u, mu, k and c."""
        s, y, root = decompose(p, n, u, c, v_s)
        adj_p, adj_n, adj_u, adj_mu, adj_k, adj_c = real(0.0), vec(0.0), vec(0.0), real(0.0), real(0.0), real(0.0)
        if s > 0:
            u_n, f_n, adj_f_n = n.dot(u), k * p * s, g.dot(n - mu * y)
            adj_slip = (-mu * f_n / root) * (g - y.dot(g) * y)
            adj_un = -k * p * c * adj_f_n - n.dot(adj_slip)
            adj_p = k * s * adj_f_n
            adj_n = f_n * g + adj_un * u - u_n * adj_slip
            adj_u = adj_slip + adj_un * n
            adj_mu = -f_n * g.dot(y)
            adj_k = p * s * adj_f_n
            adj_c = -k * p * u_n * adj_f_n
        return adj_p, adj_n, adj_u, adj_mu, adj_k, adj_c

    @ti.func
    def jvp_force(p: real, n: vec, u: vec, law: Law, v_s: real, dp: real, dn: vec, du: vec, dlaw: Law) -> vec:
        s, y, root = decompose(p, n, u, law.c, v_s)
        dforce = vec(0.0)
        if s > 0:
            u_n, du_n = n.dot(u), dn.dot(u) + n.dot(du)
            dslip = du - du_n * n - u_n * dn
            dy = (dslip - y.dot(dslip) * y) / root
            df_n = (law.k * dp + p * dlaw.k) * s - law.k * p * (u_n * dlaw.c + law.c * du_n)
            dforce = df_n * (n - law.mu * y) + (law.k * p * s) * (dn - dlaw.mu * y - law.mu * dy)
        return dforce

    return SimpleNamespace(force=force, adj=adj_force, jvp=jvp_force, Law=Law)


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all candidates; see rows.py. Forces are added to `wrench`."""
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), functions(real, dim)

    @ti.func
    def pair_friction(mu: ti.template(), a, b) -> real:
        own = mu[a]
        if b >= 0:
            own = (own + mu[b]) / 2
        return own

    @ti.func
    def velocity(x: ti.template(), body, r):
        """Velocity of a body's point at r."""
        return at.vec_of(x.velocity, body) + rotate.cross(at.spin_of(x.angular_velocity, body), r)

    @ti.func
    def compliant(model: ti.template(), x: ti.template()):
        at.clear(x.wrench, model.bodies)
        for i in range(model.candidates.count):
            g = x.gap[i]
            if g < 0:
                a, b, start = model.candidates.body_a[i], model.candidates.body_b[i], i * 3 * dim
                n = at.vec_at(x.frame, start)
                a_a = at.vec_at(x.frame, start + dim) - (g / 2) * n
                a_b = at.vec_at(x.frame, start + 2 * dim) + (g / 2) * n
                u = velocity(x, a, a_a) - velocity(x, b, a_b)
                F = f.force(
                    -g,
                    n,
                    u,
                    pair_friction(x.friction, a, b),
                    x.contact_stiffness[0],
                    x.contact_damping[0],
                    model.slip_speed,
                )
                at.add_twist(x.wrench, a, F, rotate.moment(a_a, F))
                at.add_twist(x.wrench, b, -F, -rotate.moment(a_b, F))

    @ti.func
    def adj_compliant(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for i in range(model.candidates.count):
            d = x.gap[i]
            if d < 0:
                a, b, start = model.candidates.body_a[i], model.candidates.body_b[i], i * 3 * dim
                n = at.vec_at(x.frame, start)
                a_a = at.vec_at(x.frame, start + dim) - (d / 2) * n
                a_b = at.vec_at(x.frame, start + 2 * dim) + (d / 2) * n
                u = velocity(x, a, a_a) - velocity(x, b, a_b)
                mu_i = pair_friction(x.friction, a, b)
                F = f.force(-d, n, u, mu_i, x.contact_stiffness[0], x.contact_damping[0], model.slip_speed)

                h_a, h_b = at.angular(adj_x.wrench, a), at.angular(adj_x.wrench, b)
                g = at.linear(adj_x.wrench, a) - at.linear(adj_x.wrench, b)
                g += rotate.cross(h_a, a_a) - rotate.cross(h_b, a_b)
                g_p, g_n, g_u, g_mu, g_k, g_c = f.adj(
                    -d, n, u, mu_i, x.contact_stiffness[0], x.contact_damping[0], model.slip_speed, g
                )
                g_a = rotate.adj_cross(h_a, F) + rotate.adj_cross(at.spin_of(x.angular_velocity, a), g_u)
                g_b = -rotate.adj_cross(h_b, F) - rotate.adj_cross(at.spin_of(x.angular_velocity, b), g_u)

                half = (g_b - g_a) / 2
                adj_x.gap[i] = adj_x.gap[i] - g_p + n.dot(half)
                at.add_vec(adj_x.frame, start, g_n + d * half)
                at.add_vec(adj_x.frame, start + dim, g_a)
                at.add_vec(adj_x.frame, start + 2 * dim, g_b)
                at.add_vec_of(adj_x.velocity, a, g_u)
                at.add_vec_of(adj_x.velocity, b, -g_u)
                at.add_spin_of(adj_x.angular_velocity, a, rotate.moment(a_a, g_u))
                at.add_spin_of(adj_x.angular_velocity, b, -rotate.moment(a_b, g_u))
                g_share = g_mu
                if b >= 0:
                    g_share = g_mu / 2
                    adj_x.friction[b] = adj_x.friction[b] + g_share
                adj_x.friction[a] = adj_x.friction[a] + g_share
                adj_x.contact_stiffness[0] = adj_x.contact_stiffness[0] + g_k
                adj_x.contact_damping[0] = adj_x.contact_damping[0] + g_c

    @ti.func
    def law_of(x: ti.template(), a, b):
        return f.Law(mu=pair_friction(x.friction, a, b), k=x.contact_stiffness[0], c=x.contact_damping[0])

    @ti.func
    def jvp_velocity(x: ti.template(), dx: ti.template(), body, r, dr):
        return velocity(dx, body, r) + rotate.cross(at.spin_of(x.angular_velocity, body), dr)

    @ti.func
    def jvp_compliant(model: ti.template(), x: ti.template(), dx: ti.template()):
        at.clear(dx.wrench, model.bodies)
        for i in range(model.candidates.count):
            g, dg = x.gap[i], dx.gap[i]
            if g < 0:
                a, b, start = model.candidates.body_a[i], model.candidates.body_b[i], i * 3 * dim
                n, dn = at.vec_at(x.frame, start), at.vec_at(dx.frame, start)
                half, dhalf = (g / 2) * n, (dg / 2) * n + (g / 2) * dn
                a_a = at.vec_at(x.frame, start + dim) - half
                a_b = at.vec_at(x.frame, start + 2 * dim) + half
                da_a = at.vec_at(dx.frame, start + dim) - dhalf
                da_b = at.vec_at(dx.frame, start + 2 * dim) + dhalf
                u = velocity(x, a, a_a) - velocity(x, b, a_b)
                du = jvp_velocity(x, dx, a, a_a, da_a) - jvp_velocity(x, dx, b, a_b, da_b)
                law, dlaw = law_of(x, a, b), law_of(dx, a, b)
                F = f.force(-g, n, u, law.mu, law.k, law.c, model.slip_speed)
                dF = f.jvp(-g, n, u, law, model.slip_speed, -dg, dn, du, dlaw)
                at.add_twist(dx.wrench, a, dF, rotate.moment(da_a, F) + rotate.moment(a_a, dF))
                at.add_twist(dx.wrench, b, -dF, -rotate.moment(da_b, F) - rotate.moment(a_b, dF))

    return SimpleNamespace(forward=compliant, adjoint=adj_compliant, tangent=jvp_compliant)


CompliantContact = routine(
    "CompliantContact",
    loops,
    Fields(
        given=("gap", "frame", "velocity", "angular_velocity", "contact_stiffness", "contact_damping", "friction"),
        results=("wrench",),
    ),
    SETTING,
    of_model=("bodies", "candidates", "slip_speed"),
)
"""Wrench [n, D] of all contacts: force [N] and torque [N m] about the centre."""
