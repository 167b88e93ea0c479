"""Rows of the active contacts (time_of_impact.py) under the impulse law, for a step of length h.

The rows of a contact are its normal n and the tangents t, with moments r x n, r x t (rows.py). Its limit is the
friction mu and its bounce the restitution e of the pair. With gap g and a threshold v_rest, the target of the normal at
rest is

    t = min(-g / h, v_rest)

and 0 for tangents and impacts; phases.py adds their targets at the time of impact. At rest, features touch when forces
act next, g + h u = 0, or later: bodies land, stand and slide without a gap. Both sides of g = 0 are treated alike, so
there is no kink. This includes contacts that only other impulses of the step would close. Overlaps are corrected by at
most h v_rest per step.

The tangents are those of basis.py; friction does not depend on their choice. A pair has the mean of both bodies'
friction and restitution; against the world they are the body's own.

Adjoint, for m = r x l: adj_r = l x adj_m, adj_l = adj_m x r; adj_g = -adj_t / h below the bound. At the kink
-g / h = v_rest the target counts as constant.

Source: Stewart and Trinkle 1996, An Implicit Time-Stepping Scheme for Rigid Body Dynamics.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import basis, rows
from .islands import NONE, REST
from .model import RigidBodies
from .nested import zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return `contact_rows` and its adjoint, see rows.py; in `bodies`, those of candidates follow after NJ rows."""
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)
    normal_and_tangents = basis.functions(real, dim)
    vec, mat, spins = at.vec, ti.types.matrix(dim, dim, real), at.spins
    W = dim + 2 * spins

    @ti.func
    def pair_mean(values: ti.template(), values0, a, b) -> real:
        value = values[values0 + a]
        if b >= 0:
            value = 0.5 * (value + values[values0 + b])
        return value

    @ti.func
    def add_pair_mean(values: ti.template(), values0, a, b, change: real):
        share = change
        if b >= 0:
            share = 0.5 * change
            values[values0 + b] = values[values0 + b] + share
        values[values0 + a] = values[values0 + a] + share

    @ti.func
    def contact_rows(
        bodies: ti.template(), NJ, M, h, v_rest, active: ti.template(), active0,
        gap: ti.template(), gap0, frame: ti.template(), frame0,
        friction: ti.template(), friction0, restitution: ti.template(), restitution0,
        row: ti.template(), row0, target: ti.template(), target0, limit: ti.template(), limit0,
        bounce: ti.template(), bounce0,
    ):  # fmt: skip
        """Write the rows of active contacts; those of all others are left unchanged."""
        for c in range(M):
            if active[active0 + c] > NONE:
                a, b, frame_c = bodies[2 * (NJ + c)], bodies[2 * (NJ + c) + 1], frame0 + c * 3 * dim
                n, r_a, r_b = (
                    at.vec_at(frame, frame_c),
                    at.vec_at(frame, frame_c + dim),
                    at.vec_at(frame, frame_c + 2 * dim),
                )
                T = normal_and_tangents.basis(n)
                for j in ti.static(range(dim)):
                    for e in ti.static(range(dim)):
                        row[row0 + (c * dim + j) * W + e] = T[j, e]
                for j in range(dim):
                    r = row0 + (c * dim + j) * W
                    direction = at.vec_at(row, r)
                    at.put_spin(row, r + dim, rotate.moment(r_a, direction))
                    at.put_spin(row, r + dim + spins, rotate.moment(r_b, direction))
                    target[target0 + c * dim + j] = 0.0
                if active[active0 + c] == REST:
                    target[target0 + c * dim] = ti.min(-gap[gap0 + c] / h, v_rest)
                limit[limit0 + c] = pair_mean(friction, friction0, a, b)
                bounce[bounce0 + c] = pair_mean(restitution, restitution0, a, b)

    @ti.func
    def adj_contact_rows(
        bodies: ti.template(), NJ, M, h, v_rest, active: ti.template(), active0,
        gap: ti.template(), gap0, frame: ti.template(), frame0, row: ti.template(), row0,
        adj_row: ti.template(), adj_row0, adj_target: ti.template(), adj_target0, adj_limit: ti.template(), adj_limit0,
        adj_bounce: ti.template(), adj_bounce0,
        adj_gap: ti.template(), adj_gap0, adj_frame: ti.template(), adj_frame0,
        adj_friction: ti.template(), adj_friction0, adj_restitution: ti.template(), adj_restitution0,
    ):  # fmt: skip
        """Add to the adjoints of the inputs; adj_row is overwritten."""
        for c in range(M):
            if active[active0 + c] > NONE:
                a, b, frame_c = bodies[2 * (NJ + c)], bodies[2 * (NJ + c) + 1], frame0 + c * 3 * dim
                n, r_a, r_b = (
                    at.vec_at(frame, frame_c),
                    at.vec_at(frame, frame_c + dim),
                    at.vec_at(frame, frame_c + 2 * dim),
                )
                r, g = row0 + c * dim * W, adj_row0 + c * dim * W
                add_pair_mean(adj_friction, adj_friction0, a, b, adj_limit[adj_limit0 + c])
                add_pair_mean(adj_restitution, adj_restitution0, a, b, adj_bounce[adj_bounce0 + c])
                if active[active0 + c] == REST and -gap[gap0 + c] / h < v_rest:
                    adj_gap[adj_gap0 + c] = adj_gap[adj_gap0 + c] - adj_target[adj_target0 + c * dim] / h
                adj_r_a, adj_r_b = vec(0.0), vec(0.0)
                for j in range(dim):
                    direction, g_j = at.vec_at(row, r + j * W), g + j * W
                    adj_m_a, adj_m_b = at.spin_at(adj_row, g_j + dim), at.spin_at(adj_row, g_j + dim + spins)
                    adj_r_a += rotate.adj_cross(adj_m_a, direction)
                    adj_r_b += rotate.adj_cross(adj_m_b, direction)
                    at.add_vec(adj_row, g_j, rotate.cross(adj_m_a, r_a) + rotate.cross(adj_m_b, r_b))
                G = mat(0.0)
                for j, e in ti.static(ti.ndrange(dim, dim)):
                    G[j, e] = adj_row[g + j * W + e]
                adj_frame_c = adj_frame0 + c * 3 * dim
                at.add_vec(adj_frame, adj_frame_c, normal_and_tangents.adj(n, G))
                at.add_vec(adj_frame, adj_frame_c + dim, adj_r_a)
                at.add_vec(adj_frame, adj_frame_c + 2 * dim, adj_r_b)

    return SimpleNamespace(contact_rows=contact_rows, adj_contact_rows=adj_contact_rows)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step."""
    f = loops(real, dim)
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        bodies: ints, NJ: ti.i32, M: ti.i32, h: real, v_rest: real, active: reals, gap: reals, frame: reals,
        friction: reals, restitution: reals, row: reals, target: reals, limit: reals, bounce: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.contact_rows(
                bodies, NJ, M, h, v_rest, active, 0, gap, 0, frame, 0, friction, 0, restitution, 0,
                row, 0, target, 0, limit, 0, bounce, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        bodies: ints, NJ: ti.i32, M: ti.i32, h: real, v_rest: real, active: reals, gap: reals, frame: reals,
        row: reals, adj_row: reals, adj_target: reals, adj_limit: reals, adj_bounce: reals,
        adj_gap: reals, adj_frame: reals, adj_friction: reals, adj_restitution: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj_contact_rows(
                bodies, NJ, M, h, v_rest, active, 0, gap, 0, frame, 0, row, 0,
                adj_row, 0, adj_target, 0, adj_limit, 0, adj_bounce, 0,
                adj_gap, 0, adj_frame, 0, adj_friction, 0, adj_restitution, 0,
            )  # fmt: skip

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class ContactRows(Function):
    """Rows [dim M, W], targets [dim M], limits [M] and bounces [M]. Saved: active, gap, frame and rows.

    `active` [M] is the state of each contact (see time_of_impact.py). Inputs: gap [M], frame [M, 3 dim], friction [n],
    restitution [n].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, active: Tensor, *inputs: Tensor) -> tuple[Any, ...]:
        M, dim, dtype = model.contacts, model.dim, inputs[0].dtype
        shapes = ((M * dim, dim + 2 * model.spins), (M * dim,), (M,), (M,))
        row, *others = [np.zeros(shape, dtype) for shape in shapes]
        _kernels(model).forward(*_constants(model), *flatten(active, *inputs, row, *others))
        ctx.model = model
        ctx.save_for_backward(active, *inputs[:2], row)
        return row, *others

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor, *adjoints: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, gap, frame, row = ctx.saved_tensors
        found = [*zeros_like(gap, frame), *np.zeros((2, model.bodies), adj_row.dtype)]
        _kernels(model).adjoint(
            *_constants(model), *flatten(active, gap, frame, row, adj_row.data.copy(), *adjoints, *found)
        )
        return None, None, *found


def _constants(model: RigidBodies) -> tuple[Any, ...]:
    return model.row_bodies, model.joint_rows, model.contacts, model.dt, model.rest_speed


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
