"""Projection to the sphere: directions of length 1, and rates perpendicular to them.

    d' = d / |d|,   w' = w - (w.d') d'

A Runge-Kutta step leaves the sphere by its own error, which is of fifth order in the time step. The projection changes
this error, but not its order. Adjoint: adj_w = adj_w' - (adj_w'.d') d' and adj_d = (q - (q.d') d') / |d|, where
q = adj_d' - (w.d') adj_w' - (adj_w'.d') w is the total adjoint of d'. Source: Hairer, Lubich, Wanner, Geometric
Numerical Integration, section IV.4 (projection methods).
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element


@element
def project_to_sphere(d, w):
    unit = d / ti.sqrt(d.dot(d))
    return unit, w - w.dot(unit) * unit


@project_to_sphere.adjoint
def adj_project_to_sphere(d, w, adj_unit, adj_across):
    size = ti.sqrt(d.dot(d))
    unit = d / size
    q = adj_unit - w.dot(unit) * adj_across - adj_across.dot(unit) * w
    return (q - q.dot(unit) * unit) / size, adj_across - adj_across.dot(unit) * unit


ProjectToSphere = per_element(
    project_to_sphere,
    own={"d": "direction", "w": "rate"},
    results={"direction": "d", "rate": "w"},
)
"""Unit direction [3] and the perpendicular rate [3], from any direction and rate."""
