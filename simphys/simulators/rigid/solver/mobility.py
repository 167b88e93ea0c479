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
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from .. import rows
from ..arrays import SETTING
from ..contacts.islands import NONE
from ..motion import inertia


def row_bodies(real: Any, dim: int) -> SimpleNamespace:
    """Return functions that find the bodies of row k, and their orientations at its time.

    q is the orientation in which forces act, q_impact that of the joint rows; `attitude` is [M, 2 R].
    """
    at = rows.functions(real, dim)
    R = at.rotations

    @ti.func
    def is_active(k, NJ, active: ti.template()):
        """Return True if row k is active: a joint row, or a row of an active contact."""
        found = True
        if k >= NJ:
            found = active[(k - NJ) // dim] > NONE
        return found

    @ti.func
    def free_body(k, side, model: ti.template()):
        """Return a body of row k, or -1 if no impulse moves it."""
        NJ, block = model.joint_rows, k
        if k >= NJ:
            block = NJ + (k - NJ) // dim
        body = model.row_bodies[2 * block + side]
        if body >= 0:  # noqa: SIM102 - read only if it exists
            if model.free[body] == 0:
                body = -1
        return body

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
        return rotation.matrix(orientation)

    return SimpleNamespace(
        is_active=is_active, free_body=free_body, attitude_index=attitude_index, rotation_at=rotation_at
    )


def forward(real: Any, dim: int, moments: int) -> Any:
    """Return the loop over all bodies and rows; for its arguments see rows.py. `bodies` are those of all rows."""
    at, row, at_J = rows.functions(real, dim), row_bodies(real, dim), rows.moments_of_bodies(real, moments)
    S = at.spins
    W = dim + 2 * S

    @ti.func
    def mobility(model: ti.template(), x: ti.template()):
        for b in range(model.bodies):
            x.inverse_mass[b] = model.free[b] / x.mass[b]
        for k in range(model.joint_rows + model.contacts * dim):
            if row.is_active(k, model.joint_rows, x.active):
                for side in range(2):
                    body, to = row.free_body(k, side, model), (2 * k + side) * S
                    m = at.spin_at(x.row, k * W + dim + side * S)
                    at.put_spin(x.spin_change, to, at.spin(0.0))
                    at.put_spin(x.moment, to, m)
                    if body >= 0:
                        T = row.rotation_at(k, side, body, model.joint_rows, x.q_impact, x.attitude)
                        J = at_J.read(x.inertia, body)
                        if ti.static(dim == 3):
                            now = rotation.matrix(at.rotation_of(x.orientation, body))
                            at.put_spin(x.spin_change, to, inertia.apply(now, inertia.invert(J), m))
                            at.put_spin(x.moment, to, inertia.apply(now, J, inertia.apply(T, inertia.invert(J), m)))
                        else:
                            at.put_spin(x.spin_change, to, inertia.apply(T, inertia.invert(J), m))

    return mobility


def adjoint(real: Any, dim: int, moments: int) -> Any:
    """Return the adjoint of `mobility`."""
    at, row, at_J = rows.functions(real, dim), row_bodies(real, dim), rows.moments_of_bodies(real, moments)
    S = at.spins
    W = dim + 2 * S

    @ti.func
    def adj_mobility(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for b in range(model.bodies):
            m = x.mass[b]
            change = model.free[b] * adj_x.inverse_mass[b] / (m * m)
            adj_x.mass[b] = adj_x.mass[b] - change
        for k in range(model.joint_rows + model.contacts * dim):
            if row.is_active(k, model.joint_rows, x.active):
                for side in range(2):
                    body = row.free_body(k, side, model)
                    m_offset, g_offset = k * W + dim + side * S, (2 * k + side) * S
                    m, g = at.spin_at(x.row, m_offset), at.spin_at(adj_x.spin_change, g_offset)
                    g_m = at.spin_at(adj_x.moment, g_offset)
                    if body >= 0:
                        T = row.rotation_at(k, side, body, model.joint_rows, x.q_impact, x.attitude)
                        J, g_T, g_inverse = at_J.read(x.inertia, body), at.spin(0.0), at_J.kind(0.0)
                        if ti.static(dim == 3):
                            now = rotation.matrix(at.rotation_of(x.orientation, body))
                            g_J, g_spin, g_now = inertia.adj_apply(now, J, inertia.apply(T, inertia.invert(J), m), g_m)
                            g_inverse, g_m, g_T = inertia.adj_apply(T, inertia.invert(J), m, g_spin)
                            more_g_inverse, more_g_m, more_g_now = inertia.adj_apply(now, inertia.invert(J), m, g)
                            g_m += more_g_m
                            g_inverse += more_g_inverse
                            at.add_turn_of(adj_x.orientation, x.orientation, body, g_now + more_g_now)
                            at_J.add(adj_x.inertia, body, g_J)
                        else:
                            g_inverse, more_g_m, g_T = inertia.adj_apply(T, inertia.invert(J), m, g)
                            g_m += more_g_m
                        at_J.add(adj_x.inertia, body, inertia.adj_invert(J, g_inverse))
                        if k >= model.joint_rows:
                            at.add_turn_of(
                                adj_x.attitude, x.attitude, row.attitude_index(k, side, model.joint_rows), g_T
                            )
                        else:
                            at.add_turn_of(adj_x.q_impact, x.q_impact, body, g_T)
                    at.add_spin(adj_x.row, m_offset, g_m)

    return adj_mobility


def tangent(real: Any, dim: int, moments: int) -> Any:
    """Return the tangent of `mobility`."""
    at, row, at_J = rows.functions(real, dim), row_bodies(real, dim), rows.moments_of_bodies(real, moments)
    R, S = at.rotations, at.spins
    W = dim + 2 * S

    @ti.func
    def jvp_rotation_at(k, side, body, NJ, x: ti.template(), dx: ti.template()):
        """Return the small rotation, at the time of a row, of one of its bodies."""
        turned = at.spin(0.0)
        if k >= NJ:
            r = row.attitude_index(k, side, NJ) * R
            turned = rotation.jvp_turn(at.rotation_at(x.attitude, r), at.rotation_at(dx.attitude, r))
        else:
            turned = at.turn_of(x.q_impact, dx.q_impact, body)
        return turned

    @ti.func
    def jvp_mobility(model: ti.template(), x: ti.template(), dx: ti.template()):
        for b in range(model.bodies):
            dx.inverse_mass[b] = -model.free[b] * dx.mass[b] / (x.mass[b] * x.mass[b])
        for k in range(model.joint_rows + model.contacts * dim):
            if row.is_active(k, model.joint_rows, x.active):
                for side in range(2):
                    body, to = row.free_body(k, side, model), (2 * k + side) * S
                    m_offset = k * W + dim + side * S
                    m, dm = at.spin_at(x.row, m_offset), at.spin_at(dx.row, m_offset)
                    dspin_change, dmoment = at.spin(0.0), dm
                    if body >= 0:
                        T = row.rotation_at(k, side, body, model.joint_rows, x.q_impact, x.attitude)
                        dtheta = jvp_rotation_at(k, side, body, model.joint_rows, x, dx)
                        J, dJ = at_J.read(x.inertia, body), at_J.read(dx.inertia, body)
                        dinverse = inertia.jvp_invert(J, dJ)
                        dspin_change = inertia.jvp_apply(T, inertia.invert(J), m, dtheta, dinverse, dm)
                        if ti.static(dim == 3):
                            now = rotation.matrix(at.rotation_of(x.orientation, body))
                            dnow = at.turn_of(x.orientation, dx.orientation, body)
                            spin = inertia.apply(T, inertia.invert(J), m)
                            dmoment = inertia.jvp_apply(now, J, spin, dnow, dJ, dspin_change)
                            dspin_change = inertia.jvp_apply(now, inertia.invert(J), m, dnow, dinverse, dm)
                    at.put_spin(dx.spin_change, to, dspin_change)
                    at.put_spin(dx.moment, to, dmoment)

    return jvp_mobility


@functools.cache
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies and rows: `mobility`, its adjoint and its tangent."""
    return make_loops(real, dim, 1 if dim == 2 else 3)


@functools.cache
def loops_of_tensors(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops for full tensors of inertia."""
    return make_loops(real, dim, 6)


def make_loops(real: Any, dim: int, moments: int) -> SimpleNamespace:
    """Return the loops for inertias of so many numbers."""
    given = real, dim, moments
    return SimpleNamespace(forward=forward(*given), adjoint=adjoint(*given), tangent=tangent(*given))


ARRAYS = Fields(
    given=("active", "row", "orientation", "q_impact", "attitude", "mass", "inertia"),
    results=("inverse_mass", "spin_change", "moment"),
    choices=("active",),
)
OF_MODEL = ("bodies", "free", "row_bodies", "joint_rows", "contacts")

Mobility = routine("Mobility", loops, ARRAYS, SETTING, of_model=OF_MODEL)
"""Inverse mass [n], spin changes of both bodies [N, 2 S] and moments [N, 2 S] of the rows.

`active` [M] is the state of each contact, q_impact [n, R] the orientation of joint rows, attitude [M, 2 R] that of
contacts.
"""

TensorMobility = routine("TensorMobility", loops_of_tensors, ARRAYS, SETTING, of_model=OF_MODEL)
"""The same for full tensors of inertia, [n, 6]."""
