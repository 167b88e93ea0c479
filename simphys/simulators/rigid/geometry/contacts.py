"""Distances of features that may touch: the gap and the frame of each candidate.

    gap [M]           distance along the normal, negative if they overlap [m]
    frame [M, 3 dim]  unit normal n from b to a, then r_a and r_b, from the centres of both bodies to the contact points

of M candidates (candidates.py) at the bodies' positions [n, dim] and orientations [n, R]. pair.py defines them, and has
the adjoint of one pair. The adjoints by position and by small rotations are sums over candidates, in their order. An
inactive pair has gap = FAR, the first axis as n, both r = 0, and derivative 0.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from .. import rows
from ..arrays import SETTING
from . import feature, pair


@functools.cache
@no_type_check
def loops(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the loops over all candidates of these kinds; for the arguments see rows.py and `Candidates`."""
    at, part, rotate = rows.functions(real, dim), feature.functions(real, dim), rotation.functions(real, dim)
    f = pair.functions(real, dim, kinds)
    numbers, Feature = feature.numbers(dim), part.Feature

    @ti.func
    def feature_of(c, second, body, constants: ti.template(), q: ti.template()) -> Feature:
        """Return the first or the second feature of candidate c."""
        return part.read(constants, (2 * c + second) * numbers, rotate.matrix(at.rotation_of(q, body)))

    @ti.func
    def contacts(model: ti.template(), x: ti.template()):
        for c in range(model.candidates.count):
            i, j = model.candidates.body_a[c], model.candidates.body_b[c]
            a, b = (
                feature_of(c, 0, i, model.candidates.constants, x.orientation),
                feature_of(c, 1, j, model.candidates.constants, x.orientation),
            )
            g, n, r_a, r_b, is_active = f.contact(
                model.candidates.kind[c], at.vec_of(x.position, i) - at.vec_of(x.position, j), a, b
            )
            start = c * 3 * dim
            x.gap[c] = g
            at.put_vec(x.frame, start, n)
            at.put_vec(x.frame, start + dim, r_a)
            at.put_vec(x.frame, start + 2 * dim, r_b)
            if not is_active:
                x.gap[c] = pair.FAR
                for e in range(3 * dim):
                    x.frame[start + e] = 0.0
                x.frame[start] = 1.0

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
                a, b = (
                    feature_of(c, 0, i, model.candidates.constants, x.orientation),
                    feature_of(c, 1, j, model.candidates.constants, x.orientation),
                )
                adj_d, adj_theta_a, adj_theta_b = f.adj(
                    model.candidates.kind[c], at.vec_of(x.position, i) - at.vec_of(x.position, j), a, b,
                    x.gap[c], at.vec_at(x.frame, start),
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
            start, i, j = c * 3 * dim, model.candidates.body_a[c], model.candidates.body_b[c]
            dgap, dn, dr_a, dr_b = real(0.0), at.vec(0.0), at.vec(0.0), at.vec(0.0)
            if x.gap[c] < pair.FAR:
                a, b = (
                    feature_of(c, 0, i, model.candidates.constants, x.orientation),
                    feature_of(c, 1, j, model.candidates.constants, x.orientation),
                )
                dgap, dn, dr_a, dr_b = f.jvp(
                    model.candidates.kind[c], at.vec_of(x.position, i) - at.vec_of(x.position, j), a, b,
                    x.gap[c], at.vec_at(x.frame, start),
                    at.vec_of(dx.position, i) - at.vec_of(dx.position, j),
                    at.turn_of(x.orientation, dx.orientation, i), at.turn_of(x.orientation, dx.orientation, j),
                )  # fmt: skip
            dx.gap[c] = dgap
            at.put_vec(dx.frame, start, dn)
            at.put_vec(dx.frame, start + dim, dr_a)
            at.put_vec(dx.frame, start + 2 * dim, dr_b)

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
