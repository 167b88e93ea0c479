"""Actuation: a control adds stress to the particles of an actuator, along their fibres.

    tau' = tau + u (F f) (F f)^T                                            [Pa]

f unit vector of the fibre at rest, F deformation gradient, u control of the particle's actuator [Pa]; a positive u
contracts the fibre. Adjoint, for G = adj_tau':

    adj_tau = G      adj_F = u (G + G^T) F f f^T      adj_u = sum of (F f)^T G (F f) over the actuator's particles

Source: the soft robots of Hu et al. 2020 (DiffTaichi).
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def fibre_stress(F, f, u):
    a = F @ f
    return u * a.outer_product(a)


@fibre_stress.adjoint
def adj_fibre_stress(F, f, u, adj_tau):
    a = F @ f
    b = adj_tau @ a
    return (u * (b + adj_tau.transpose() @ a)).outer_product(f), a.dot(b)


FibreStress = per_element(
    fibre_stress,
    over="particles",
    own={"F": "deformation"},
    constant={"f": "fibre"},
    gathered={"u": ("control", "actuator")},
    results={"fibre_stress": "F"},
)
"""Stress [Pa] that actuators add, [n, dim, dim]."""
