"""Rows of the contacts under the impulse law: what those ask for that count in a step of length h, see meeting.py.

The rows of a contact are its normal n and the tangents t, with moments r x n, r x t (rows.py), its limit is mu. With
the speed of a row u = l.(v_a + w_a x r_a - v_b - w_b x r_b), l = n or t, after the forces of the step and u_0 before
them, the gap g, the restitution e and a threshold v_rest, targets are

    an impact    -e u_tau - (s - 1/2) (u - u_0),   u_tau = u + (s - 1/2) (u - u_0),   s = tau / h
    at rest      min(-g / h, v_rest)

of the normal, where it is at least 0 for an impact; of tangents that of an impact with e = 0, and 0 at rest. tau counts
from where forces act. If that is the start of the step, a body that moves by u in all of it has that speed in its
middle; if it is the middle, it has u at the end: in either case u_tau is the speed at the time tau of an impact, and
what comes out, -e u_tau, is taken to where it is kept again, with the forces of what is left of the step. Positions
follow the new velocities from tau on (solve.py).

At rest features touch where forces act next, g + h u = 0, or later: bodies land, stand and slide without a gap, on
both sides of g = 0 alike, where there is no kink. Those count, too, that only other impulses of the step would bring
together. A shift by tau would not do here: where several contacts of a body change each other's speeds it can
overshoot, and a box would rock. Overlaps are taken back by h v_rest a step at most.

The tangents are those of basis.py; friction does not depend on which they are. A pair has the mean of both bodies'
friction, and of their restitution; against the world a body has its own.

In variational steps in space moments are carried, see carried.py: m~ takes the place of m in what follows the rows.

Adjoint, for m = r x l: adj_r = l x adj_m, adj_l = adj_m x r. Of an impact, with g_t = adj_target, c = (1 + e)(s - 1/2):

    adj_tau = -(1 + e) (u - u_0) / h g_t      adj_u = -(e + c) g_t      adj_u_0 = c g_t      adj_e = -u_tau g_t

and at rest adj_g = -g_t / h below the bound. At kinks a normal target of 0 and -g / h = v_rest count as the constant.

Source: Stewart and Trinkle 1996, An Implicit Time-Stepping Scheme for Rigid Body Dynamics.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from ..autograd import Context, Function, Tensor, kernel, runtime
from ..autograd.runtime import ti
from ..math import rotation
from . import basis, carried, rows
from .meeting import IMPACT, NONE, REST
from .model import RigidBodies
from .nested import turns, zeros_like
from .rows import flat


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The element functions of a row."""

    @ti.func
    def impact(u: real, u_0: real, s: real, e: real) -> real:
        """Target of a row that is met."""
        return -e * u - (1 + e) * (s - 0.5) * (u - u_0)

    @ti.func
    def adj_impact(u: real, u_0: real, s: real, e: real, g: real):
        """By u, u_0, s and e."""
        c = (1 + e) * (s - 0.5)
        return -(e + c) * g, c * g, -(1 + e) * (u - u_0) * g, -(u + (s - 0.5) * (u - u_0)) * g

    return SimpleNamespace(impact=impact, adj_impact=adj_impact)


