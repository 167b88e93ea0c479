"""A pair of features that may touch: their gap, normal and contact points.

gap [m] is their distance along the normal, negative if they overlap; n, a unit vector, points from b to a; r_a and r_b
are vectors from the centres of both bodies to the contact points on their surfaces, which differ by the gap:

    x_a + r_a = x_b + r_b + gap n                                           r_b = d + r_a - gap n,  d = x_a - x_b

so that both points coincide when the gap closes. A flag tells if the pair is active (see flat.py, segments.py). The
kind of a pair (feature.py) is known only at run time.

Adjoint, for g_gap, g_n, g_a, g_b: r_b adds -n.g_b to g_gap, -gap g_b to g_n, g_b to g_a and to adj_d. The rest is the
adjoint of the kind, by d and by small rotations theta_a, theta_b of the bodies (numerics/rotation.py). For positions:
adj_x_a = adj_d, adj_x_b = -adj_d. Tangent: dr_b = dd + dr_a - dgap n - gap dn, with those of the kind.
"""

from collections.abc import Sequence

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.rotation import moment

from . import flat, segments
from .feature import BOX, CORNER, EDGES, PLANE, ROUND

FAR = 1e6
"""Gap of inactive pairs [m]."""

CONTACTS = {PLANE: flat.plane, BOX: flat.box, CORNER: flat.corner, ROUND: segments.round, EDGES: segments.edges}
FAMILIES = (
    ((PLANE, BOX, CORNER), flat.adj_flat, flat.jvp_flat),
    ((ROUND, EDGES), segments.adj_segments, segments.jvp_segments),
)


def occur(family: Sequence[int], kinds: Sequence[int]) -> bool:
    """Return True if one of a family is among the kinds of a model: no other is compiled."""
    return not set(family).isdisjoint(kinds)


@ti.func
def contact(kind, d, a, b, kinds: ti.template()):
    """Return gap, n, r_a, r_b, and True if the pair is active."""
    gap, n, r_a, is_active = 0.0, 0.0 * d, 0.0 * d, True
    for each in ti.static(kinds):
        if kind == each:
            gap, n, r_a, is_active = CONTACTS[each](d, a, b)
    return gap, n, r_a, d + r_a - gap * n, is_active


@ti.func
def adj_contact(kind, d, a, b, gap, n, g_gap, g_n, g_a, g_b, kinds: ti.template()):
    """Return the adjoints of d, theta_a and theta_b, for an active pair with known gap and n."""
    f_gap, f_n, f_r = g_gap - n.dot(g_b), g_n - gap * g_b, g_a + g_b
    adj_d, adj_a = 0.0 * d, 0.0 * moment(d, d)
    adj_b = adj_a
    for family, adj, _ in ti.static(FAMILIES):
        if ti.static(occur(family, kinds)):  # noqa: SIM102 - decided when compiling
            if family[0] <= kind <= family[-1]:
                adj_d, adj_a, adj_b = adj(kind, d, a, b, gap, n, f_gap, f_n, f_r)
    return adj_d + g_b, adj_a, adj_b


@ti.func
def jvp_contact(kind, d, a, b, gap, n, dd, da, db, kinds: ti.template()):
    """Return the tangents of gap, n, r_a and r_b, for an active pair with known gap and n."""
    dgap, dn, dr = 0.0, 0.0 * d, 0.0 * d
    for family, _, jvp in ti.static(FAMILIES):
        if ti.static(occur(family, kinds)):  # noqa: SIM102 - decided when compiling
            if family[0] <= kind <= family[-1]:
                dgap, dn, dr = jvp(kind, d, a, b, gap, n, dd, da, db)
    return dgap, dn, dr, dd + dr - dgap * n - gap * dn
