"""The effect of a rigid collider on grid nodes inside of it or in the skin around it.

With r = x - c from its centre, R its rotation, phi and n_0 signed distance and normal at R^T r (signed_distance.py):

    n = R n_0     v_c = v + omega x r     w' = contact(w), w = u - v_c (contact.py)
    u' = u + s (v_c + w' - u)             s = t^2 (3 - 2 t),  t = 1 - phi / skin, between 0 and 1

x node [m], u velocity [m/s], v velocity of the centre [m/s], omega angular velocity [rad/s]. The influence s is smooth:
1 in the body, falling to 0 across the skin, with slope 0 at both ends. Adjoint, for g = adj_u':

    adj_s = g.(v_c + w' - u)              adj_w, adj_n, adj_mu from adj_w' = s g
    adj_u = (1 - s) g + adj_w             adj_phi = -6 t (1 - t) / skin adj_s
    adj_vc = s g - adj_w                  adj_v = adj_vc     adj_omega = r x adj_vc

and for a pose that shifts by dc and rotates by dtheta (rotation.py), so that the surface at r moves by dc + dtheta x r:

    adj_e = adj_phi n + R H R^T adj_n     of e = dr - dtheta x r, H the Hessian of phi
    adj_c = -adj_e - adj_vc x omega       adj_theta = n x adj_n - r x adj_e

Source: Stomakhin et al. 2013, section 8, with the influence of Hu et al. 2018 (rigid bodies' blurred boundary).
"""

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple

from simphys.autograd import runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.numerics.element import element
from simphys.substep import per_element

from . import contact, signed_distance


class Body(NamedTuple):
    """Motion and friction of a collider, or their tangents."""

    q: Any
    """Orientation."""
    v: Any
    """Velocity [m/s]."""
    omega: Any
    """Angular velocity [rad/s]."""
    mu: Any


@functools.cache
def functions(real: Any, dim: int, shape: str, law: str) -> SimpleNamespace:
    """The element functions of a node at distance vector r from a collider's centre, valid where `is_near`."""
    sd, touch = signed_distance.functions(real, dim, shape), contact.functions(real, dim, law)

    @ti.func
    def influence(phi, skin):
        """Return s and ds/dphi."""
        t = ti.min(ti.max(1 - phi / skin, 0.0), 1.0)
        return t * t * (3 - 2 * t), -6 * t * (1 - t) / skin

    @ti.func
    def collide(u, r, body: ti.template(), size, skin):
        q, v, omega, mu = body.q, body.v, body.omega, body.mu
        R = rotation.matrix(q)
        phi, n_0, _ = sd.distance(R.transpose() @ r, size)
        s, _ = influence(phi, skin)
        v_c = v + rotation.cross(omega, r)
        return u + s * (v_c + touch.velocity(u - v_c, R @ n_0, mu) - u)

    @ti.func
    def adj_collide(u, r, body: ti.template(), size, skin, g):
        q, v, omega, mu = body.q, body.v, body.omega, body.mu
        R = rotation.matrix(q)
        x = R.transpose() @ r
        phi, n_0, kappa = sd.distance(x, size)
        s, slope = influence(phi, skin)
        n, v_c = R @ n_0, v + rotation.cross(omega, r)
        w = u - v_c
        adj_s = g.dot(v_c + touch.velocity(w, n, mu) - u)
        adj_w, adj_n, adj_mu = touch.adj(w, n, mu, s * g)
        adj_vc = s * g - adj_w
        adj_e = R @ sd.adj(x, n_0, kappa, size, slope * adj_s, R.transpose() @ adj_n)
        adj_q = rotation.adj_turn(q, rotation.moment(n, adj_n) - rotation.moment(r, adj_e))
        adj_r = adj_e + rotation.adj_cross(omega, adj_vc)
        return (1 - s) * g + adj_w, adj_r, adj_q, adj_vc, rotation.moment(r, adj_vc), adj_mu

    @ti.func
    def jvp_collide(u, r, body: ti.template(), size, skin, du, dr, dbody: ti.template()):
        q, v, omega, mu = body.q, body.v, body.omega, body.mu
        R = rotation.matrix(q)
        x = R.transpose() @ r
        phi, n_0, kappa = sd.distance(x, size)
        s, slope = influence(phi, skin)
        n, v_c = R @ n_0, v + rotation.cross(omega, r)
        dtheta = rotation.jvp_turn(q, dbody.q)
        dphi, dn_0 = sd.jvp(x, n_0, kappa, size, R.transpose() @ (dr - rotation.cross(dtheta, r)))
        dn = R @ dn_0 + rotation.cross(dtheta, n)
        dv_c = dbody.v + rotation.cross(dbody.omega, r) + rotation.cross(omega, dr)
        change = v_c + touch.velocity(u - v_c, n, mu) - u
        dchange = dv_c + touch.jvp(u - v_c, n, mu, du - dv_c, dn, dbody.mu) - du
        return du + slope * dphi * change + s * dchange

    @ti.func
    def is_near(r, q, size, skin):
        x = r  # the distance from the centre is the same in any frame
        if ti.static(shape == "plane"):
            x = rotation.matrix(q).transpose() @ r
        return sd.is_near(x, size, skin)

    return SimpleNamespace(is_near=is_near, velocity=collide, adj=adj_collide, jvp=jvp_collide)