@functools.cache
@no_type_check
def loops(real: Any, dim: int, carries: bool) -> SimpleNamespace:
    """`contact_rows` and its adjoint, see rows.py; `bodies` are those of all rows, with the candidates' behind NJ."""
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), functions(real)
    normal_and_tangents = basis.functions(real, dim)
    carry = carried.functions(real) if carries else None
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
    def is_free(body, free: ti.template()) -> bool:
        found = False
        if body >= 0:
            found = free[body] == 1
        return found

    @ti.func
    def matrices(q: ti.template(), q0, facing: ti.template(), facing0, body, place):
        """Where forces act, and at the time of the contact."""
        now = at.rotation_at(facing, facing0 + place * at.rotations)
        return rotate.matrix(at.rotation_of(q, q0, body)), rotate.matrix(now)

    @ti.func
    def contact_rows(
        bodies: ti.template(), NJ, M, h, v_rest, gap: ti.template(), gap0, frame: ti.template(), frame0,
        time: ti.template(), time0, active: ti.template(), active0,
        twist: ti.template(), twist0, v: ti.template(), v0, w: ti.template(), w0,
        free: ti.template(), q: ti.template(), q0, facing: ti.template(), facing0, inertia: ti.template(), inertia0,
        friction: ti.template(), friction0, restitution: ti.template(), restitution0,
        row: ti.template(), row0, target: ti.template(), target0, limit: ti.template(), limit0,
    ):  # fmt: skip
        """What belongs to contacts that do not count is not written."""
        for c in range(M):
            if active[active0 + c] > NONE:
                a, b, at_c = bodies[2 * (NJ + c)], bodies[2 * (NJ + c) + 1], frame0 + c * 3 * dim
                n, r_a, r_b = at.vec_at(frame, at_c), at.vec_at(frame, at_c + dim), at.vec_at(frame, at_c + 2 * dim)
                T = normal_and_tangents.basis(n)
                for j in ti.static(range(dim)):
                    for e in ti.static(range(dim)):
                        row[row0 + (c * dim + j) * W + e] = T[j, e]
                for j in range(dim):
                    r = row0 + (c * dim + j) * W
                    along = at.vec_at(row, r)
                    at.put_spin(row, r + dim, rotate.moment(r_a, along))
                    at.put_spin(row, r + dim + spins, rotate.moment(r_b, along))
                    if ti.static(carries):
                        for side in range(2):
                            body, place = a + side * (b - a), r + dim + side * spins
                            if is_free(body, free):
                                R, T = matrices(q, q0, facing, facing0, body, 2 * c + side)
                                J = at.spin_of(inertia, inertia0, body)
                                at.put_spin(row, place, carry.carried(R, T, J, at.spin_at(row, place)))
                limit[limit0 + c] = of_pair(friction, friction0, a, b)
                e_pair = of_pair(restitution, restitution0, a, b)
                for j in range(dim):
                    r, wanted = row0 + (c * dim + j) * W, real(0.0)
                    if active[active0 + c] == IMPACT:
                        along, m_a, m_b = at.vec_at(row, r), at.spin_at(row, r + dim), at.spin_at(row, r + dim + spins)
                        u = along.dot(at.linear(twist, twist0, a) - at.linear(twist, twist0, b))
                        u += m_a.dot(at.angular(twist, twist0, a)) - m_b.dot(at.angular(twist, twist0, b))
                        u_0 = along.dot(at.vec_of(v, v0, a) - at.vec_of(v, v0, b))
                        u_0 += m_a.dot(at.spin_of(w, w0, a)) - m_b.dot(at.spin_of(w, w0, b))
                        wanted = f.impact(u, u_0, time[time0 + c] / h, ti.select(j == 0, e_pair, 0.0))
                        if j == 0:
                            wanted = ti.max(0.0, wanted)
                    elif j == 0:
                        wanted = ti.min(-gap[gap0 + c] / h, v_rest)
                    target[target0 + c * dim + j] = wanted

    @ti.func
    def adj_contact_rows(
        bodies: ti.template(), NJ, M, h, v_rest, gap: ti.template(), gap0, frame: ti.template(), frame0,
        time: ti.template(), time0, active: ti.template(), active0,
        twist: ti.template(), twist0, v: ti.template(), v0, w: ti.template(), w0,
        free: ti.template(), q: ti.template(), q0, facing: ti.template(), facing0, inertia: ti.template(), inertia0,
        restitution: ti.template(), restitution0, row: ti.template(), row0, target: ti.template(), target0,
        adj_row: ti.template(), adj_row0, adj_target: ti.template(), adj_target0, adj_limit: ti.template(), adj_limit0,
        adj_gap: ti.template(), adj_gap0, adj_frame: ti.template(), adj_frame0, adj_time: ti.template(), adj_time0,
        adj_twist: ti.template(), adj_twist0, adj_v: ti.template(), adj_v0, adj_w: ti.template(), adj_w0,
        adj_theta: ti.template(), adj_theta0, adj_facing: ti.template(), adj_facing0,
        adj_inertia: ti.template(), adj_inertia0,
        adj_friction: ti.template(), adj_friction0, adj_restitution: ti.template(), adj_restitution0,
    ):  # fmt: skip
        """adj_row is used up; adj_facing [M, 2 S] is that by small turns."""
        for c in range(M):
            if active[active0 + c] > NONE:
                a, b, at_c = bodies[2 * (NJ + c)], bodies[2 * (NJ + c) + 1], frame0 + c * 3 * dim
                n, r_a, r_b = at.vec_at(frame, at_c), at.vec_at(frame, at_c + dim), at.vec_at(frame, at_c + 2 * dim)
                r, g = row0 + c * dim * W, adj_row0 + c * dim * W
                add_of_pair(adj_friction, adj_friction0, a, b, adj_limit[adj_limit0 + c])
                if active[active0 + c] == REST and -gap[gap0 + c] / h < v_rest:
                    adj_gap[adj_gap0 + c] = adj_gap[adj_gap0 + c] - adj_target[adj_target0 + c * dim] / h
                if active[active0 + c] == IMPACT:
                    u_v = at.linear(twist, twist0, a) - at.linear(twist, twist0, b)
                    u_a, u_b = at.angular(twist, twist0, a), at.angular(twist, twist0, b)
                    o_v = at.vec_of(v, v0, a) - at.vec_of(v, v0, b)
                    o_a, o_b = at.spin_of(w, w0, a), at.spin_of(w, w0, b)
                    e_pair = of_pair(restitution, restitution0, a, b)
                    for j in range(dim):
                        if j > 0 or target[target0 + c * dim] > 0:
                            r_j, g_j = r + j * W, g + j * W
                            along, m_a = at.vec_at(row, r_j), at.spin_at(row, r_j + dim)
                            m_b = at.spin_at(row, r_j + dim + spins)
                            adj_u, adj_o, adj_s, adj_e = f.adj_impact(
                                along.dot(u_v) + m_a.dot(u_a) - m_b.dot(u_b),
                                along.dot(o_v) + m_a.dot(o_a) - m_b.dot(o_b),
                                time[time0 + c] / h, ti.select(j == 0, e_pair, 0.0),
                                adj_target[adj_target0 + c * dim + j],
                            )  # fmt: skip
                            adj_time[adj_time0 + c] = adj_time[adj_time0 + c] + adj_s / h
                            if j == 0:
                                add_of_pair(adj_restitution, adj_restitution0, a, b, adj_e)
                            at.add_twist(adj_twist, adj_twist0, a, adj_u * along, adj_u * m_a)
                            at.add_twist(adj_twist, adj_twist0, b, -adj_u * along, -adj_u * m_b)
                            at.add_vec_of(adj_v, adj_v0, a, adj_o * along)
                            at.add_vec_of(adj_v, adj_v0, b, -adj_o * along)
                            at.add_spin_of(adj_w, adj_w0, a, adj_o * m_a)
                            at.add_spin_of(adj_w, adj_w0, b, -adj_o * m_b)
                            at.add_vec(adj_row, g_j, adj_u * u_v + adj_o * o_v)
                            at.add_spin(adj_row, g_j + dim, adj_u * u_a + adj_o * o_a)
                            at.add_spin(adj_row, g_j + dim + spins, -adj_u * u_b - adj_o * o_b)
                adj_r_a, adj_r_b = vec(0.0), vec(0.0)
                for j in range(dim):
                    along, g_j = at.vec_at(row, r + j * W), g + j * W
                    if ti.static(carries):
                        for side in range(2):
                            body, place = a + side * (b - a), g_j + dim + side * spins
                            if is_free(body, free):
                                R, T = matrices(q, q0, facing, facing0, body, 2 * c + side)
                                by_R, by_T, by_J, by_m = carry.adj_carried(
                                    R, T, at.spin_of(inertia, inertia0, body),
                                    rotate.moment(r_a + side * (r_b - r_a), along), at.spin_at(adj_row, place),
                                )  # fmt: skip
                                at.add_spin_of(adj_theta, adj_theta0, body, by_R)
                                at.add_spin(adj_facing, adj_facing0 + (2 * c + side) * spins, by_T)
                                at.add_spin_of(adj_inertia, adj_inertia0, body, by_J)
                                at.put_spin(adj_row, place, by_m)
                    adj_m_a, adj_m_b = at.spin_at(adj_row, g_j + dim), at.spin_at(adj_row, g_j + dim + spins)
                    adj_r_a += rotate.adj_cross(adj_m_a, along)
                    adj_r_b += rotate.adj_cross(adj_m_b, along)
                    at.add_vec(adj_row, g_j, rotate.cross(adj_m_a, r_a) + rotate.cross(adj_m_b, r_b))
                G = mat(0.0)
                for j, e in ti.static(ti.ndrange(dim, dim)):
                    G[j, e] = adj_row[g + j * W + e]
                at_g = adj_frame0 + c * 3 * dim
                at.add_vec(adj_frame, at_g, normal_and_tangents.adj(n, G))
                at.add_vec(adj_frame, at_g + dim, adj_r_a)
                at.add_vec(adj_frame, at_g + 2 * dim, adj_r_b)

    return SimpleNamespace(contact_rows=contact_rows, adj_contact_rows=adj_contact_rows)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, carries: bool) -> SimpleNamespace:
    """The loops of the nested sub-step."""
    f, add_turns = loops(real, dim, carries), turns(real, dim)
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        bodies: ints, NJ: ti.i32, M: ti.i32, h: real, v_rest: real, free: ints, active: reals, gap: reals,
        frame: reals, time: reals, twist: reals, v: reals, w: reals, q: reals, facing: reals, inertia: reals,
        friction: reals, restitution: reals, row: reals, target: reals, limit: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.contact_rows(
                bodies, NJ, M, h, v_rest, gap, 0, frame, 0, time, 0, active, 0, twist, 0, v, 0, w, 0,
                free, q, 0, facing, 0, inertia, 0, friction, 0, restitution, 0, row, 0, target, 0, limit, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        bodies: ints, NJ: ti.i32, M: ti.i32, h: real, v_rest: real, free: ints, active: reals, gap: reals,
        frame: reals, time: reals, twist: reals, v: reals, w: reals, q: reals, facing: reals, inertia: reals,
        restitution: reals, row: reals, target: reals, n: ti.i32, adj_row: reals, adj_target: reals, adj_limit: reals,
        adj_theta: reals, adj_turns: reals, adj_gap: reals, adj_frame: reals, adj_time: reals, adj_twist: reals,
        adj_v: reals, adj_w: reals, adj_q: reals, adj_facing: reals, adj_inertia: reals, adj_friction: reals,
        adj_restitution: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj_contact_rows(
                bodies, NJ, M, h, v_rest, gap, 0, frame, 0, time, 0, active, 0, twist, 0, v, 0, w, 0,
                free, q, 0, facing, 0, inertia, 0, restitution, 0, row, 0, target, 0,
                adj_row, 0, adj_target, 0, adj_limit, 0, adj_gap, 0, adj_frame, 0, adj_time, 0,
                adj_twist, 0, adj_v, 0, adj_w, 0, adj_theta, 0, adj_turns, 0, adj_inertia, 0,
                adj_friction, 0, adj_restitution, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)
            add_turns(facing, 0, 2 * M, adj_turns, 0, adj_facing, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class ContactRows(Function):
    """Rows [dim M, W], targets [dim M] and limits [M]. Saved: inputs, rows, targets.

    `active` [M] says what contacts are (see meeting.py). Inputs: gap [M], frame [M, 3 dim] and time [M] of contacts,
    twist [n, D], velocity [n, dim] and angular_velocity [n, S] before the forces, orientation [n, R] where they act and
    facing [M, 2 R], inertia [n, S], friction [n], restitution [n].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, active: Tensor, *inputs: Tensor) -> tuple[Any, ...]:
        M, dim, dtype = model.contacts, model.dim, inputs[0].dtype
        shapes = ((M * dim, dim + 2 * model.spins), (M * dim,), (M,))
        row, target, limit = outputs = [np.zeros(shape, dtype) for shape in shapes]
        _kernels(model).forward(model.row_bodies, *_constants(model), *flat(active, *inputs, *outputs))
        ctx.model = model
        ctx.save_for_backward(active, *inputs, row, target)
        return row, target, limit

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor, *adjoints: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, *inputs, row, target = ctx.saved_tensors
        *moving, _, restitution = inputs
        found = zeros_like(*inputs)
        work = [np.zeros(count * model.spins, adj_row.dtype) for count in (model.bodies, 2 * model.contacts)]
        _kernels(model).adjoint(
            model.row_bodies, *_constants(model), *flat(active, *moving, restitution, row, target), model.bodies,
            *flat(adj_row.data.copy(), *adjoints, *work, *found),
        )  # fmt: skip
        return None, None, *found


def _constants(model: RigidBodies) -> tuple[Any, ...]:
    return model.joint_rows, model.contacts, model.dt, model.rest_speed, model.free


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.carries)
