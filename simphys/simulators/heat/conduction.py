"""Conduction of heat: between cells and through sides at a fixed temperature [W/m^3], and explicit and implicit steps.

Through the face between a lower cell a and an upper cell b flows, by volume of a cell,

    f = -g (T_b - T_a),      g = k / h^2,      k = 2 k_a k_b / (k_a + k_b)

k is the harmonic mean of the conductivities: that of two half cells in a row. A side at the temperature T_s lies half a
cell from the middle of its cells, so that f = 2 k / h^2 (T_s - T) flows into them. Adjoint of f, with w = adj_f:

    adj_d = -g w  (d = T_b - T_a)      adj_k_a = -(d w / h^2) 2 k_b^2 / (k_a + k_b)^2      adj_k_b likewise

An implicit step takes one linear system. With r = -K T + B T_s + q, the heating before the step, the theta rule
C (T' - T) / dt = r - theta K (T' - T) is solved for x = T' - T:

    A x = r,      A = C / dt + theta K(k)

K(k) x is what a cell loses to its neighbours, and to sides at 0. So A is symmetric: (A x)_i = e_i x_i + sum over the
neighbours j of g_ij (x_i - x_j), with e = C / dt + theta times the coupling with sides, and g = theta times that of
cells. Adjoint, by one more solve, with w = A^-1 adj_x:

    adj_r = w      adj_e = -w x      adj_g_ij = -(w_i - w_j) (x_i - x_j)

Sources: Patankar, Numerical Heat Transfer and Fluid Flow, 1980, section 4.2-3, for the finite volumes; Hairer and
Wanner, Solving Ordinary Differential Equations II, section IV.3, for theta = 1 and 1/2.
"""

from __future__ import annotations

from simphys.numerics.coupled_cells import (
    CoupledCells,
    add_faces,
    adj_couple_faces,
    adj_multiply,
    couple_faces,
    couple_sides,
    jvp_couple_faces,
    multiply,
)
from simphys.numerics.element import element
from simphys.simulator import Array
from simphys.substep import faces, operation, per_element, sides

from .model import Heat


@element
def conduction(d, a, b, h):
    return -2 * a * b / ((a + b) * h * h) * d


@conduction.adjoint
def adj_conduction(d, a, b, h, adj_f):
    g = 2 / ((a + b) * h * h)
    w = g / (a + b) * d * adj_f
    return -g * a * b * adj_f, -b * b * w, -a * a * w


@element
def side_conduction(T, k, T_side, h):
    return 2 * k / (h * h) * (T_side - T)


@side_conduction.adjoint
def adj_side_conduction(T, k, T_side, h, adj_f):
    g = 2 * k / (h * h)
    return -g * adj_f, 2 / (h * h) * (T_side - T) * adj_f, g * adj_f


@element
def warm(T, f, q, C, dt):
    return T + dt / C * (f + q)


@warm.adjoint
def adj_warm(T, f, q, C, dt, adj_T):
    w = dt / C * adj_T
    return adj_T, w, w, -(f + q) / C * w


Conduction = faces(
    conduction,
    onto="heating",
    between={"d": "temperature"},
    both={("a", "b"): "conductivity"},
    constant={"h": "spacing"},
)
"""Heating [*cells] [W/m^3] by the neighbours."""

SideConduction = sides(
    side_conduction,
    onto="side_heating",
    cells={"T": "temperature", "k": "conductivity"},
    of_side={"T_side": "side_temperature"},
    constant={"h": "spacing"},
)
"""Heating [*cells] [W/m^3] by the sides at a fixed temperature."""

Warm = per_element(
    warm,
    over="cells",
    own={"T": "temperature", "f": "heating", "q": "source", "C": "heat_capacity"},
    constant={"dt": "dt"},
    results={"temperature": "T"},
)
"""Temperature [*cells] after an explicit step."""


def couple(model: Heat, conductivity: Array, capacity: Array) -> tuple[Array, Array]:
    e = capacity / model.dt + model.theta * couple_sides(conductivity, model.spacing, model.open_sides)
    return e, model.theta * couple_faces(conductivity, model.spacing)


def adj_couple(model: Heat, conductivity: Array, adj_own: Array, adj_coupling: Array) -> tuple[Array, Array]:
    adj_k = couple_sides(adj_own, model.spacing, model.open_sides)
    adj_k += adj_couple_faces(conductivity, model.spacing, adj_coupling)
    return model.theta * adj_k, adj_own / model.dt


def jvp_couple(model: Heat, conductivity: Array, dconductivity: Array, dcapacity: Array) -> tuple[Array, Array]:
    de = dcapacity / model.dt + model.theta * couple_sides(dconductivity, model.spacing, model.open_sides)
    return de, model.theta * jvp_couple_faces(conductivity, model.spacing, dconductivity)


def relax(model: Heat, heating: Array, own: Array, coupling: Array) -> Array:
    return CoupledCells(add_faces(own, coupling), coupling).solve(heating)


def adj_relax(model: Heat, own: Array, coupling: Array, change: Array, adj_change: Array) -> tuple[Array, Array, Array]:
    w = relax(model, adj_change, own, coupling)
    return w, *adj_multiply(change, -w)


def jvp_relax(
    model: Heat, own: Array, coupling: Array, change: Array, dheating: Array, down: Array, dcoupling: Array
) -> Array:
    return relax(model, dheating - multiply(down, dcoupling, change), own, coupling)


Couple = operation(
    couple,
    adjoint=adj_couple,
    tangent=jvp_couple,
    results={"own": "conductivity", "coupling": lambda model: (model.dim, *model.cells)},
)
"""The matrix of a step: e [*cells] and g [dim, *cells] [W/(m^3 K)]; g of each cell is that with the next one."""

Relax = operation(
    relax,
    adjoint=adj_relax,
    tangent=jvp_relax,
    results={"change": "heating"},
    is_cheap=True,
    work_arrays=10,
)
"""Change of the temperature in the step [*cells] [K], from heating [*cells] [W/m^3] and the matrix."""
