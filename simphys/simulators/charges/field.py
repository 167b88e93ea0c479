"""Force of a uniform external field:

    F_i = q_i E                                                             [N]

q charge [C], E field [N/C]. Adjoint, for g = adj_F:

    adj_q_i = E.g_i     adj_E = sum_i q_i g_i
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def field_force(q, E):
    return q * E


@field_force.adjoint
def adj_field_force(q, E, adj_f):
    return E.dot(adj_f), q * adj_f


FieldForce = per_element(
    field_force, over="bodies", own={"q": "charge"}, shared={"E": "field"}, results={"field_force": "E"}
)
"""Forces [n, dim] [N] of the field [dim] on charges [n]."""
