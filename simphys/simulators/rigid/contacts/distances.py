"""Distances of features that may touch: the gap and the frame of each candidate.

    gap [M]           distance along the normal, negative if they overlap [m]
    frame [M, 3 dim]  unit normal n from b to a, then r_a and r_b, from the centres of both bodies to the contact points

of M candidates (candidates.py) at the bodies' positions [n, dim] and orientations [n, R]. pair.py defines them, and has
the adjoint of one pair. The adjoints by position and by small rotations are sums over candidates, in their order. An
inactive pair has gap = FAR, the first axis as n, both r = 0, and derivative 0.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.substep import Fields, Functions, routine

from ..arrays import SETTING
from ..rows import add_to_row, add_turn_of, frame_of, orientation_of, put_frame, row_of, turn_of
from . import pair
from .feature import adj_centres, jvp_centres, read_features


@ti.func
def read_pair(c, model: ti.template(), x: ti.template()):
    """Return x_a - x_b and both features of candidate c."""
    i, j = model.candidates.body_a[c], model.candidates.body_b[c]
    a, b = read_features(c, model, x, orientation_of(x.orientation, i), orientation_of(x.orientation, j))
    return row_of(x.position, i) - row_of(x.position, j), a, b


@ti.func
def contacts(model: ti.template(), x: ti.template()):
    for c in range(model.candidates.count):
        d, a, b = read_pair(c, model, x)
        g, n, r_a, r_b, is_active = pair.contact(model.candidates.kind[c], d, a, b, model.candidates.kinds)
        x.gap[c] = g
        put_frame(x.frame, c, n, r_a, r_b)
        if not is_active:
            x.gap[c] = pair.FAR
            none = ti.Vector.zero(float, model.dim)
            put_frame(x.frame, c, none, none, none)
            x.frame[c * x.frame.width] = 1.0


@ti.func
def adj_contacts(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Add to the adjoints; `found` are the results. Candidates with zero adjoints are skipped."""
    for c in range(model.candidates.count):
        is_idle, start = adj_x.gap[c] == 0, c * x.frame.width  # False for NaN, which `!= 0` may miss
        for e in range(x.frame.width):
            is_idle = is_idle and adj_x.frame[start + e] == 0
        if not is_idle and x.gap[c] < pair.FAR:
            i, j = model.candidates.body_a[c], model.candidates.body_b[c]
            d, a, b = read_pair(c, model, x)
            n, _, _ = frame_of(x.frame, c)
            g_n, g_ra, g_rb = frame_of(adj_x.frame, c)
            adj_d, adj_theta_a, adj_theta_b = pair.adj_contact(
                model.candidates.kind[c], d, a, b, x.gap[c], n, adj_x.gap[c], g_n, g_ra, g_rb, model.candidates.kinds
            )  # fmt: skip
            adj_centres(c, model, adj_x, a, b, adj_d, g_ra, g_rb)
            add_to_row(adj_x.position, i, adj_d)
            add_to_row(adj_x.position, j, -adj_d)
            add_turn_of(adj_x.orientation, x.orientation, i, adj_theta_a)
            add_turn_of(adj_x.orientation, x.orientation, j, adj_theta_b)


@ti.func
def jvp_contacts(model: ti.template(), x: ti.template(), dx: ti.template()):
    """Compute the tangents of the results `found`; those of inactive pairs are 0."""
    for c in range(model.candidates.count):
        i, j = model.candidates.body_a[c], model.candidates.body_b[c]
        none = ti.Vector.zero(float, model.dim)
        dgap, dn, dr_a, dr_b = 0.0, none, none, none
        if x.gap[c] < pair.FAR:
            d, a, b = read_pair(c, model, x)
            n, _, _ = frame_of(x.frame, c)
            s_a, s_b = jvp_centres(c, model, dx, a, b)
            dd = row_of(dx.position, i) - row_of(dx.position, j) + s_a - s_b
            da = turn_of(x.orientation, dx.orientation, i)
            db = turn_of(x.orientation, dx.orientation, j)
            dgap, dn, dr_a, dr_b = pair.jvp_contact(
                model.candidates.kind[c], d, a, b, x.gap[c], n, dd, da, db, model.candidates.kinds
            )
            dr_a += s_a
            dr_b += s_b
        dx.gap[c] = dgap
        put_frame(dx.frame, c, dn, dr_a, dr_b)


Contacts = routine(
    "Contacts",
    Functions(contacts, adj_contacts, jvp_contacts),
    Fields(given=("position", "orientation", "centre_of_mass"), results=("gap", "frame")),
    SETTING,
    of_model=("candidates", "dim", "is_single", "free_anchors"),
)
"""gap [M] and frame [M, 3 dim] of all candidates, at position [n, dim] and orientation [n, R], with centres of mass
[n, dim] or [0] in the frames of the bodies."""