@functools.cache
def collide(shape: str, law: str, number: int) -> Any:
    """Declare the effect of a collider, by its number, on the velocity of each node."""

    @element
    def collide(u, c, q, v, omega, mu, cell, spacing, skin, size_0, size_1, size_2):
        new, r, size = u, spacing * cell - c, ti.Vector([size_0, size_1, size_2])
        if ti.static(functions(runtime.real(), u.n, shape, law).is_near)(r, q, size, skin):
            new = ti.static(functions(runtime.real(), u.n, shape, law).velocity)(
                u, r, ti.static(Body(q, v, omega, mu)), size, skin
            )
        return new

    @collide.adjoint
    def adj_collide(u, c, q, v, omega, mu, cell, spacing, skin, size_0, size_1, size_2, adj_u):
        r, size = spacing * cell - c, ti.Vector([size_0, size_1, size_2])
        adj, adj_r, adj_q, adj_v, adj_omega, adj_mu = adj_u, 0 * c, 0 * q, 0 * v, 0 * omega, 0 * mu
        if ti.static(functions(runtime.real(), u.n, shape, law).is_near)(r, q, size, skin):
            adj, adj_r, adj_q, adj_v, adj_omega, adj_mu = ti.static(functions(runtime.real(), u.n, shape, law).adj)(
                u, r, ti.static(Body(q, v, omega, mu)), size, skin, adj_u
            )
        return adj, -adj_r, adj_q, adj_v, adj_omega, adj_mu

    @collide.tangent
    def jvp_collide(u, c, q, v, omega, mu, cell, spacing, skin, size_0, size_1, size_2, du, dc, dq, dv, domega, dmu):
        new, r, size = du, spacing * cell - c, ti.Vector([size_0, size_1, size_2])
        if ti.static(functions(runtime.real(), u.n, shape, law).is_near)(r, q, size, skin):
            body, dbody = ti.static(Body(q, v, omega, mu), Body(dq, dv, domega, dmu))
            new = ti.static(functions(runtime.real(), u.n, shape, law).jvp)(u, r, body, size, skin, du, -dc, dbody)
        return new

    entries = {
        "c": "collider_position",
        "q": "collider_rotation",
        "v": "collider_velocity",
        "omega": "collider_spin",
        "mu": "collider_friction",
    }
    return per_element(
        collide,
        over="cells",
        own={"u": "velocity"},
        entries={name: (field, number) for name, field in entries.items()},
        constant={name: name for name in ("spacing", "skin", "size_0", "size_1", "size_2")},
        index="cell",
        results={"velocity": "u"},
    )
