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

from __future__ import annotations

import numpy as np

from simphys.autograd import runtime
from simphys.numerics import absorbing
from simphys.numerics.absorbing import remember
from simphys.numerics.element import element
from simphys.simulator import Array
from simphys.substep import per_element

from .model import Wave
from .slab import Slab


@element
def curvature_memory(zeta, D2u, Dpsi, a, b):
    new = b * zeta + a * (D2u + Dpsi)
    return new, Dpsi + new


@curvature_memory.adjoint
def adj_curvature_memory(zeta, D2u, Dpsi, a, b, adj_new, g):
    Z = adj_new + g
    return b * Z, a * Z, g + a * Z


SlopeMemory = per_element(
    remember,
    over="layer_cells",
    own={"psi": "slope_memory", "D": "slope"},
    constant={"a": "profile_a", "b": "profile_b"},
    results={"slope_memory": "psi"},
)
CurvatureMemory = per_element(
    curvature_memory,
    over="layer_cells",
    own={"zeta": "curvature_memory", "D2u": "bend", "Dpsi": "slope of slope_memory"},
    constant={"a": "profile_a", "b": "profile_b"},
    results={"curvature_memory": "zeta", "extra": "zeta"},
)


def profile(model: Wave, slab: Slab) -> tuple[Array, Array]:
    """Compute a and b along the axis of a layer, f64, [width]."""
    depth = (np.arange(slab.width) + 0.5) / slab.width
    x = depth[::-1] if slab.first == 0 else depth
    width, speed = slab.width * model.spacing, model.layer_speed
    return absorbing.profile(x, width=width, speed=speed, frequency=model.layer_frequency, dt=model.dt)


@runtime.cached(maxsize=4)
def profiles(model: Wave) -> tuple[Array, Array]:
    """Compute a and b in each cell of the layers, [layer_cells]."""
    found: tuple[list[Array], list[Array]] = ([], [])
    for slab in model.slabs:
        along = [-1 if axis == slab.axis else 1 for axis in range(model.dim)]
        for cells, values in zip(found, profile(model, slab), strict=True):
            cells.append(np.broadcast_to(values.reshape(along), slab.shape).reshape(-1))
    a, b = (np.concatenate(cells).astype(runtime.real_dtype()) for cells in found)
    return a, b
