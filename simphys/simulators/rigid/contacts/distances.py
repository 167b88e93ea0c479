"""Distances of features that may touch: the gap and the frame of each candidate.

    gap [M]           distance along the normal, negative if they overlap [m]
    frame [M, 3 dim]  unit normal n from b to a, then r_a and r_b, from the centres of both bodies to the contact points

of M candidates (candidates.py) at the bodies' positions [n, dim] and orientations [n, R]. pair.py defines them, and has
the adjoint of one pair. The adjoints by position and by small rotations are sums over candidates, in their order. An
inactive pair has gap = FAR, the first axis as n, both r = 0, and derivative 0.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from .. import rows
from ..arrays import SETTING
from . import feature, pair


def candidates(real: Any, dim: int) -> SimpleNamespace:
    """Return functions that read both features of a candidate, and write its frame."""
    at, part, numbers = rows.functions(real, dim), feature.functions(real, dim), feature.numbers(dim)

    @ti.func
    def read_pair(c, model: ti.template(), x: ti.template()):
        """Return x_a - x_b and both features of candidate c."""
        i, j = model.candidates.body_a[c], model.candidates.body_b[c]
        R_a, R_b = rotation.matrix(at.rotation_of(x.orientation, i)), rotation.matrix(at.rotation_of(x.orientation, j))
        a = part.read(model.candidates.constants, 2 * c * numbers, R_a)
        b = part.read(model.candidates.constants, (2 * c + 1) * numbers, R_b)
        return at.vec_of(x.position, i) - at.vec_of(x.position, j), a, b

    @ti.func
    def put_frame(a: ti.template(), c, n, r_a, r_b):
        at.put_vec(a, c * 3 * dim, n)
        at.put_vec(a, c * 3 * dim + dim, r_a)
        at.put_vec(a, c * 3 * dim + 2 * dim, r_b)

    return SimpleNamespace(read_pair=read_pair, put_frame=put_frame)


@functools.cache
def loops(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the loops over all candidates of these kinds; for the arguments see rows.py and `Candidates`."""
    at, each = rows.functions(real, dim), candidates(real, dim)
    f = pair.functions(real, dim, kinds)

    @ti.func
    def contacts(model: ti.template(), x: ti.template()):
        for c in range(model.candidates.count):
            d, a, b = each.read_pair(c, model, x)
            g, n, r_a, r_b, is_active = f.contact(model.candidates.kind[c], d, a, b)
            x.gap[c] = g
            each.put_frame(x.frame, c, n, r_a, r_b)
            if not is_active:
                x.gap[c] = pair.FAR
                each.put_frame(x.frame, c, at.vec(0.0), at.vec(0.0), at.vec(0.0))
                x.frame[c * 3 * dim] = 1.0

    @ti.func
    def adj_contacts(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        """Add to the adjoints; `found` are the results. Candidates with zero adjoints are skipped."""
        for c in range(model.candidates.count):
            start = c * 3 * dim
            is_idle = adj_x.gap[c] == 0  # False for NaN, which `!= 0` may miss
            for e in range(3 * dim):
                is_idle = is_idle and adj_x.frame[start + e] == 0
            if not is_idle and x.gap[c] < pair.FAR:
                i, j = model.candidates.body_a[c], model.candidates.body_b[c]
                d, a, b = each.read_pair(c, model, x)
                adj_d, adj_theta_a, adj_theta_b = f.adj(
                    model.candidates.kind[c], d, a, b, x.gap[c], at.vec_at(x.frame, start),
                    adj_x.gap[c], at.vec_at(adj_x.frame, start),
                    at.vec_at(adj_x.frame, start + dim), at.vec_at(adj_x.frame, start + 2 * dim),
                )  # fmt: skip
                at.add_vec_of(adj_x.position, i, adj_d)
                at.add_vec_of(adj_x.position, j, -adj_d)
                at.add_turn_of(adj_x.orientation, x.orientation, i, adj_theta_a)
                at.add_turn_of(adj_x.orientation, x.orientation, j, adj_theta_b)

    @ti.func
    def jvp_contacts(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Compute the tangents of the results `found`; those of inactive pairs are 0."""
        for c in range(model.candidates.count):
            i, j = model.candidates.body_a[c], model.candidates.body_b[c]
            dgap, dn, dr_a, dr_b = real(0.0), at.vec(0.0), at.vec(0.0), at.vec(0.0)
            if x.gap[c] < pair.FAR:
                d, a, b = each.read_pair(c, model, x)
                dgap, dn, dr_a, dr_b = f.jvp(
                    model.candidates.kind[c], d, a, b, x.gap[c], at.vec_at(x.frame, c * 3 * dim),
                    at.vec_of(dx.position, i) - at.vec_of(dx.position, j),
                    at.turn_of(x.orientation, dx.orientation, i), at.turn_of(x.orientation, dx.orientation, j),
                )  # fmt: skip
            dx.gap[c] = dgap
            each.put_frame(dx.frame, c, dn, dr_a, dr_b)

    return SimpleNamespace(forward=contacts, adjoint=adj_contacts, tangent=jvp_contacts)


Contacts = routine(
    "Contacts",
    loops,
    Fields(given=("position", "orientation"), results=("gap", "frame")),
    SETTING,
    of_model=("candidates",),
    choose=lambda model: (model.dim, model.candidates.kinds),
)
"""gap [M] and frame [M, 3 dim] of all candidates, at position [n, dim] and orientation [n, R]."""
