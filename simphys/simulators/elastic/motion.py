"""Velocities and stresses after a step, and the derivatives that they take, for axes i and j of a section or of space.

    v_i' = v_i + b_i f_i                                f_i = sum_j h ds_ij/dx_j

    s_ii' = s_ii + r (lambda t + 2 mu e_i)              e_i = h dv_i/dx_i,   t = sum_j e_j,   r = dt / h
    s_ij' = s_ij + m_ij g_ij                            g_ij = h dv_i/dx_j + h dv_j/dx_i

with the buoyancies b and the moduli m_ij = r mu_ij of medium.py. Adjoint, for p = adj_s_ii' and w = adj_s_ij':

    adj_t = r lambda p      adj_e_i = 2 r mu p      adj_lambda = r t p      adj_mu = 2 r e_i p
    adj_g_ij = m_ij w       adj_m_ij = g_ij w       and likewise for v_i

Those of derivatives take the transposed matrices of `numerics.staggered`.
Sources: Virieux 1986 (equations 2 to 6); Levander 1988 (order 4); Graves 1996 (in space).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from simphys.autograd import Tensor
from simphys.numerics.element import element
from simphys.substep import Along, along, per_element

from .layer import Absorb, profiles
from .model import Elastic


@element
def advance(x, d, m):
    return x + m * d


@advance.adjoint
def adj_advance(x, d, m, adj):
    return adj, m * adj, d * adj


@element
def stretch(s, e, t, lam, mu, r):
    return s + r * (lam * t + 2 * mu * e)


@stretch.adjoint
def adj_stretch(s, e, t, lam, mu, r, p):
    return p, 2 * r * mu * p, r * lam * p, r * t * p, 2 * r * e * p


Accelerate = per_element(
    advance, over="cells", own={"x": "velocity", "d": "force", "m": "buoyancy"}, results={"velocity": "x"}
)
Shear = per_element(advance, over="cells", own={"x": "stress", "d": "shear", "m": "modulus"}, results={"stress": "x"})
Stretch = per_element(
    stretch,
    over="cells",
    own={"s": "stress", "e": "stretch", "t": "dilatation", "lam": "lambda", "mu": "mu"},
    constant={"r": "dt / h"},
    results={"stress": "s"},
)


class Term(NamedTuple):
    """A derivative: of a field, where it lies along its axis (at faces or centres), and that axis."""

    field: str
    place: str
    axis: str


def list_terms(axes: str, field: str) -> tuple[Term, ...]:
    """List the derivatives whose sum changes a field: f of a velocity, e or g of a stress."""
    i, j = field[1], field[-1]
    if field[0] == "v":
        terms = [("".join(sorted(i + k)), "faces" if k == i else "centres", k) for k in axes]
        return tuple([Term(f"s{name}", place, k) for name, place, k in terms])
    if i == j:
        return (Term(f"v{i}", "centres", i),)
    return Term(f"v{i}", "faces", j), Term(f"v{j}", "faces", i)


@cache
def declare_sum(axes: str, field: str, layers: tuple[bool, ...]) -> Any:
    """Declare a sum of derivatives, with the memory of layers across these axes."""
    terms = {}
    for name, place, axis in list_terms(axes, field):
        number = axes.index(axis)
        terms[name] = Along(f"{axis}.{place}", number)
        if layers[number]:
            terms[f"memory_{name}"] = Along(f"{axis}.onto", number, f"layer_{axis}")
    return along({"v": "force"}.get(field[0], "strain") + f"_{field[1:]}", terms)


@cache
def declare_slope(place: str, axis: str, number: int) -> Any:
    """Declare a derivative in the layers across an axis with this name and number."""
    return along(f"slope_{axis}", {"field": Along(f"{axis}.layer_{place}", number)}, over=f"layer_{axis}")


def differentiate(model: Elastic, field: str, fields: dict[str, Tensor]) -> Tensor:
    """Compute the sum of derivatives that changes a field, [*cells], times h; advance the memory in `fields`."""
    axes = model.axes
    layers = tuple([model.count_layers(axis) > 0 for axis in axes])
    inputs = []
    for name, place, axis in list_terms(axes, field):
        inputs.append(fields[name])
        if layers[axes.index(axis)]:
            memory = f"memory_{name}_{axis}"
            slope = declare_slope(place, axis, axes.index(axis)).apply(model, fields[name])
            along_axis = profiles(model, axis, 0.5 if place == "centres" else 0.0)
            fields[memory] = Absorb[axis].apply(model, fields[memory], slope, *along_axis)
            inputs.append(fields[memory])
    made: Tensor = declare_sum(axes, field, layers).apply(model, *inputs)
    return made
