"""Rows of the active contacts (time_of_impact.py) under the impulse law, for a step of length h.

The rows of a contact are its normal n and the tangents t, with moments r x n, r x t (rows.py). Its limit is the
friction mu and its bounce the restitution e of the pair. With gap g and a threshold v_rest, the target of the normal at
rest is

    t = min(-g / h, v_rest)

and 0 for tangents and impacts; phases.py adds their targets at the time of impact. At rest, features touch when forces
act next, g + h u = 0, or later: bodies land, stand and slide without a gap. Both sides of g = 0 are treated alike, so
there is no kink. This includes contacts that only other impulses of the step would close. Overlaps are corrected by at
most h v_rest per step.

The tangent of n = (x, y) is (-y, x); those of n = (x, y, z), with s = sign(z), a = -1 / (s + z),

    t1 = (1 + s a x^2, s a x y, -s x)      t2 = (a x y, s + a y^2, -y)

are smooth in n except where its last component changes sign; friction does not depend on their choice. A pair has the
mean of both bodies' friction and restitution; against the world they are the body's own.

Adjoint, for m = r x l: adj_r = l x adj_m, adj_l = adj_m x r; adj_g = -adj_t / h below the bound. At the kink
-g / h = v_rest the target counts as constant.

Source: Stewart and Trinkle 1996, An Implicit Time-Stepping Scheme for Rigid Body Dynamics; Duff et al. 2017, Building
an Orthonormal Basis, Revisited.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.rotation import adj_cross, cross, moment
from simphys.substep import per_element

from ..rows import join, part, split_row, thirds
from .islands import REST


@ti.func
def scale(n):
    """Return s and a, in space."""
    s = ti.select(n[2] < 0, -1.0, 1.0)
    return s, -1.0 / (s + n[2])


@ti.func
def basis(n):
    """Return n and the tangents as rows."""
    if ti.static(n.n == 2):
        return ti.Matrix([[n[0], n[1]], [-n[1], n[0]]])
    else:
        x, y, z = n[0], n[1], n[2]
        s, a = scale(n)
        return ti.Matrix([[x, y, z], [1 + s * a * x * x, s * a * x * y, -s * x], [a * x * y, s + a * y * y, -y]])


@ti.func
def adj_basis(n, g):
    if ti.static(n.n == 2):
        return ti.Vector([g[0, 0] + g[1, 1], g[0, 1] - g[1, 0]])
    else:
        x, y = n[0], n[1]
        s, a = scale(n)
        cross = s * g[1, 1] + g[2, 0]
        adj_a = s * x * x * g[1, 0] + x * y * cross + y * y * g[2, 1]
        return ti.Vector([
            g[0, 0] + 2 * s * a * x * g[1, 0] + a * y * cross - s * g[1, 2],
            g[0, 1] + a * x * cross + 2 * a * y * g[2, 1] - g[2, 2],
            g[0, 2] + a * a * adj_a,
        ])  # fmt: skip


@ti.func
def line(T, j):
    """Return row j of a matrix."""
    return ti.Vector([T[j, e] for e in ti.static(range(T.n))])


@ti.func
def row_along(direction, r_a, r_b):
    return join(direction, join(moment(r_a, direction), moment(r_b, direction)))


@ti.func
def list_rows(T, r_a, r_b):
    """Return the rows along the rows of T, one after the other."""
    rows = join(row_along(line(T, 0), r_a, r_b), row_along(line(T, 1), r_a, r_b))
    if ti.static(T.n == 2):
        return rows
    else:
        return join(rows, row_along(line(T, 2), r_a, r_b))


@element
def contact_rows(active, h, rest_speed, gap, frame, mu_a, mu_b, e_a, e_b, share):
    n, r_a, r_b = thirds(frame)
    target = 0.0 * n
    if active == REST:
        target[0] = ti.min(-gap / h, rest_speed)
    return list_rows(basis(n), r_a, r_b), target, share * (mu_a + mu_b), share * (e_a + e_b)


@contact_rows.adjoint
def adj_contact_rows(
    active, h, rest_speed, gap, frame, mu_a, mu_b, e_a, e_b, share, adj_rows, adj_target, adj_limit, adj_bounce
):
    n, r_a, r_b = thirds(frame)
    T, adj_T, adj_r_a, adj_r_b, adj_gap = basis(n), 0.0 * basis(n), 0.0 * n, 0.0 * n, 0.0
    for j in ti.static(range(n.n)):
        adj_l, adj_ma, adj_mb = split_row(part(adj_rows, j * (adj_rows.n // n.n), adj_rows.n // n.n))
        adj_r_a += adj_cross(adj_ma, line(T, j))
        adj_r_b += adj_cross(adj_mb, line(T, j))
        adj_l += cross(adj_ma, r_a) + cross(adj_mb, r_b)
        for e in ti.static(range(n.n)):
            adj_T[j, e] = adj_l[e]
    if active == REST and -gap / h < rest_speed:
        adj_gap = -adj_target[0] / h
    adj_mu, adj_e = share * adj_limit, share * adj_bounce
    return 0.0, adj_gap, join(adj_basis(n, adj_T), join(adj_r_a, adj_r_b)), adj_mu, adj_mu, adj_e, adj_e


ContactRows = per_element(
    contact_rows,
    over="candidates",
    constant={"h": "h", "rest_speed": "rest_speed"},
    own={"active": "active", "gap": "gap", "frame": "frame"},
    gathered={
        **{"mu_a": ("friction", "candidates.body_a"), "mu_b": ("friction", "candidates.body_b")},
        **{"e_a": ("restitution", "candidates.body_a"), "e_b": ("restitution", "candidates.body_b")},
    },
    of_model={"share": "candidates.share"},
    results={"contact_row": "model.contact_width", "contact_target": "model.dim", "limit": (), "bounce": ()},
)
"""Rows [M, dim W], targets [M, dim], limits [M] and bounces [M]; `active` [M] is the state of each contact.

Those of inactive contacts are never read.
"""
