"""Forces on charges, of each other and of a uniform external field, and the motion that follows from them.

With d = x_i - x_j and r = (d.d + s^2)^(-1/2), the force on body i of the pair (i, j) is

    f = k q_i q_j r^3 d                                                     [N]

and that on body j is -f. q charge [C], k coupling [N m^2/C^2], s softening [m]. Adjoint, for z = adj_f, with
w = r^3 d.z:

    adj_d = k q_i q_j (r^3 z - 3 r^2 w d)        adj_k = q_i q_j w
    adj_q_i = k q_j w     adj_q_j = k q_i w      adj_s = -3 s r^2 k q_i q_j w

The force of the field E [N/C] is F_i = q_i E [N]. Adjoint, for g = adj_F:

    adj_q_i = E.g_i     adj_E = sum_i q_i g_i

A kick by a force takes a time h, then a drift at the new velocity a time e:

    v' = v + (h/m) f
    x' = x + e v'

h and e [s] are those of one stage (see Charges.stages), m mass [kg]. Adjoint, with w = adj_v' + e adj_x':

    adj_x = adj_x'     adj_v = w     adj_f = (h/m) w     adj_m = -(h/m^2) f.w

Sources: Coulomb's law with the softening of Aarseth 1963; symplectic Euler and velocity Verlet, Hairer, Lubich and
Wanner 2003. The adjoints are transposes of the Jacobians.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.drift import drift
from simphys.numerics.element import element
from simphys.numerics.kick import kick
from simphys.substep import pairs, per_element


@element
def pair_force(d, q_i, q_j, k, s):
    r = 1 / ti.sqrt(d.dot(d) + s * s)
    return (k * q_i) * (q_j * r * r * r) * d


@pair_force.adjoint
def adj_pair_force(d, q_i, q_j, k, s, adj_f):
    r = 1 / ti.sqrt(d.dot(d) + s * s)
    p = q_j * (r * r * r)
    w = d.dot(adj_f)
    e, h = p * w, 3 * r * r
    K = k * q_i
    return K * p * (adj_f - (h * w) * d), k * e, K * (r * r * r) * w, q_i * e, -(s * K) * (h * e)


@element
def field_force(q, E):
    return q * E


@field_force.adjoint
def adj_field_force(q, E, adj_f):
    return E.dot(adj_f), q * adj_f


ChargeForce = pairs(
    pair_force,
    over="bodies",
    between={"d": "position"},
    both={("q_i", "q_j"): "charge"},
    shared={"k": "coupling", "s": "softening"},
    onto="charge_force",
)
"""Forces [n, dim] [N] of all charges on each other, at position [n, dim]; charge is [n]."""

FieldForce = per_element(
    field_force, over="bodies", own={"q": "charge"}, shared={"E": "field"}, results={"field_force": "E"}
)
"""Forces [n, dim] [N] of the field [dim] on charges [n]."""

Kick = per_element(
    kick,
    over="bodies",
    own={"v": "velocity", "f": "force", "m": "mass"},
    constant={"h": "kick"},
    results={"velocity": "v"},
)
"""Velocity [n, dim] after a kick."""

Drift = per_element(
    drift, over="bodies", own={"x": "position", "v": "velocity"}, constant={"e": "drift"}, results={"position": "x"}
)
"""Position [n, dim] after a drift."""
