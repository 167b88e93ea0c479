"""Rows of the contacts under the impulse law: which count in a step of length h, when, and what they ask for.

With the distance g before the step and the speed of its change, u = n.(v_a + w_a x r_a - v_b - w_b x r_b) after the
forces of the step and u_0 before them, a contact counts where g < h max(-u, v_rest), v_rest a threshold. Its rows are n
and the tangents t, with moments r x n, r x t (rows.py), its limit is mu, and

                an impact, u < -v_rest                      at rest, else
    target      max(0, -e u_tau + (1 - s) (u - u_0))        min(-g / h, v_rest)             0 of the tangents
    time        tau = -g / u where h u < g, else -h         0

with the restitution e. An impact is at the time tau of the step, when the features meet, with the speed they have then,
u_tau = u_0 + s (u - u_0), s = tau / h; what is left of the step's forces acts afterwards. So its impulse is that of
-(1 + e) u_tau, and positions follow the new velocities from tau on. At the step's start, with the speed u, values would
err by O(h), but derivatives through an impact would be wrong however small h is, and by whatever means they are
computed: with e = 1 a ball is back the later, and the faster, the higher it starts. tau < 0 where features overlap a
little: they met before the step.

At rest features touch at the end of the step, g + h u = 0, or later: bodies land, stand and slide without a gap, on
both sides of g = 0 alike, where there is no kink. Those count, too, that only other impulses of the step would bring
together. A shift by tau would not do here: where several contacts of a body change each other's speeds it can
overshoot, and a box would rock. Overlaps are taken back by h v_rest a step at most.

n and g are those before the step: a body that moves farther than a part of its size in a step can be held up by
another one that it would just have missed. Steps have to be short against h v = size / 4.

The tangents of n = (x, y) are (-y, x); of n = (x, y, z), with s = sign(z), a = -1 / (s + z):

    t1 = (1 + s a x^2, s a x y, -s x)      t2 = (a x y, s + a y^2, -y)

(Duff et al. 2017, Building an Orthonormal Basis, Revisited). Friction does not depend on which tangents they are. A
pair has the mean of both bodies' friction, and of their restitution; against the world a body has its own.

Adjoint, for m = r x l: adj_r = l x adj_m, adj_l = adj_m x r. Of an impact, with g_t = adj_target where that is not 0:

    adj_tau -= (1 + e) (u - u_0) / h g_t      adj_g = -adj_tau / u      adj_u = g / u^2 adj_tau
    adj_u += (1 - (1 + e) s) g_t      adj_u_0 = -(1 + e) (1 - s) g_t      adj_e = -u_tau g_t

where tau = -h without the two that come from it; at rest adj_g = -adj_target / h below the bound. At kinks:
g = h max(-u, v_rest) is no contact, u = -v_rest is at rest, a target of 0, h u = g and -g / h = v_rest count as the
constant.

Source: Stewart and Trinkle 1996, An Implicit Time-Stepping Scheme for Rigid Body Dynamics; the time of impact: Hu et
al. 2020, DiffTaichi, section 4.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from ..autograd import Context, Function, Tensor, kernel, runtime
from ..autograd.runtime import ti
from ..math import rotation
from . import rows
from .model import RigidBodies
from .rows import flat


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions of a contact."""
    vec, mat = ti.types.vector(dim, real), ti.types.matrix(dim, dim, real)

    @ti.func
    def basis(n: vec) -> mat:
        """n and the tangents, as rows."""
        T = mat(0.0)
        if ti.static(dim == 2):
            T = mat([[n[0], n[1]], [-n[1], n[0]]])
        else:
            x, y, z, s = n[0], n[1], n[2], real(1.0)
            if z < 0:
                s = -1.0
            a = -1.0 / (s + z)
            T = mat([[x, y, z], [1 + s * a * x * x, s * a * x * y, -s * x], [a * x * y, s + a * y * y, -y]])
        return T

    @ti.func
    def adj_basis(n: vec, g: mat) -> vec:
        adj_n = vec(0.0)
        if ti.static(dim == 2):
            adj_n = vec(g[0, 0] + g[1, 1], g[0, 1] - g[1, 0])
        else:
            x, y, z, s = n[0], n[1], n[2], real(1.0)
            if z < 0:
                s = -1.0
            a = -1.0 / (s + z)
            cross = s * g[1, 1] + g[2, 0]
            by_a = s * x * x * g[1, 0] + x * y * cross + y * y * g[2, 1]
            adj_n[0] = g[0, 0] + 2 * s * a * x * g[1, 0] + a * y * cross - s * g[1, 2]
            adj_n[1] = g[0, 1] + a * x * cross + 2 * a * y * g[2, 1] - g[2, 2]
            adj_n[2] = g[0, 2] + a * a * by_a
        return adj_n

    @ti.func
    def impact(gap: real, u: real, u_0: real, h: real, e: real, v_rest: real):
        """Target of the normal row, and time of impact."""
        target, time = ti.min(-gap / h, v_rest), real(0.0)
        if u < -v_rest:
            time = -h
            if h * u < gap:
                time = -gap / u
            s = time / h
            target = ti.max(0.0, -e * (u_0 + s * (u - u_0)) + (1 - s) * (u - u_0))
        return target, time

    @ti.func
    def adj_impact(
        gap: real, u: real, u_0: real, h: real, e: real, v_rest: real, target: real, time: real,
        adj_target: real, adj_time: real,
    ):  # fmt: skip
        """By gap, u, u_0 and e."""
        adj_gap, adj_u, adj_u_0, adj_e = real(0.0), real(0.0), real(0.0), real(0.0)
        if u < -v_rest:
            s, g_tau = time / h, adj_time
            if target > 0:
                g_tau -= (1 + e) * (u - u_0) / h * adj_target
                adj_u = (1 - (1 + e) * s) * adj_target
                adj_u_0 = -(1 + e) * (1 - s) * adj_target
                adj_e = -(u_0 + s * (u - u_0)) * adj_target
            if h * u < gap:
                adj_gap = -g_tau / u
                adj_u += gap / (u * u) * g_tau
        elif -gap / h < v_rest:
            adj_gap = -adj_target / h
        return adj_gap, adj_u, adj_u_0, adj_e

    return SimpleNamespace(basis=basis, adj_basis=adj_basis, impact=impact, adj_impact=adj_impact)


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """`contact_rows` and its adjoint, see rows.py; `bodies` are those of all rows, with the candidates' behind NJ."""
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), functions(real, dim)
    vec, mat, spins = at.vec, ti.types.matrix(dim, dim, real), at.spins
    W = dim + 2 * spins

    @ti.func
    def of_pair(values: ti.template(), values0, a, b) -> real:
        value = values[values0 + a]
        if b >= 0:
            value = 0.5 * (value + values[values0 + b])
        return value

    @ti.func
    def add_of_pair(values: ti.template(), values0, a, b, change: real):
        share = change
        if b >= 0:
            share = 0.5 * change
            values[values0 + b] = values[values0 + b] + share
        values[values0 + a] = values[values0 + a] + share

    @ti.func
    def contact_rows(
        bodies: ti.template(), NJ, M, h, v_rest, gap: ti.template(), gap0, frame: ti.template(), frame0,
        twist: ti.template(), twist0, v: ti.template(), v0, w: ti.template(), w0,
        friction: ti.template(), friction0, restitution: ti.template(), restitution0,
        row: ti.template(), row0, target: ti.template(), target0, limit: ti.template(), limit0,
        time: ti.template(), time0, active: ti.template(), active0,
    ):  # fmt: skip
        """What belongs to contacts that do not count is not written, but for `active`."""
        for c in range(M):
            a, b, at_c = bodies[2 * (NJ + c)], bodies[2 * (NJ + c) + 1], frame0 + c * 3 * dim
            n, r_a, r_b = at.vec_at(frame, at_c), at.vec_at(frame, at_c + dim), at.vec_at(frame, at_c + 2 * dim)
            v_a = at.linear(twist, twist0, a) + rotate.cross(at.angular(twist, twist0, a), r_a)
            v_b = at.linear(twist, twist0, b) + rotate.cross(at.angular(twist, twist0, b), r_b)
            u = n.dot(v_a - v_b)
            counts = real(0.0)
            if gap[gap0 + c] < h * ti.max(-u, v_rest):
                counts = 1.0
                T = f.basis(n)
                for j in ti.static(range(dim)):
                    for e in ti.static(range(dim)):
                        row[row0 + (c * dim + j) * W + e] = T[j, e]
                    target[target0 + c * dim + j] = 0.0
                for j in range(dim):
                    r = row0 + (c * dim + j) * W
                    along = at.vec_at(row, r)
                    at.put_spin(row, r + dim, rotate.moment(r_a, along))
                    at.put_spin(row, r + dim + spins, rotate.moment(r_b, along))
                first = row0 + c * dim * W
                u_0 = n.dot(at.vec_of(v, v0, a) - at.vec_of(v, v0, b))
                u_0 += at.spin_at(row, first + dim).dot(at.spin_of(w, w0, a))
                u_0 -= at.spin_at(row, first + dim + spins).dot(at.spin_of(w, w0, b))
                e_pair = of_pair(restitution, restitution0, a, b)
                wanted, tau = f.impact(gap[gap0 + c], u, u_0, h, e_pair, v_rest)
                target[target0 + c * dim] = wanted
                limit[limit0 + c] = of_pair(friction, friction0, a, b)
                time[time0 + c] = tau
            active[active0 + c] = counts

    @ti.func
    def adj_contact_rows(
        bodies: ti.template(), NJ, M, h, v_rest, gap: ti.template(), gap0, frame: ti.template(), frame0,
        twist: ti.template(), twist0, v: ti.template(), v0, w: ti.template(), w0,
        restitution: ti.template(), restitution0,
        row: ti.template(), row0, target: ti.template(), target0, time: ti.template(), time0,
        active: ti.template(), active0,
        adj_row: ti.template(), adj_row0, adj_target: ti.template(), adj_target0, adj_limit: ti.template(), adj_limit0,
        adj_time: ti.template(), adj_time0,
        adj_gap: ti.template(), adj_gap0, adj_frame: ti.template(), adj_frame0, adj_twist: ti.template(), adj_twist0,
        adj_v: ti.template(), adj_v0, adj_w: ti.template(), adj_w0,
        adj_friction: ti.template(), adj_friction0, adj_restitution: ti.template(), adj_restitution0,
    ):  # fmt: skip
        """adj_row is used up."""
        for c in range(M):
            if active[active0 + c] > 0.5:
                a, b, at_c = bodies[2 * (NJ + c)], bodies[2 * (NJ + c) + 1], frame0 + c * 3 * dim
                n, r_a, r_b = at.vec_at(frame, at_c), at.vec_at(frame, at_c + dim), at.vec_at(frame, at_c + 2 * dim)
                r, g = row0 + c * dim * W, adj_row0 + c * dim * W
                m_a, m_b = at.spin_at(row, r + dim), at.spin_at(row, r + dim + spins)
                u_v, u_a, u_b = at.linear(twist, twist0, a), at.angular(twist, twist0, a), at.angular(twist, twist0, b)
                u_v -= at.linear(twist, twist0, b)
                o_v, o_a, o_b = at.vec_of(v, v0, a) - at.vec_of(v, v0, b), at.spin_of(w, w0, a), at.spin_of(w, w0, b)
                adj_g, adj_u, adj_o, adj_e = f.adj_impact(
                    gap[gap0 + c], n.dot(u_v) + m_a.dot(u_a) - m_b.dot(u_b), n.dot(o_v) + m_a.dot(o_a) - m_b.dot(o_b),
                    h, of_pair(restitution, restitution0, a, b), v_rest, target[target0 + c * dim], time[time0 + c],
                    adj_target[adj_target0 + c * dim], adj_time[adj_time0 + c],
                )  # fmt: skip
                adj_gap[adj_gap0 + c] = adj_gap[adj_gap0 + c] + adj_g
                add_of_pair(adj_restitution, adj_restitution0, a, b, adj_e)
                add_of_pair(adj_friction, adj_friction0, a, b, adj_limit[adj_limit0 + c])
                at.add_twist(adj_twist, adj_twist0, a, adj_u * n, adj_u * m_a)
                at.add_twist(adj_twist, adj_twist0, b, -adj_u * n, -adj_u * m_b)
                at.add_vec_of(adj_v, adj_v0, a, adj_o * n)
                at.add_vec_of(adj_v, adj_v0, b, -adj_o * n)
                at.add_spin_of(adj_w, adj_w0, a, adj_o * m_a)
                at.add_spin_of(adj_w, adj_w0, b, -adj_o * m_b)
                at.add_vec(adj_row, g, adj_u * u_v + adj_o * o_v)
                at.add_spin(adj_row, g + dim, adj_u * u_a + adj_o * o_a)
                at.add_spin(adj_row, g + dim + spins, -adj_u * u_b - adj_o * o_b)
                adj_r_a, adj_r_b = vec(0.0), vec(0.0)
                for j in range(dim):
                    along, g_j = at.vec_at(row, r + j * W), g + j * W
                    adj_m_a, adj_m_b = at.spin_at(adj_row, g_j + dim), at.spin_at(adj_row, g_j + dim + spins)
                    adj_r_a += rotate.adj_cross(adj_m_a, along)
                    adj_r_b += rotate.adj_cross(adj_m_b, along)
                    at.add_vec(adj_row, g_j, rotate.cross(adj_m_a, r_a) + rotate.cross(adj_m_b, r_b))
                G = mat(0.0)
                for j, e in ti.static(ti.ndrange(dim, dim)):
                    G[j, e] = adj_row[g + j * W + e]
                at_g = adj_frame0 + c * 3 * dim
                at.add_vec(adj_frame, at_g, f.adj_basis(n, G))
                at.add_vec(adj_frame, at_g + dim, adj_r_a)
                at.add_vec(adj_frame, at_g + 2 * dim, adj_r_b)

    return SimpleNamespace(contact_rows=contact_rows, adj_contact_rows=adj_contact_rows)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """The loops of the nested sub-step."""
    f = loops(real, dim)
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        bodies: ints, NJ: ti.i32, M: ti.i32, h: real, v_rest: real, gap: reals, frame: reals, twist: reals,
        v: reals, w: reals, friction: reals, restitution: reals, row: reals, target: reals, limit: reals,
        time: reals, active: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.contact_rows(
                bodies, NJ, M, h, v_rest, gap, 0, frame, 0, twist, 0, v, 0, w, 0, friction, 0, restitution, 0,
                row, 0, target, 0, limit, 0, time, 0, active, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        bodies: ints, NJ: ti.i32, M: ti.i32, h: real, v_rest: real, gap: reals, frame: reals, twist: reals,
        v: reals, w: reals, restitution: reals, row: reals, target: reals, time: reals, active: reals,
        adj_row: reals, adj_target: reals, adj_limit: reals, adj_time: reals, adj_gap: reals, adj_frame: reals,
        adj_twist: reals, adj_v: reals, adj_w: reals, adj_friction: reals, adj_restitution: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj_contact_rows(
                bodies, NJ, M, h, v_rest, gap, 0, frame, 0, twist, 0, v, 0, w, 0, restitution, 0,
                row, 0, target, 0, time, 0, active, 0,
                adj_row, 0, adj_target, 0, adj_limit, 0, adj_time, 0, adj_gap, 0, adj_frame, 0, adj_twist, 0,
                adj_v, 0, adj_w, 0, adj_friction, 0, adj_restitution, 0,
            )  # fmt: skip

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class ContactRows(Function):
    """Rows [dim M, W], targets [dim M], limits [M], times [M] and which count [M] (no gradient). Saved: inputs, rows.

    Inputs: gap [M], frame [M, 3 dim], twist [n, D], velocity [n, dim] and angular_velocity [n, S] before the forces,
    friction [n], restitution [n].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *inputs: Tensor) -> tuple[Any, ...]:
        M, dim, dtype = model.contacts, model.dim, inputs[0].dtype
        shapes = ((M * dim, dim + 2 * model.spins), (M * dim,), (M,), (M,), (M,))
        row, target, limit, time, active = outputs = [np.zeros(shape, dtype) for shape in shapes]
        _kernels(model).forward(model.row_bodies, *_constants(model), *flat(*inputs, *outputs))
        ctx.model = model
        ctx.save_for_backward(*inputs, row, target, time, active)
        counts = Tensor(active)
        ctx.mark_non_differentiable(counts)
        return row, target, limit, time, counts

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor, *adjoints: Tensor) -> tuple[Any, ...]:
        *inputs, row, target, time, active = ctx.saved_tensors
        *moving, _, restitution = inputs
        found = [np.zeros(each.shape, adj_row.dtype) for each in inputs]
        _kernels(ctx.model).adjoint(
            ctx.model.row_bodies, *_constants(ctx.model), *flat(*moving, restitution, row, target, time, active),
            *flat(adj_row.data.copy(), *adjoints[:3], *found),
        )  # fmt: skip
        return None, *found


def _constants(model: RigidBodies) -> tuple[Any, ...]:
    return model.joint_rows, model.contacts, model.dt, model.rest_speed


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
