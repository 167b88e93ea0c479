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

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, Functions, routine

from ..arrays import SETTING
from ..contacts.islands import NONE
from ..motion import inertia
from ..rows import add, add_to_row, add_turn_of, half_of, orientation_of, put, read, row_of, turn_of


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
def moment_offset(k, side, x: ti.template()):
    """Return where the moment of a body is in row k."""
    S = ti.static(x.moment.width // 2)
    return (k + 1) * x.row.width - (2 - side) * S


@ti.func
def mobility(model: ti.template(), x: ti.template()):
    S = ti.static(x.moment.width // 2)
    for b in range(model.bodies):
        x.inverse_mass[b] = model.free[b] / x.mass[b]
    for k in range(model.joint_rows + model.contacts * model.dim):
        if is_active(k, model, x):
            for side in range(2):
                body, to = free_body(k, side, model), (2 * k + side) * S
                m = read(x.row, moment_offset(k, side, x), S)
                put(x.spin_change, to, ti.Vector.zero(float, S))
                put(x.moment, to, m)
                if body >= 0:
                    T = rotation.matrix(attitude_at(k, side, body, model, x.q_impact, x.attitude))
                    J = row_of(x.inertia, body)
                    if ti.static(model.dim == 3):
                        now = rotation.matrix(orientation_of(x.orientation, body))
                        put(x.spin_change, to, inertia.apply(now, inertia.invert(J), m))
                        put(x.moment, to, inertia.apply(now, J, inertia.apply(T, inertia.invert(J), m)))
                    else:
                        put(x.spin_change, to, inertia.apply(T, inertia.invert(J), m))


@ti.func
def adj_mobility(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    S, R = ti.static(x.moment.width // 2, x.q_impact.width)
    for b in range(model.bodies):
        m = x.mass[b]
        change = model.free[b] * adj_x.inverse_mass[b] / (m * m)
        adj_x.mass[b] = adj_x.mass[b] - change
    for k in range(model.joint_rows + model.contacts * model.dim):
        if is_active(k, model, x):
            for side in range(2):
                body, at = free_body(k, side, model), (2 * k + side) * S
                m, g = read(x.row, moment_offset(k, side, x), S), read(adj_x.spin_change, at, S)
                g_m = read(adj_x.moment, at, S)
                if body >= 0:
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
                add(adj_x.row, moment_offset(k, side, x), g_m)


@ti.func
def jvp_mobility(model: ti.template(), x: ti.template(), dx: ti.template()):
    S = ti.static(x.moment.width // 2)
    for b in range(model.bodies):
        dx.inverse_mass[b] = -model.free[b] * dx.mass[b] / (x.mass[b] * x.mass[b])
    for k in range(model.joint_rows + model.contacts * model.dim):
        if is_active(k, model, x):
            for side in range(2):
                body, to, at = free_body(k, side, model), (2 * k + side) * S, moment_offset(k, side, x)
                m, dm = read(x.row, at, S), read(dx.row, at, S)
                dspin_change, dmoment = ti.Vector.zero(float, S), dm
                if body >= 0:
                    q = attitude_at(k, side, body, model, x.q_impact, x.attitude)
                    dq = attitude_at(k, side, body, model, dx.q_impact, dx.attitude)
                    T, dtheta = rotation.matrix(q), rotation.jvp_turn(q, dq)
                    J, dJ = row_of(x.inertia, body), row_of(dx.inertia, body)
                    dinverse = inertia.jvp_invert(J, dJ)
                    dspin_change = inertia.jvp_apply(T, inertia.invert(J), m, dtheta, dinverse, dm)
                    if ti.static(model.dim == 3):
                        now = rotation.matrix(orientation_of(x.orientation, body))
                        dnow = turn_of(x.orientation, dx.orientation, body)
                        spin = inertia.apply(T, inertia.invert(J), m)
                        dmoment = inertia.jvp_apply(now, J, spin, dnow, dJ, dspin_change)
                        dspin_change = inertia.jvp_apply(now, inertia.invert(J), m, dnow, dinverse, dm)
                put(dx.spin_change, to, dspin_change)
                put(dx.moment, to, dmoment)


Mobility = routine(
    "Mobility",
    Functions(mobility, adj_mobility, jvp_mobility),
    Fields(
        given=("active", "row", "orientation", "q_impact", "attitude", "mass", "inertia"),
        results=("inverse_mass", "spin_change", "moment"),
        choices=("active",),
    ),
    SETTING,
    of_model=("bodies", "free", "row_bodies", "joint_rows", "contacts", "dim"),
)
"""Inverse mass [n], spin changes of both bodies [N, 2 S] and moments [N, 2 S] of the rows.

`active` [M] is the state of each contact, q_impact [n, R] the orientation of joint rows, attitude [M, 2 R] that of
contacts, inertia [n, S] or, of full tensors, [n, 6].
"""
