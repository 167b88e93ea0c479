"""Heat that each cell receives from its neighbours, and from sides at a fixed temperature, by volume [W/m^3].

Through the face between a lower cell a and an upper cell b flows, by volume of a cell,

    f = -g (T_b - T_a),      g = k / h^2,      k = 2 k_a k_b / (k_a + k_b)

k is the harmonic mean of the conductivities: that of two half cells in a row. A side at the temperature T_s lies half a
cell from the middle of its cells, so that f = 2 k / h^2 (T_s - T) flows into them. Adjoint of f, with w = adj_f:

    adj_d = -g w  (d = T_b - T_a)      adj_k_a = -(d w / h^2) 2 k_b^2 / (k_a + k_b)^2      adj_k_b likewise

Source: the finite volume method, Patankar, Numerical Heat Transfer and Fluid Flow, 1980, section 4.2-3.
"""

from simphys.numerics.element import element
from simphys.substep import faces, per_element, sides


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
