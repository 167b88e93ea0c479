"""Sources, which drive the field at points or along planes, anywhere between cells.

    dx^2 f = sum_s strength_s dx^2 delta_h(x - x_s)          delta_h at cell i: h_s weight_i(x_s), h_s = dx^(2 - m_s)

Cubic convolution spreads the delta of a point over the 4^dim cells around it; its dimension is that of space, m = dim.
The delta of a plane is spread over the 4 planes of cells around it and is constant along the other axes, m = 1. A cell
beyond a side is mapped to a cell inside, as the field is extended there: a source has mirror images, see
`numerics/boundary.py`. Adjoint, with g = adj_(dx^2 f) and i the cells in the stencil of source s:

    adj_strength_s = h_s sum_i g_i weight_i          adj_x_s = h_s strength_s sum_i g_i grad weight_i

In a step the field receives kappa (dx^2 f), kappa = (c dt / dx)^2. Fused loops add this to a field u in place, so that
g = kappa adj_u, and kappa has the adjoint (dx^2 f) adj_u. The position of a plane within itself has no adjoint.
Source: the moment conditions of discrete deltas in Petersson, O'Reilly, Sjoegreen and Bydlon 2016, which cubic
convolution (Keys 1981) fulfils to the second moment; the adjoint is the transpose of the Jacobian.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, runtime
from simphys.numerics.element import element
from simphys.simulator import Array
from simphys.substep import per_element, spread_from

from .model import Wave


@element
def scale_delta(q, h):
    return h * q


@scale_delta.adjoint
def adj_scale_delta(q, h, adj):
    return h * adj


ScaleDelta = per_element(
    scale_delta, over="sources", own={"q": "strength"}, constant={"h": "scale"}, results={"delta": "q"}
)
SpreadSources = spread_from("density", strength="delta", position="source_position", over="sources", even="even_axes")


@runtime.cached(maxsize=4)
def delta_scales(model: Wave) -> Array:
    """Compute h of each source [S]."""
    scales = [model.spacing ** (2 - (model.dim if kind == "point" else 1)) for kind in model.sources]
    return np.array(scales, runtime.real_dtype())


def drive(model: Wave, strength: Tensor, position: Tensor) -> Tensor:
    """Compute dx^2 f [*cells] of sources with strength [S] at position [S, dim] [m]."""
    delta = ScaleDelta.apply(model, strength, delta_scales(model))
    density: Tensor = SpreadSources.apply(model, delta, position)
    return density
