"""Mobility: changes of velocity by unit impulses of rows, from which the constraints are solved.

    1/m                            inverse mass of each body [1/kg]
    spin_change = A^-1 m_a, A^-1 m_b    for each row, the change of its bodies' angular velocities by an impulse of 1
    moment = m_a, m_b              coefficients of these angular velocities in the row

with the moments m_a, m_b of the row (rows.py), and the inverse inertia in the world frame A^-1 = R diag(1/J) R^T; the
first two are 0 for a fixed body. R is taken at the time of the row: for joints at the impact that splits the step
(split_step.py), for contacts it is `attitude` (time_of_impact.py). Adjoint: adj_m = -adj_(1/m) / m^2, and that of A^-1
m in inertia.py; so is its tangent, and d(1/m) = -dm / m^2.

In space, w is the spin at the time of the forces. A free body keeps its angular momentum L = A w while A rotates with
it. At the time of a row, with inertia A_t, its spin is A_t^-1 A w. The row measures

    m.(A_t^-1 A w) = m~.w,   m~ = A A_t^-1 m        and an impulse of 1 changes L by m, hence w by A^-1 m,

with m~ its moment. Otherwise derivatives by the time of an impact would miss the gyroscopic torque on the added spin,
and be wrong for any step size. In the plane, and for equal moments of inertia, m~ = m.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, record, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import arrays, inertia, rows
from .arrays import flat
from .islands import NONE
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies and rows; for the arguments see rows.py. `bodies` are those of all rows.

    q is the orientation in which forces act, q_impact that of the joint rows; `attitude` is [M, 2 R].
    """
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), inertia.functions(real, dim)
    R, S = at.rotations, at.spins
    W = dim + 2 * S

    @ti.func
    def is_active(k, NJ, active: ti.template()) -> bool:
        """Return True if row k is active: a joint row, or a row of an active contact."""
        found = True
        if k >= NJ:
            found = active[(k - NJ) // dim] > NONE
        return found

    @ti.func
    def body_of(k, side, NJ, bodies: ti.template()):
        """Return a body of row k."""
        block = k
        if k >= NJ:
            block = NJ + (k - NJ) // dim
        return bodies[2 * block + side]

    @ti.func
    def attitude_index(k, side, NJ):
        """Return the index in `attitude` of the orientation of a contact row's body; negative for joint rows."""
        return 2 * ((k - NJ) // dim) + side if k >= NJ else -1

    @ti.func
    def rotation_at(k, side, body, NJ, q_impact: ti.template(), attitude: ti.template()):
        orientation = at.rotation(0.0)
        for c in ti.static(range(R)):
            if k >= NJ:
                orientation[c] = attitude[attitude_index(k, side, NJ) * R + c]
            else:
                orientation[c] = q_impact[body * R + c]
        return rotate.matrix(orientation)

    @ti.func
    def mobility(
        system: ti.template(),
        rows: ti.template(),
        contacts: ti.template(),
        motion: ti.template(),
        impact: ti.template(),
        params: ti.template(),
    ):
        for b in range(system.n):
            rows.inverse_mass[b] = system.free[b] / params.mass[b]
        for k in range(system.NJ + system.M * dim):
            if is_active(k, system.NJ, contacts.active):
                for side in range(2):
                    body, to, is_free = body_of(k, side, system.NJ, system.bodies), (2 * k + side) * S, False
                    if body >= 0:
                        is_free = system.free[body] == 1
                    m = at.spin_at(rows.row, k * W + dim + side * S)
                    at.put_spin(rows.spin_change, to, at.spin(0.0))
                    at.put_spin(rows.moment, to, m)
                    if is_free:
                        T = rotation_at(k, side, body, system.NJ, impact.q, contacts.attitude)
                        J = at.spin_of(params.inertia, body)
                        if ti.static(dim == 3):
                            now = rotate.matrix(at.rotation_of(motion.q, body))
                            at.put_spin(rows.spin_change, to, f.apply(now, 1 / J, m))
                            at.put_spin(rows.moment, to, f.apply(now, J, f.apply(T, 1 / J, m)))
                        else:
                            at.put_spin(rows.spin_change, to, f.apply(T, 1 / J, m))

    @ti.func
    def adj_mobility(
        system: ti.template(),
        rows: ti.template(),
        contacts: ti.template(),
        motion: ti.template(),
        impact: ti.template(),
        params: ti.template(),
        adj_rows: ti.template(),
        adj_contacts: ti.template(),
        adj_motion: ti.template(),
        adj_impact: ti.template(),
        adj_params: ti.template(),
    ):
        """Add to the adjoints; those of attitudes [M, 2 S] are by small rotations."""
        for b in range(system.n):
            m = params.mass[b]
            change = system.free[b] * adj_rows.inverse_mass[b] / (m * m)
            adj_params.mass[b] = adj_params.mass[b] - change
        for k in range(system.NJ + system.M * dim):
            if is_active(k, system.NJ, contacts.active):
                for side in range(2):
                    body, is_free = body_of(k, side, system.NJ, system.bodies), False
                    if body >= 0:
                        is_free = system.free[body] == 1
                    m_offset, g_offset = k * W + dim + side * S, (2 * k + side) * S
                    m, g = at.spin_at(rows.row, m_offset), at.spin_at(adj_rows.spin_change, g_offset)
                    g_m = at.spin_at(adj_rows.moment, g_offset)
                    if is_free:
                        T = rotation_at(k, side, body, system.NJ, impact.q, contacts.attitude)
                        J, g_T, g_inverse = at.spin_of(params.inertia, body), at.spin(0.0), at.spin(0.0)
                        if ti.static(dim == 3):
                            now = rotate.matrix(at.rotation_of(motion.q, body))
                            g_J, g_spin, g_now = f.adj(now, J, f.apply(T, 1 / J, m), g_m)
                            g_inverse, g_m, g_T = f.adj(T, 1 / J, m, g_spin)
                            more_g_inverse, more_g_m, more_g_now = f.adj(now, 1 / J, m, g)
                            g_m += more_g_m
                            g_inverse += more_g_inverse
                            at.add_spin_of(adj_motion.theta, body, g_now + more_g_now)
                            at.add_spin_of(adj_params.inertia, body, g_J)
                        else:
                            g_inverse, more_g_m, g_T = f.adj(T, 1 / J, m, g)
                            g_m += more_g_m
                        at.add_spin_of(adj_params.inertia, body, -g_inverse / (J * J))
                        if k >= system.NJ:
                            at.add_spin(adj_contacts.attitude, attitude_index(k, side, system.NJ) * S, g_T)
                        else:
                            at.add_spin_of(adj_impact.theta, body, g_T)
                    at.add_spin(adj_rows.row, m_offset, g_m)

    @ti.func
    def jvp_rotation_at(
        k, side, body, NJ, impact: ti.template(), contacts: ti.template(), dimpact: ti.template(),
        dcontacts: ti.template(),
    ):  # fmt: skip
        """Return the small rotation, at the time of a row, of one of its bodies."""
        turned = at.spin(0.0)
        if k >= NJ:
            r = attitude_index(k, side, NJ) * R
            turned = rotate.jvp_turn(at.rotation_at(contacts.attitude, r), at.rotation_at(dcontacts.attitude, r))
        else:
            turned = at.turn_of(impact.q, dimpact.q, body)
        return turned

    @ti.func
    def jvp_mobility(
        system: ti.template(), rows: ti.template(), contacts: ti.template(), motion: ti.template(),
        impact: ti.template(), params: ti.template(), drows: ti.template(), dcontacts: ti.template(),
        dmotion: ti.template(), dimpact: ti.template(), dparams: ti.template(),
    ):  # fmt: skip
        for b in range(system.n):
            drows.inverse_mass[b] = -system.free[b] * dparams.mass[b] / (params.mass[b] * params.mass[b])
        for k in range(system.NJ + system.M * dim):
            if is_active(k, system.NJ, contacts.active):
                for side in range(2):
                    body, to, is_free = body_of(k, side, system.NJ, system.bodies), (2 * k + side) * S, False
                    if body >= 0:
                        is_free = system.free[body] == 1
                    m_offset = k * W + dim + side * S
                    m, dm = at.spin_at(rows.row, m_offset), at.spin_at(drows.row, m_offset)
                    dspin_change, dmoment = at.spin(0.0), dm
                    if is_free:
                        T = rotation_at(k, side, body, system.NJ, impact.q, contacts.attitude)
                        dtheta = jvp_rotation_at(k, side, body, system.NJ, impact, contacts, dimpact, dcontacts)
                        J, dJ = at.spin_of(params.inertia, body), at.spin_of(dparams.inertia, body)
                        dinverse = -dJ / (J * J)
                        dspin_change = f.jvp(T, 1 / J, m, dtheta, dinverse, dm)
                        if ti.static(dim == 3):
                            now = rotate.matrix(at.rotation_of(motion.q, body))
                            dnow = at.turn_of(motion.q, dmotion.q, body)
                            dmoment = f.jvp(now, J, f.apply(T, 1 / J, m), dnow, dJ, dspin_change)
                            dspin_change = f.jvp(now, 1 / J, m, dnow, dinverse, dm)
                    at.put_spin(drows.spin_change, to, dspin_change)
                    at.put_spin(drows.moment, to, dmoment)

    return SimpleNamespace(mobility=mobility, adj=adj_mobility, jvp=jvp_mobility)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, add_turns = loops(real, dim), orientation_adjoint(real, dim)
    types = arrays.types(real)
    reals = types.reals
    all_rows = types.part(arrays.Rows, "row inverse_mass spin_change moment")
    directions, attitudes = types.part(arrays.Rows, "row"), types.part(arrays.Contacts, "active attitude")
    turns = types.part(arrays.Contacts, "attitude")
    still, turned = types.part(arrays.Motion, "q"), types.part(arrays.Motion, "q theta")
    met, turned_impact = types.part(arrays.Impact, "q"), types.part(arrays.Impact, "q theta")
    masses = types.part(arrays.Params, "mass inertia")
    system_of_rows = record(arrays.System, ti.i32, free=types.ints, bodies=types.ints, sweeps=None)

    @kernel
    def forward(
        system: system_of_rows, rows: all_rows, contacts: attitudes, motion: still, impact: met, params: masses,
    ):  # fmt: skip
        for _ in range(1):
            f.mobility(system, rows, contacts, motion, impact, params)

    @kernel
    def adjoint(
        system: system_of_rows, rows: directions, contacts: attitudes, motion: still, impact: met, params: masses,
        adj_rows: all_rows, adj_turns: turns, adj_motion: turned, adj_impact: turned_impact, adj_params: masses,
        adj_attitude: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                system, rows, contacts, motion, impact, params, adj_rows, adj_turns, adj_motion, adj_impact, adj_params
            )  # fmt: skip
            add_turns(motion.q, system.n, adj_motion.theta, adj_motion.q)
            add_turns(impact.q, system.n, adj_impact.theta, adj_impact.q)
            add_turns(contacts.attitude, 2 * system.M, adj_turns.attitude, adj_attitude)

    @kernel
    def tangent(
        system: system_of_rows, rows: directions, contacts: attitudes, motion: still, impact: met, params: masses,
        drows: all_rows, dturns: turns, dmotion: still, dimpact: met, dparams: masses,
    ):  # fmt: skip
        for _ in range(1):
            f.jvp(system, rows, contacts, motion, impact, params, drows, dturns, dmotion, dimpact, dparams)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Mobility(Function):
    """Inverse mass [n], spin changes of both bodies [N, 2 S] and moments [N, 2 S] of the rows. Saved: all inputs.

    `active` [M] is the state of each contact. Inputs: row [N, W], orientation [n, R], that of the joint rows [n, R],
    attitude [M, 2 R], mass [n], inertia [n, S].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, active: Tensor, *inputs: Tensor) -> tuple[Any, ...]:
        ctx.model = model
        ctx.save_for_backward(active, *inputs)
        dtype = inputs[0].dtype
        found = np.empty(model.bodies, dtype), *np.zeros((2, model.rows, 2 * model.spins), dtype)
        row, q, q_impact, attitude, mass, inertia = inputs
        _kernels(model).forward(
            _system(model),
            flat(arrays.Rows(row, None, None, None, *found)),
            flat(arrays.Contacts(attitude=attitude, active=active)),
            flat(arrays.Motion(q=q)),
            flat(arrays.Impact(q=q_impact)),
            flat(arrays.Params(mass, inertia)),
        )
        return found

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, *inputs = ctx.saved_tensors
        row, q, q_impact, attitude, mass, inertia = inputs
        places = model.bodies, model.bodies, 2 * model.contacts
        adj_theta, adj_impact_theta, adj_turns = [np.zeros(n * model.spins, row.dtype) for n in places]
        adjoints = zeros_like(*inputs)
        adj_row, adj_q, adj_q_impact, adj_attitude, *adj_params = adjoints
        _kernels(model).adjoint(
            _system(model),
            flat(arrays.Rows(row)),
            flat(arrays.Contacts(attitude=attitude, active=active)),
            flat(arrays.Motion(q=q)),
            flat(arrays.Impact(q=q_impact)),
            flat(arrays.Params(mass, inertia)),
            flat(arrays.Rows(adj_row, None, None, None, *adj_outputs)),
            flat(arrays.Contacts(attitude=adj_turns)),
            flat(arrays.Motion(q=adj_q, theta=adj_theta)),
            flat(arrays.Impact(q=adj_q_impact, theta=adj_impact_theta)),
            flat(arrays.Params(*adj_params)),
            *flatten(adj_attitude),
        )
        return None, None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, *tangents: Any) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, row, q, q_impact, attitude, mass, inertia = ctx.saved_tensors
        drow, dq, dq_impact, dattitude, *dparams = tangents
        found = np.empty(model.bodies, row.dtype), *np.zeros((2, model.rows, 2 * model.spins), row.dtype)
        _kernels(model).tangent(
            _system(model),
            flat(arrays.Rows(row)),
            flat(arrays.Contacts(attitude=attitude, active=active)),
            flat(arrays.Motion(q=q)),
            flat(arrays.Impact(q=q_impact)),
            flat(arrays.Params(mass, inertia)),
            flat(arrays.Rows(drow, None, None, None, *found)),
            flat(arrays.Contacts(attitude=dattitude)),
            flat(arrays.Motion(q=dq)),
            flat(arrays.Impact(q=dq_impact)),
            flat(arrays.Params(*dparams)),
        )
        return found


def _system(model: RigidBodies) -> arrays.System:
    return arrays.System(model.free, model.row_bodies, model.bodies, model.joint_rows, model.contacts)


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
