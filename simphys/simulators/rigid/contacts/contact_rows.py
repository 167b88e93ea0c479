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

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, Functions, routine

from ..arrays import SETTING
from ..rows import add, frame_of, put, read
from . import basis
from .islands import NONE, REST


@ti.func
def pair_mean(values: ti.template(), c, model: ti.template()):
    a, b = model.row_bodies[2 * (model.joint_rows + c)], model.row_bodies[2 * (model.joint_rows + c) + 1]
    value = values[a]
    if b >= 0:
        value = 0.5 * (value + values[b])
    return value


@ti.func
def add_pair_mean(values: ti.template(), c, change, model: ti.template()):
    a, b = model.row_bodies[2 * (model.joint_rows + c)], model.row_bodies[2 * (model.joint_rows + c) + 1]
    share = change
    if b >= 0:
        share = 0.5 * change
        values[b] = values[b] + share
    values[a] = values[a] + share


@ti.func
def put_directions(a: ti.template(), c, T):
    """Write the directions of the rows of a contact."""
    for j, e in ti.static(ti.ndrange(T.n, T.n)):
        a[(c * T.n + j) * a.width + e] = T[j, e]


@ti.func
def contact_rows(model: ti.template(), x: ti.template()):
    """Write the rows of active contacts; those of all others are left unchanged."""
    dim, W = ti.static(model.dim, x.contact_row.width)
    spins = ti.static(model.freedoms - dim)
    for c in range(model.contacts):
        if x.active[c] > NONE:
            n, r_a, r_b = frame_of(x.frame, c)
            put_directions(x.contact_row, c, basis.basis(n))
            for j in range(dim):
                r = (c * dim + j) * W
                direction = read(x.contact_row, r, dim)
                put(x.contact_row, r + dim, rotation.moment(r_a, direction))
                put(x.contact_row, r + dim + spins, rotation.moment(r_b, direction))
                x.contact_target[c * dim + j] = 0.0
            if x.active[c] == REST:
                x.contact_target[c * dim] = ti.min(-x.gap[c] / model.dt, model.rest_speed)
            x.limit[c] = pair_mean(x.friction, c, model)
            x.bounce[c] = pair_mean(x.restitution, c, model)


@ti.func
def jvp_contact_rows(model: ti.template(), x: ti.template(), dx: ti.template()):
    """Write the tangents of the rows of active contacts."""
    dim, W = ti.static(model.dim, x.contact_row.width)
    spins = ti.static(model.freedoms - dim)
    for c in range(model.contacts):
        if x.active[c] > NONE:
            n, r_a, r_b = frame_of(x.frame, c)
            dn, dr_a, dr_b = frame_of(dx.frame, c)
            put_directions(dx.contact_row, c, basis.jvp_basis(n, dn))
            for j in range(dim):
                r = (c * dim + j) * W
                direction, dl = read(x.contact_row, r, dim), read(dx.contact_row, r, dim)
                dm_a = rotation.moment(dr_a, direction) + rotation.moment(r_a, dl)
                dm_b = rotation.moment(dr_b, direction) + rotation.moment(r_b, dl)
                put(dx.contact_row, r + dim, dm_a)
                put(dx.contact_row, r + dim + spins, dm_b)
                dx.contact_target[c * dim + j] = 0.0
            if x.active[c] == REST and -x.gap[c] / model.dt < model.rest_speed:
                dx.contact_target[c * dim] = -dx.gap[c] / model.dt
            dx.limit[c] = pair_mean(dx.friction, c, model)
            dx.bounce[c] = pair_mean(dx.restitution, c, model)


@ti.func
def adj_contact_rows(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Add to the adjoints of the inputs; adj_row is overwritten."""
    dim, W = ti.static(model.dim, x.contact_row.width)
    spins = ti.static(model.freedoms - dim)
    for c in range(model.contacts):
        if x.active[c] > NONE:
            n, r_a, r_b = frame_of(x.frame, c)
            add_pair_mean(adj_x.friction, c, adj_x.limit[c], model)
            add_pair_mean(adj_x.restitution, c, adj_x.bounce[c], model)
            if x.active[c] == REST and -x.gap[c] / model.dt < model.rest_speed:
                adj_x.gap[c] = adj_x.gap[c] - adj_x.contact_target[c * dim] / model.dt
            adj_r_a, adj_r_b, G = 0.0 * n, 0.0 * n, 0.0 * basis.basis(n)
            for j in range(dim):
                r = (c * dim + j) * W
                direction = read(x.contact_row, r, dim)
                adj_m_a = read(adj_x.contact_row, r + dim, spins)
                adj_m_b = read(adj_x.contact_row, r + dim + spins, spins)
                adj_r_a += rotation.adj_cross(adj_m_a, direction)
                adj_r_b += rotation.adj_cross(adj_m_b, direction)
                add(adj_x.contact_row, r, rotation.cross(adj_m_a, r_a) + rotation.cross(adj_m_b, r_b))
            for j, e in ti.static(ti.ndrange(dim, dim)):
                G[j, e] = adj_x.contact_row[(c * dim + j) * W + e]
            add(adj_x.frame, c * 3 * dim, basis.adj_basis(n, G))
            add(adj_x.frame, c * 3 * dim + dim, adj_r_a)
            add(adj_x.frame, c * 3 * dim + 2 * dim, adj_r_b)


ContactRows = routine(
    "ContactRows",
    Functions(contact_rows, adj_contact_rows, jvp_contact_rows),
    Fields(
        given=("active", "gap", "frame", "friction", "restitution"),
        results=("contact_row", "contact_target", "limit", "bounce"),
        choices=("active",),
    ),
    SETTING,
    of_model=("row_bodies", "joint_rows", "contacts", "dt", "rest_speed", "dim", "freedoms"),
)
"""Rows [dim M, W], targets [dim M], limits [M] and bounces [M]; `active` [M] is the state of each contact."""
