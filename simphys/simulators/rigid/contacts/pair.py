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

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

from . import feature, flat, segments
from .feature import BOX, CORNER, EDGES, PLANE, ROUND

FAR = 1e6
"""Gap of inactive pairs [m]."""


@functools.cache
def functions(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the element functions in `dim` dimensions, for the given kinds: no other is compiled."""
    part = feature.functions(real, dim)
    vec = part.vec
    contact_functions = {PLANE: flat.plane, BOX: flat.box, CORNER: flat.corner, ROUND: segments.round}
    if dim == 3:
        contact_functions[EDGES] = segments.edges
    present = sorted(kinds)
    families = [
        (family, adj, jvp)
        for family, adj, jvp in (
            ((PLANE, BOX, CORNER), flat.adj_flat, flat.jvp_flat),
            ((ROUND, EDGES), segments.adj_segments, segments.jvp_segments),
        )
        if not kinds.isdisjoint(family)
    ]

    @ti.func
    def contact(kind, d, a, b):
        """Return gap, n, r_a, r_b, and True if the pair is active."""
        gap, n, r_a, is_active = real(0.0), vec(0.0), vec(0.0), True
        for each in ti.static(present):
            if kind == each:
                gap, n, r_a, is_active = contact_functions[each](d, a, b)
        return gap, n, r_a, d + r_a - gap * n, is_active

    @ti.func
    def adj_contact(kind, d, a, b, gap, n, g_gap, g_n, g_a, g_b):
        """Return the adjoints of d, theta_a and theta_b, for an active pair with known gap and n."""
        f_gap, f_n, f_r = g_gap - n.dot(g_b), g_n - gap * g_b, g_a + g_b
        adj_d, adj_a, adj_b = vec(0.0), part.spin(0.0), part.spin(0.0)
        for family, adj, _ in ti.static(families):
            if family[0] <= kind <= family[-1]:
                adj_d, adj_a, adj_b = adj(kind, d, a, b, gap, n, f_gap, f_n, f_r)
        return adj_d + g_b, adj_a, adj_b

    @ti.func
    def jvp_contact(kind, d, a, b, gap, n, dd, da, db):
        """Return the tangents of gap, n, r_a and r_b, for an active pair with known gap and n."""
        dgap, dn, dr = real(0.0), vec(0.0), vec(0.0)
        for family, _, jvp in ti.static(families):
            if family[0] <= kind <= family[-1]:
                dgap, dn, dr = jvp(kind, d, a, b, gap, n, dd, da, db)
        return dgap, dn, dr, dd + dr - dgap * n - gap * dn

    return SimpleNamespace(contact=contact, adj=adj_contact, jvp=jvp_contact)
