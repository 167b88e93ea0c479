"""Absorbing layers: convolutional perfectly matched layers for the second-order wave equation.

Along the axis of a layer, with the differences of `curvature` (undivided: times dx and dx^2),

    psi'  = b psi + a D u                       [u's unit]
    zeta' = b zeta + a (D2 u + D psi')
    extra = D psi' + zeta'                      added to dx^2 laplace u

psi and zeta are 0 outside of the layer. With x from 0 at the inner edge to 1 at the side,

    d = d_0 x^2,  d_0 = -3 c log(R) / (2 width)      alpha = pi f (1 - x)      b = exp(-(d + alpha) dt)
    a = d / (d + alpha) (b - 1)                      R = 1e-3: theoretical reflection at normal incidence

c [m/s] and f [Hz] are the model's layer_speed and layer_frequency. Adjoint, for g = adj_extra and the adjoints of psi'
and zeta' from the following step; D^T = -D and D2^T = D2, as their arguments are 0 outside of the layer:

    Z = adj_zeta' + g     q = a Z     s = g + q     adj_zeta = b Z
    P = adj_psi' - D s    r = a P                   adj_psi  = b P         adj_u = D2 q - D r

adj_u also has entries in the cells next to the layer. Sources: Pasalic and McGarry 2010 (convolutional layers for this
equation); Komatitsch and Martin 2007 (profiles); Collino and Tsogka 2001 (d_0).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from .model import Slab, Wave

REFLECTION = 1e-3
"""Theoretical reflection coefficient R of a layer at normal incidence."""


def profile(model: Wave, slab: Slab) -> tuple[Array, Array]:
    """Compute a and b along the axis of a layer, f64, [width]."""
    depth = (np.arange(slab.width) + 0.5) / slab.width
    x = depth[::-1] if slab.first == 0 else depth
    d0 = -3 * model.layer_speed * np.log(REFLECTION) / (2 * slab.width * model.spacing)
    d, alpha = d0 * x**2, np.pi * model.layer_frequency * (1 - x)
    b = np.exp(-(d + alpha) * model.dt)
    return d / (d + alpha) * (b - 1), b


@functools.cache
@no_type_check
def functions(real: Any, order: int) -> SimpleNamespace:
    """The element functions of a cell; its neighbours enter through differences along the layer's axis."""

    @ti.func
    def slope_memory(psi: real, a: real, b: real, Du: real) -> real:
        return b * psi + a * Du

    @ti.func
    def curvature_memory(zeta: real, a: real, b: real, D2u: real, Dpsi: real) -> real:
        return b * zeta + a * (D2u + Dpsi)

    @ti.func
    def adj_curvature_memory(adj_zeta: real, a: real, b: real, g: real):
        """Return adj_zeta, q and s."""
        Z = adj_zeta + g
        return b * Z, a * Z, g + a * Z

    @ti.func
    def adj_slope_memory(adj_psi: real, a: real, b: real, Ds: real):
        """Return adj_psi and r."""
        P = adj_psi - Ds
        return b * P, a * P

    @ti.func
    def adj_height(D2q: real, Dr: real) -> real:
        return D2q - Dr

    return SimpleNamespace(
        slope_memory=slope_memory, curvature_memory=curvature_memory,
        adj_curvature_memory=adj_curvature_memory, adj_slope_memory=adj_slope_memory, adj_height=adj_height,
    )  # fmt: skip
