"""Deformation: the deformation gradient of a particle follows its velocity gradient.

    F~ = (I + h C) F

F deformation gradient, C velocity gradient [1/s], h time step [s]; F~ is the trial deformation of the constitutive law.
Adjoint, for G = adj_F~:

    adj_F = G + h C^T G      adj_C = h G F^T

Source: Hu et al. 2018 (MLS-MPM), eq. 17.
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def deform(C, F, h):
    return F + h * (C @ F)


@deform.adjoint
def adj_deform(C, F, h, adj_F):
    return h * (adj_F @ F.transpose()), adj_F + h * (C.transpose() @ adj_F)


Deform = per_element(
    deform,
    over="particles",
    own={"C": "affine", "F": "deformation"},
    constant={"h": "dt"},
    results={"trial_deformation": "F"},
)
"""Trial deformation F~ [n, dim, dim]."""
