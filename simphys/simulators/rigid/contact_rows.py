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

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from . import basis, rows
from .arrays import SETTING
from .islands import NONE, REST


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
    def contact_rows(model: ti.template(), x: ti.template()):
        """Write the rows of active contacts; those of all others are left unchanged."""
        for c in range(model.contacts):
            if x.active[c] > NONE:
                a, b, frame_c = (
                    model.row_bodies[2 * (model.joint_rows + c)],
                    model.row_bodies[2 * (model.joint_rows + c) + 1],
                    c * 3 * dim,
                )
                n, r_a, r_b = (
                    at.vec_at(x.frame, frame_c),
                    at.vec_at(x.frame, frame_c + dim),
                    at.vec_at(x.frame, frame_c + 2 * dim),
                )
                T = normal_and_tangents.basis(n)
                for j in ti.static(range(dim)):
                    for e in ti.static(range(dim)):
                        x.contact_row[(c * dim + j) * W + e] = T[j, e]
                for j in range(dim):
                    r = (c * dim + j) * W
                    direction = at.vec_at(x.contact_row, r)
                    at.put_spin(x.contact_row, r + dim, rotate.moment(r_a, direction))
                    at.put_spin(x.contact_row, r + dim + spins, rotate.moment(r_b, direction))
                    x.contact_target[c * dim + j] = 0.0
                if x.active[c] == REST:
                    x.contact_target[c * dim] = ti.min(-x.gap[c] / model.dt, model.rest_speed)
                x.limit[c] = pair_mean(x.friction, a, b)
                x.bounce[c] = pair_mean(x.restitution, a, b)

    @ti.func
    def adj_contact_rows(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        """Add to the adjoints of the inputs; adj_row is overwritten."""
        for c in range(model.contacts):
            if x.active[c] > NONE:
                a, b, frame_c = (
                    model.row_bodies[2 * (model.joint_rows + c)],
                    model.row_bodies[2 * (model.joint_rows + c) + 1],
                    c * 3 * dim,
                )
                n, r_a, r_b = (
                    at.vec_at(x.frame, frame_c),
                    at.vec_at(x.frame, frame_c + dim),
                    at.vec_at(x.frame, frame_c + 2 * dim),
                )
                r = c * dim * W
                add_pair_mean(adj_x.friction, a, b, adj_x.limit[c])
                add_pair_mean(adj_x.restitution, a, b, adj_x.bounce[c])
                if x.active[c] == REST and -x.gap[c] / model.dt < model.rest_speed:
                    adj_x.gap[c] = adj_x.gap[c] - adj_x.contact_target[c * dim] / model.dt
                adj_r_a, adj_r_b = vec(0.0), vec(0.0)
                for j in range(dim):
                    r_j = r + j * W
                    direction = at.vec_at(x.contact_row, r_j)
                    adj_m_a, adj_m_b = (
                        at.spin_at(adj_x.contact_row, r_j + dim),
                        at.spin_at(adj_x.contact_row, r_j + dim + spins),
                    )
                    adj_r_a += rotate.adj_cross(adj_m_a, direction)
                    adj_r_b += rotate.adj_cross(adj_m_b, direction)
                    at.add_vec(adj_x.contact_row, r_j, rotate.cross(adj_m_a, r_a) + rotate.cross(adj_m_b, r_b))
                G = mat(0.0)
                for j, e in ti.static(ti.ndrange(dim, dim)):
                    G[j, e] = adj_x.contact_row[r + j * W + e]
                at.add_vec(adj_x.frame, frame_c, normal_and_tangents.adj(n, G))
                at.add_vec(adj_x.frame, frame_c + dim, adj_r_a)
                at.add_vec(adj_x.frame, frame_c + 2 * dim, adj_r_b)

    @ti.func
    def jvp_contact_rows(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Write the tangents of the rows of active contacts."""
        for c in range(model.contacts):
            if x.active[c] > NONE:
                a, b, frame_c = (
                    model.row_bodies[2 * (model.joint_rows + c)],
                    model.row_bodies[2 * (model.joint_rows + c) + 1],
                    c * 3 * dim,
                )
                r_a, r_b = at.vec_at(x.frame, frame_c + dim), at.vec_at(x.frame, frame_c + 2 * dim)
                dr_a, dr_b = at.vec_at(dx.frame, frame_c + dim), at.vec_at(dx.frame, frame_c + 2 * dim)
                dT = normal_and_tangents.jvp(at.vec_at(x.frame, frame_c), at.vec_at(dx.frame, frame_c))
                for j in ti.static(range(dim)):
                    for e in ti.static(range(dim)):
                        dx.contact_row[(c * dim + j) * W + e] = dT[j, e]
                for j in range(dim):
                    r = (c * dim + j) * W
                    direction, dl = at.vec_at(x.contact_row, r), at.vec_at(dx.contact_row, r)
                    at.put_spin(dx.contact_row, r + dim, rotate.moment(dr_a, direction) + rotate.moment(r_a, dl))
                    at.put_spin(
                        dx.contact_row, r + dim + spins, rotate.moment(dr_b, direction) + rotate.moment(r_b, dl)
                    )
                    dx.contact_target[c * dim + j] = 0.0
                if x.active[c] == REST and -x.gap[c] / model.dt < model.rest_speed:
                    dx.contact_target[c * dim] = -dx.gap[c] / model.dt
                dx.limit[c] = pair_mean(dx.friction, a, b)
                dx.bounce[c] = pair_mean(dx.restitution, a, b)

    return SimpleNamespace(forward=contact_rows, adjoint=adj_contact_rows, tangent=jvp_contact_rows)


ContactRows = routine(
    "ContactRows",
    loops,
    Fields(
        given=("active", "gap", "frame", "friction", "restitution"),
        results=("contact_row", "contact_target", "limit", "bounce"),
        choices=("active",),
    ),
    SETTING,
    of_model=("row_bodies", "joint_rows", "contacts", "dt", "rest_speed"),
)
"""Rows [dim M, W], targets [dim M], limits [M] and bounces [M]; `active` [M] is the state of each contact."""
