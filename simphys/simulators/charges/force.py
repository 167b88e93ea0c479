"""Force between charges: softened Coulomb attraction and repulsion of all pairs.

With d = x_i - x_j and r = (d.d + s^2)^(-1/2), the force on body i of the pair (i, j) is

    f = k q_i q_j r^3 d                                                     [N]

and that on body j is -f. q charge [C], k coupling [N m^2/C^2], s softening [m]. Adjoint, for z = adj_f, with
w = r^3 d.z:

    adj_d = k q_i q_j (r^3 z - 3 r^2 w d)        adj_k = q_i q_j w
    adj_q_i = k q_j w     adj_q_j = k q_i w      adj_s = -3 s r^2 k q_i q_j w

Source: Coulomb's law with the softening of Aarseth 1963; the adjoint is the transpose of the Jacobian.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import pairs


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


ChargeForce = pairs(
    pair_force,
    over="bodies",
    between={"d": "position"},
    both={("q_i", "q_j"): "charge"},
    shared={"k": "coupling", "s": "softening"},
    onto="charge_force",
)
"""Forces [n, dim] [N] of all charges on each other, at position [n, dim]; charge is [n]."""
