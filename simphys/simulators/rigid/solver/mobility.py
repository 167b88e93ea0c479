"""Mobility: each row as the coefficients of velocities in it, and as the changes of velocities by its unit impulse.

    jacobian = J, that is (l, m~_a) and (-l, -m~_b)         coefficients of both bodies' velocities in the row
    response = P = M^-1 J^T, (l/m, A^-1 m_a) and -(l/m, A^-1 m_b)       their changes by an impulse of 1; 0 if fixed

with l and the moments m_a, m_b of the row (rows.py), the mass m and the inverse inertia in the world frame A^-1 = R
diag(1/J) R^T. R is taken at the time of the row: for joints at the impact that splits the step (split_step.py), for
contacts it is `attitude` (time_of_impact.py). Adjoint: adj_m = -adj_(1/m) / m^2, and that of A^-1 m in inertia.py.

In space, w is the spin at the time of the forces. A free body keeps its angular momentum L = A w while A rotates with
it. At the time of a row, with inertia A_t, its spin is A_t^-1 A w. The row measures

    m.(A_t^-1 A w) = m~.w,   m~ = A A_t^-1 m        and an impulse of 1 changes L by m, hence w by A^-1 m,

with m~ its moment. Otherwise derivatives by the time of an impact would miss the gyroscopic torque on the added spin,
and be wrong for any step size. In the plane, and for equal moments of inertia, m~ = m.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, Functions, routine

from ..arrays import SETTING
from ..contacts.islands import NONE
from ..motion import inertia
from ..rows import (
    add,
    add_to_row,
    add_turn_of,
    angular,
    half_of,
    join,
    linear,
    orientation_of,
    put,
    read,
    row_of,
)


@ti.func
def is_active(k, model: ti.template(), x: ti.template()):
    """Return True if row k is active: a joint row, or a row of an active contact."""
    found = True
    if k >= model.joint_rows:
        found = x.active[(k - model.joint_rows) // model.dim] > NONE
    return found


@ti.func
def free_body(k, side, model: ti.template()):
    """Return a body of row k, or -1 if no impulse moves it."""
    block = k
    if k >= model.joint_rows:
        block = model.joint_rows + (k - model.joint_rows) // model.dim
    body = model.row_bodies[2 * block + side]
    if body >= 0:  # noqa: SIM102 - read only if it exists
        if model.free[body] == 0:
            body = -1
    return body


@ti.func
def attitude_at(k, side, body, model: ti.template(), q_impact: ti.template(), attitude: ti.template()):
    """Return the orientation of a body at the time of row k, or its tangent; q_impact is that of the joint rows."""
    found = row_of(q_impact, body)
    if k >= model.joint_rows:
        found = half_of(attitude, (k - model.joint_rows) // model.dim, side)
    return found


@ti.func
def side_of(k, side, model: ti.template(), row: ti.template()):
    """Return l and the moment of a body in row k, or their tangents, with the sign of the body."""
    dim, S = ti.static(model.dim, model.freedoms - model.dim)
    at = k * row.width
    return read(row, at, dim), read(row, at + dim + side * S, S), 1.0 - 2.0 * side


@ti.func
def mobility(model: ti.template(), x: ti.template()):
    for k in range(model.joint_rows + model.contacts * model.dim):
        if is_active(k, model, x):
            for side in range(2):
                body, to = free_body(k, side, model), (2 * k + side) * model.freedoms
                direction, m, sign = side_of(k, side, model, x.row)
                moment, v, spin = m, 0.0 * direction, 0.0 * m
                if body >= 0:
                    q = attitude_at(k, side, body, model, x.q_impact, x.attitude)
                    J = row_of(x.inertia, body)
                    v = 1.0 / x.mass[body] * direction
                    spin = inertia.apply_at(q, inertia.invert(J), m)
                    if ti.static(model.dim == 3):
                        now = orientation_of(x.orientation, body)
                        moment = inertia.apply_at(now, J, spin)
                        spin = inertia.apply_at(now, inertia.invert(J), m)
                put(x.jacobian, to, sign * join(direction, moment))
                put(x.response, to, sign * join(v, spin))


@ti.func
def adj_mobility(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    D, R = ti.static(model.freedoms, x.q_impact.width)
    for k in range(model.joint_rows + model.contacts * model.dim):
        if is_active(k, model, x):
            for side in range(2):
                body, at = free_body(k, side, model), (2 * k + side) * D
                direction, m, sign = side_of(k, side, model, x.row)
                given, g_P = sign * read(adj_x.jacobian, at, D), sign * read(adj_x.response, at, D)
                g_l, g_m, g = linear(given), angular(given), angular(g_P)
                if body >= 0:
                    inverse_mass = 1.0 / x.mass[body]
                    g_l += inverse_mass * linear(g_P)
                    change = inverse_mass * inverse_mass * direction.dot(linear(g_P))
                    adj_x.mass[body] = adj_x.mass[body] - change
                    q = attitude_at(k, side, body, model, x.q_impact, x.attitude)
                    T, J = rotation.matrix(q), row_of(x.inertia, body)
                    g_T, g_inverse = 0.0 * m, 0.0 * J
                    if ti.static(model.dim == 3):
                        now = rotation.matrix(orientation_of(x.orientation, body))
                        g_J, g_spin, g_now = inertia.adj_apply(now, J, inertia.apply(T, inertia.invert(J), m), g_m)
                        g_inverse, g_m, g_T = inertia.adj_apply(T, inertia.invert(J), m, g_spin)
                        more_g_inverse, more_g_m, more_g_now = inertia.adj_apply(now, inertia.invert(J), m, g)
                        g_m += more_g_m
                        g_inverse += more_g_inverse
                        add_turn_of(adj_x.orientation, x.orientation, body, g_now + more_g_now)
                        add_to_row(adj_x.inertia, body, g_J)
                    else:
                        g_inverse, more_g_m, g_T = inertia.adj_apply(T, inertia.invert(J), m, g)
                        g_m += more_g_m
                    add_to_row(adj_x.inertia, body, inertia.adj_invert(J, g_inverse))
                    if k >= model.joint_rows:
                        c = (k - model.joint_rows) // model.dim
                        add(adj_x.attitude, (2 * c + side) * R, rotation.adj_turn(q, g_T))
                    else:
                        add_turn_of(adj_x.q_impact, x.q_impact, body, g_T)
                add(adj_x.row, k * x.row.width, g_l)
                add(adj_x.row, k * x.row.width + model.dim + side * (D - model.dim), g_m)


Mobility = routine(
    "Mobility",
    Functions(mobility, adj_mobility),
    Fields(
        given=("active", "row", "orientation", "q_impact", "attitude", "mass", "inertia"),
        results=("jacobian", "response"),
        choices=("active",),
    ),
    SETTING,
    of_model=("free", "row_bodies", "joint_rows", "contacts", "dim", "freedoms"),
)
"""Coefficients J [N, 2 D] of both bodies' velocities in the rows, and changes P [N, 2 D] of these by unit impulses.

`active` [M] is the state of each contact, q_impact [n, R] the orientation of joint rows, attitude [M, 2 R] that of
contacts, inertia [n, S] or, of full tensors, [n, 6].
"""
