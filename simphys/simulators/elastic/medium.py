"""Moduli and densities at the places where the fields live, from speeds and densities in cells.

    mu = rho vs^2          lambda = rho (vp^2 - 2 vs^2)

    b_i = n_i / mean_i(rho)          m_ij = n_ij / mean_ij(1/mu)          n = 0 or dt / h

b are buoyancies at faces across i, with arithmetic means of the density there; m_ij are moduli at edges (in a section,
corners), with the harmonic mean of the four cells around each. n are 0 where a field vanishes at a side. Adjoint of
m_ij, for g = adj_m_ij and its mean c of 1/mu: adj_c = -n g / c^2; of 1/mu: adj_mu = -g / mu^2.

Source: the means of Moczo, Kristek, Vavrycuk, Archuleta and Halada 2002.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Tensor, runtime
from simphys.numerics.element import element
from simphys.simulator import Array
from simphys.substep import Along, along, per_element

from .model import Elastic, Params


@element
def lame(vp, vs, rho):
    return rho * (vp * vp - 2 * vs * vs), rho * vs * vs


@lame.adjoint
def adj_lame(vp, vs, rho, adj_lam, adj_mu):
    w = adj_mu - 2 * adj_lam
    return 2 * rho * vp * adj_lam, 2 * rho * vs * w, vp * vp * adj_lam + vs * vs * w


@element
def invert(x, c):
    return c / x


@invert.adjoint
def adj_invert(x, c, adj):
    return -c / (x * x) * adj


Lame = per_element(
    lame, over="cells", own={"vp": "vp", "vs": "vs", "rho": "density"}, results={"lambda": "vp", "mu": "vp"}
)
Invert = per_element(invert, over="cells", own={"x": "mean"}, constant={"c": "numerator"}, results={"inverse": "x"})


class Medium(NamedTuple):
    """Moduli and buoyancies at the places of the fields, each [*cells]."""

    lam: Tensor
    """lambda in cells [Pa]."""
    mu: Tensor
    """mu in cells [Pa]."""
    edges: dict[str, Tensor]
    """mu dt / h at edges, by the shear stress there [Pa s/m]."""
    buoyancy: dict[str, Tensor]
    """dt / (h rho) at faces, by the velocity there [m^2 s/kg]."""


@cache
def declare_mean(axis: str, number: int) -> Any:
    """Declare the mean along an axis with this name and number."""
    return along(f"mean_{axis}", {"cells": Along(f"{axis}.mean", number)})


def average(model: Elastic, params: Params) -> Medium:
    """Compute the medium. It depends on parameters alone, so that a rollout does so once."""
    mean = {axis: declare_mean(axis, number) for number, axis in enumerate(model.axes)}
    lam, mu = Lame.apply(model, params.vp, params.vs, params.density)
    inverse = Invert.apply(model, mu, 1.0)
    compliance = {axis: mean[axis].apply(model, inverse) for axis in model.axes[:-1]}
    edges, buoyancy = {}, {}
    for field in model.shear_stresses:
        both = mean[field[2]].apply(model, compliance[field[1]])
        edges[field] = Invert.apply(model, both, _mask(model, field))
    for field in model.velocities:
        density = mean[field[1]].apply(model, params.density)
        buoyancy[field] = Invert.apply(model, density, _mask(model, field))
    return Medium(lam, mu, edges, buoyancy)


@runtime.cached(maxsize=16)
def _mask(model: Elastic, field: str) -> Array:
    """Compute the numerator n of a mean's inverse."""
    return np.asarray(model.dt / model.spacing * model.mask(field), runtime.real_dtype())
