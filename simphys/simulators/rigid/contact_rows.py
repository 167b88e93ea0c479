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
-g / h = v_rest the target counts as constant. Tangent: dm = dr x l + r x dl, with dl of basis.py; dt = -dg / h below
the bound.

Source: Stewart and Trinkle 1996, An Implicit Time-Stepping Scheme for Rigid Body Dynamics.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, record, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import arrays, basis, rows
from .arrays import flat
from .islands import NONE, REST
from .model import RigidBodies
from .nested import zeros_like


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return `contact_rows` and its adjoint, see rows.py; in `bodies`, those of candidates follow after NJ rows."""
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)
    normal_and_tangents = basis.functions(real, dim)
    vec, mat, spins = at.vec, ti.types.matrix(dim, dim, real), at.spins
    W = dim + 2 * spins

    @ti.func
    def pair_mean(values: ti.template(), a, b) -> real:
        value = values[a]
        if b >= 0:
            value = 0.5 * (value + values[b])
        return value

    @ti.func
    def add_pair_mean(values: ti.template(), a, b, change: real):
        share = change
        if b >= 0:
            share = 0.5 * change
            values[b] = values[b] + share
        values[a] = values[a] + share

    @ti.func
    def contact_rows(
        system: ti.template(), h, v_rest, contacts: ti.template(), params: ti.template(), rows: ti.template()
    ):
        """Write the rows of active contacts; those of all others are left unchanged."""
        for c in range(system.M):
            if contacts.active[c] > NONE:
                a, b, frame_c = system.bodies[2 * (system.NJ + c)], system.bodies[2 * (system.NJ + c) + 1], c * 3 * dim
                n, r_a, r_b = (
                    at.vec_at(contacts.frame, frame_c),
                    at.vec_at(contacts.frame, frame_c + dim),
                    at.vec_at(contacts.frame, frame_c + 2 * dim),
                )
                T = normal_and_tangents.basis(n)
                for j in ti.static(range(dim)):
                    for e in ti.static(range(dim)):
                        rows.row[(c * dim + j) * W + e] = T[j, e]
                for j in range(dim):
                    r = (c * dim + j) * W
                    direction = at.vec_at(rows.row, r)
                    at.put_spin(rows.row, r + dim, rotate.moment(r_a, direction))
                    at.put_spin(rows.row, r + dim + spins, rotate.moment(r_b, direction))
                    rows.target[c * dim + j] = 0.0
                if contacts.active[c] == REST:
                    rows.target[c * dim] = ti.min(-contacts.gap[c] / h, v_rest)
                rows.limit[c] = pair_mean(params.friction, a, b)
                rows.bounce[c] = pair_mean(params.restitution, a, b)

    @ti.func
    def adj_contact_rows(
        system: ti.template(),
        h,
        v_rest,
        contacts: ti.template(),
        rows: ti.template(),
        adj_rows: ti.template(),
        adj_contacts: ti.template(),
        adj_params: ti.template(),
    ):
        """Add to the adjoints of the inputs; adj_row is overwritten."""
        for c in range(system.M):
            if contacts.active[c] > NONE:
                a, b, frame_c = system.bodies[2 * (system.NJ + c)], system.bodies[2 * (system.NJ + c) + 1], c * 3 * dim
                n, r_a, r_b = (
                    at.vec_at(contacts.frame, frame_c),
                    at.vec_at(contacts.frame, frame_c + dim),
                    at.vec_at(contacts.frame, frame_c + 2 * dim),
                )
                r = c * dim * W
                add_pair_mean(adj_params.friction, a, b, adj_rows.limit[c])
                add_pair_mean(adj_params.restitution, a, b, adj_rows.bounce[c])
                if contacts.active[c] == REST and -contacts.gap[c] / h < v_rest:
                    adj_contacts.gap[c] = adj_contacts.gap[c] - adj_rows.target[c * dim] / h
                adj_r_a, adj_r_b = vec(0.0), vec(0.0)
                for j in range(dim):
                    r_j = r + j * W
                    direction = at.vec_at(rows.row, r_j)
                    adj_m_a, adj_m_b = at.spin_at(adj_rows.row, r_j + dim), at.spin_at(adj_rows.row, r_j + dim + spins)
                    adj_r_a += rotate.adj_cross(adj_m_a, direction)
                    adj_r_b += rotate.adj_cross(adj_m_b, direction)
                    at.add_vec(adj_rows.row, r_j, rotate.cross(adj_m_a, r_a) + rotate.cross(adj_m_b, r_b))
                G = mat(0.0)
                for j, e in ti.static(ti.ndrange(dim, dim)):
                    G[j, e] = adj_rows.row[r + j * W + e]
                at.add_vec(adj_contacts.frame, frame_c, normal_and_tangents.adj(n, G))
                at.add_vec(adj_contacts.frame, frame_c + dim, adj_r_a)
                at.add_vec(adj_contacts.frame, frame_c + 2 * dim, adj_r_b)

    @ti.func
    def jvp_contact_rows(
        system: ti.template(), h, v_rest, contacts: ti.template(), rows: ti.template(),
        dcontacts: ti.template(), dparams: ti.template(), drows: ti.template(),
    ):  # fmt: skip
        """Write the tangents of the rows of active contacts."""
        for c in range(system.M):
            if contacts.active[c] > NONE:
                a, b, frame_c = system.bodies[2 * (system.NJ + c)], system.bodies[2 * (system.NJ + c) + 1], c * 3 * dim
                r_a, r_b = at.vec_at(contacts.frame, frame_c + dim), at.vec_at(contacts.frame, frame_c + 2 * dim)
                dr_a, dr_b = at.vec_at(dcontacts.frame, frame_c + dim), at.vec_at(dcontacts.frame, frame_c + 2 * dim)
                dT = normal_and_tangents.jvp(at.vec_at(contacts.frame, frame_c), at.vec_at(dcontacts.frame, frame_c))
                for j in ti.static(range(dim)):
                    for e in ti.static(range(dim)):
                        drows.row[(c * dim + j) * W + e] = dT[j, e]
                for j in range(dim):
                    r = (c * dim + j) * W
                    direction, dl = at.vec_at(rows.row, r), at.vec_at(drows.row, r)
                    at.put_spin(drows.row, r + dim, rotate.moment(dr_a, direction) + rotate.moment(r_a, dl))
                    at.put_spin(drows.row, r + dim + spins, rotate.moment(dr_b, direction) + rotate.moment(r_b, dl))
                    drows.target[c * dim + j] = 0.0
                if contacts.active[c] == REST and -contacts.gap[c] / h < v_rest:
                    drows.target[c * dim] = -dcontacts.gap[c] / h
                drows.limit[c] = pair_mean(dparams.friction, a, b)
                drows.bounce[c] = pair_mean(dparams.restitution, a, b)

    return SimpleNamespace(contact_rows=contact_rows, adj_contact_rows=adj_contact_rows, jvp=jvp_contact_rows)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step."""
    f, types = loops(real, dim), arrays.types(real)
    found, distances = types.part(arrays.Contacts, "gap frame active"), types.part(arrays.Contacts, "gap frame")
    directions, law = types.part(arrays.Rows, "row"), types.part(arrays.Params, "friction restitution")
    lines = types.part(arrays.Rows, "row target limit bounce")
    blocks = record(arrays.System, bodies=types.ints, NJ=ti.i32, M=ti.i32)

    @kernel
    def forward(system: blocks, h: real, v_rest: real, contacts: found, params: law, rows: lines):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.contact_rows(system, h, v_rest, contacts, params, rows)

    @kernel
    def adjoint(
        system: blocks, h: real, v_rest: real, contacts: found, rows: directions, adj_rows: lines,
        adj_contacts: distances, adj_params: law,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj_contact_rows(system, h, v_rest, contacts, rows, adj_rows, adj_contacts, adj_params)

    @kernel
    def tangent(
        system: blocks, h: real, v_rest: real, contacts: found, rows: directions, dcontacts: distances, dparams: law,
        drows: lines,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.jvp(system, h, v_rest, contacts, rows, dcontacts, dparams, drows)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


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
        gap, frame, friction, restitution = inputs
        contacts = flat(arrays.Contacts(gap, frame, active=active))
        law = flat(arrays.Params(friction=friction, restitution=restitution))
        _kernels(model).forward(*_constants(model), contacts, law, flat(arrays.Rows(row, *others)))
        ctx.model = model
        ctx.save_for_backward(active, *inputs[:2], row)
        return row, *others

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor, *adjoints: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, gap, frame, row = ctx.saved_tensors
        found = [*zeros_like(gap, frame), *np.zeros((2, model.bodies), adj_row.dtype)]
        adj_gap, adj_frame, adj_friction, adj_restitution = found
        _kernels(model).adjoint(
            *_constants(model),
            flat(arrays.Contacts(gap, frame, active=active)),
            flat(arrays.Rows(row)),
            flat(arrays.Rows(adj_row.data.copy(), *adjoints)),
            flat(arrays.Contacts(adj_gap, adj_frame)),
            flat(arrays.Params(friction=adj_friction, restitution=adj_restitution)),
        )
        return None, None, *found

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, *tangents: Any) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, gap, frame, row = ctx.saved_tensors
        dgap, dframe, dfriction, drestitution = tangents
        shapes = row.shape, row.shape[:1], gap.shape, gap.shape
        found = [np.zeros(shape, row.dtype) for shape in shapes]
        _kernels(model).tangent(
            *_constants(model),
            flat(arrays.Contacts(gap, frame, active=active)),
            flat(arrays.Rows(row)),
            flat(arrays.Contacts(dgap, dframe)),
            flat(arrays.Params(friction=dfriction, restitution=drestitution)),
            flat(arrays.Rows(*found)),
        )
        return tuple(found)


def _constants(model: RigidBodies) -> tuple[Any, ...]:
    system = arrays.System(bodies=model.row_bodies, NJ=model.joint_rows, M=model.contacts)
    return system, model.dt, model.rest_speed


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
