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

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import arrays, rows
from .arrays import flat
from .model import RigidBodies
from .nested import zeros_like


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
    def velocity(motion: ti.template(), body, r):
        """Velocity of a body's point at r."""
        return at.vec_of(motion.v, body) + rotate.cross(at.spin_of(motion.w, body), r)

    @ti.func
    def compliant(
        candidates: ti.template(),
        v_s,
        contacts: ti.template(),
        motion: ti.template(),
        params: ti.template(),
        change: ti.template(),
    ):
        for i in range(candidates.count):
            g = contacts.gap[i]
            if g < 0:
                a, b, start = candidates.body_a[i], candidates.body_b[i], i * 3 * dim
                n = at.vec_at(contacts.frame, start)
                a_a = at.vec_at(contacts.frame, start + dim) - (g / 2) * n
                a_b = at.vec_at(contacts.frame, start + 2 * dim) + (g / 2) * n
                u = velocity(motion, a, a_a) - velocity(motion, b, a_b)
                F = f.force(
                    -g,
                    n,
                    u,
                    pair_friction(params.friction, a, b),
                    params.contact_stiffness[0],
                    params.contact_damping[0],
                    v_s,
                )
                at.add_twist(change.wrench, a, F, rotate.moment(a_a, F))
                at.add_twist(change.wrench, b, -F, -rotate.moment(a_b, F))

    @ti.func
    def adj_compliant(
        candidates: ti.template(),
        v_s,
        contacts: ti.template(),
        motion: ti.template(),
        params: ti.template(),
        adj_change: ti.template(),
        adj_contacts: ti.template(),
        adj_motion: ti.template(),
        adj_params: ti.template(),
    ):
        for i in range(candidates.count):
            d = contacts.gap[i]
            if d < 0:
                a, b, start = candidates.body_a[i], candidates.body_b[i], i * 3 * dim
                n = at.vec_at(contacts.frame, start)
                a_a = at.vec_at(contacts.frame, start + dim) - (d / 2) * n
                a_b = at.vec_at(contacts.frame, start + 2 * dim) + (d / 2) * n
                u = velocity(motion, a, a_a) - velocity(motion, b, a_b)
                mu_i = pair_friction(params.friction, a, b)
                F = f.force(-d, n, u, mu_i, params.contact_stiffness[0], params.contact_damping[0], v_s)

                h_a, h_b = at.angular(adj_change.wrench, a), at.angular(adj_change.wrench, b)
                g = at.linear(adj_change.wrench, a) - at.linear(adj_change.wrench, b)
                g += rotate.cross(h_a, a_a) - rotate.cross(h_b, a_b)
                g_p, g_n, g_u, g_mu, g_k, g_c = f.adj(
                    -d, n, u, mu_i, params.contact_stiffness[0], params.contact_damping[0], v_s, g
                )
                g_a = rotate.adj_cross(h_a, F) + rotate.adj_cross(at.spin_of(motion.w, a), g_u)
                g_b = -rotate.adj_cross(h_b, F) - rotate.adj_cross(at.spin_of(motion.w, b), g_u)

                half = (g_b - g_a) / 2
                adj_contacts.gap[i] = adj_contacts.gap[i] - g_p + n.dot(half)
                at.add_vec(adj_contacts.frame, start, g_n + d * half)
                at.add_vec(adj_contacts.frame, start + dim, g_a)
                at.add_vec(adj_contacts.frame, start + 2 * dim, g_b)
                at.add_vec_of(adj_motion.v, a, g_u)
                at.add_vec_of(adj_motion.v, b, -g_u)
                at.add_spin_of(adj_motion.w, a, rotate.moment(a_a, g_u))
                at.add_spin_of(adj_motion.w, b, -rotate.moment(a_b, g_u))
                g_share = g_mu
                if b >= 0:
                    g_share = g_mu / 2
                    adj_params.friction[b] = adj_params.friction[b] + g_share
                adj_params.friction[a] = adj_params.friction[a] + g_share
                adj_params.contact_stiffness[0] = adj_params.contact_stiffness[0] + g_k
                adj_params.contact_damping[0] = adj_params.contact_damping[0] + g_c

    @ti.func
    def law_of(params: ti.template(), a, b):
        return f.Law(
            mu=pair_friction(params.friction, a, b), k=params.contact_stiffness[0], c=params.contact_damping[0]
        )

    @ti.func
    def jvp_velocity(motion: ti.template(), dmotion: ti.template(), body, r, dr):
        return velocity(dmotion, body, r) + rotate.cross(at.spin_of(motion.w, body), dr)

    @ti.func
    def jvp_compliant(
        candidates: ti.template(), v_s, contacts: ti.template(), motion: ti.template(), params: ti.template(),
        dcontacts: ti.template(), dmotion: ti.template(), dparams: ti.template(), dchange: ti.template(),
    ):  # fmt: skip
        for i in range(candidates.count):
            g, dg = contacts.gap[i], dcontacts.gap[i]
            if g < 0:
                a, b, start = candidates.body_a[i], candidates.body_b[i], i * 3 * dim
                n, dn = at.vec_at(contacts.frame, start), at.vec_at(dcontacts.frame, start)
                half, dhalf = (g / 2) * n, (dg / 2) * n + (g / 2) * dn
                a_a = at.vec_at(contacts.frame, start + dim) - half
                a_b = at.vec_at(contacts.frame, start + 2 * dim) + half
                da_a = at.vec_at(dcontacts.frame, start + dim) - dhalf
                da_b = at.vec_at(dcontacts.frame, start + 2 * dim) + dhalf
                u = velocity(motion, a, a_a) - velocity(motion, b, a_b)
                du = jvp_velocity(motion, dmotion, a, a_a, da_a) - jvp_velocity(motion, dmotion, b, a_b, da_b)
                law, dlaw = law_of(params, a, b), law_of(dparams, a, b)
                F = f.force(-g, n, u, law.mu, law.k, law.c, v_s)
                dF = f.jvp(-g, n, u, law, v_s, -dg, dn, du, dlaw)
                at.add_twist(dchange.wrench, a, dF, rotate.moment(da_a, F) + rotate.moment(a_a, dF))
                at.add_twist(dchange.wrench, b, -dF, -rotate.moment(da_b, F) - rotate.moment(a_b, dF))

    return SimpleNamespace(compliant=compliant, adj=adj_compliant, jvp=jvp_compliant)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, types = loops(real, dim), arrays.types(real)
    candidates_type = types.candidates
    distances, forces = types.part(arrays.Contacts, "gap frame"), types.part(arrays.Change, "wrench")
    velocities = types.part(arrays.Motion, "v w")
    law = types.part(arrays.Params, "contact_stiffness contact_damping friction")

    @kernel
    def forward(
        candidates: candidates_type, v_s: real, contacts: distances, motion: velocities, params: law, change: forces,
    ):  # fmt: skip
        for _ in range(1):
            f.compliant(candidates, v_s, contacts, motion, params, change)

    @kernel
    def adjoint(
        candidates: candidates_type, v_s: real, contacts: distances, motion: velocities, params: law,
        adj_change: forces, adj_contacts: distances, adj_motion: velocities, adj_params: law,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                candidates, v_s, contacts, motion, params, adj_change, adj_contacts, adj_motion, adj_params
            )  # fmt: skip

    @kernel
    def tangent(
        candidates: candidates_type, v_s: real, contacts: distances, motion: velocities, params: law,
        dcontacts: distances, dmotion: velocities, dparams: law, dchange: forces,
    ):  # fmt: skip
        for _ in range(1):
            f.jvp(candidates, v_s, contacts, motion, params, dcontacts, dmotion, dparams, dchange)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class CompliantContact(Function):
    """The wrench [n, D] of all contacts: force [N] and torque [N m] about the centre. Saved: all inputs.

    gap [M], frame [M, 3 dim], velocity [n, dim], angular_velocity [n, S], stiffness [], damping [], friction [n].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *inputs: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(*inputs)
        wrench = np.zeros((model.bodies, model.dim + model.spins), inputs[0].dtype)
        _kernels(model).forward(*_constants(model), *_records(*inputs), flat(arrays.Change(wrench)))
        return wrench

    @staticmethod
    def backward(ctx: Context, adj_wrench: Tensor) -> tuple[Any, ...]:
        inputs, adjoints = ctx.saved_tensors, zeros_like(*ctx.saved_tensors)
        forces = flat(arrays.Change(adj_wrench))
        _kernels(ctx.model).adjoint(*_constants(ctx.model), *_records(*inputs), forces, *_records(*adjoints))
        return None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        model: RigidBodies = ctx.model
        dwrench = np.zeros((model.bodies, model.dim + model.spins), tangents[0].dtype)
        values, dvalues = _records(*ctx.saved_tensors), _records(*map(np.asarray, tangents))
        _kernels(model).tangent(*_constants(model), *values, *dvalues, flat(arrays.Change(dwrench)))
        return dwrench


def _constants(model: RigidBodies) -> tuple[Any, ...]:
    return arrays.Candidates(*model.candidates.arrays(), model.candidates.count), model.slip_speed


def _records(gap: Any, frame: Any, v: Any, w: Any, k: Any, c: Any, mu: Any) -> tuple[Any, ...]:
    """Return contacts, motion and parameters, of the inputs or of their adjoints."""
    law = arrays.Params(contact_stiffness=k, contact_damping=c, friction=mu)
    return flat(arrays.Contacts(gap, frame)), flat(arrays.Motion(v=v, w=w)), flat(law)


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
