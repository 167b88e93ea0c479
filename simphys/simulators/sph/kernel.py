"""Wendland's C2 kernel: weights of neighbours in smoothed particle hydrodynamics, and their slope.

    W(r) = a (1 - r/2h)^4 (1 + 2r/h)      a = 7 / (4 pi h^2) in the plane, 21 / (16 pi h^3) in space
    grad W = g d,   g = -k (1 - r/2h)^3,  k = 5 a / h^2

d difference of two positions [m], r = |d|, h smoothing length [m]; both vanish at the cut-off 2h. Value, slope and
curvature of W are continuous there: a pair that comes or goes changes neither rates nor their derivatives.

Source: Wendland 1995; Dehnen and Aly 2012.
"""

from __future__ import annotations

import math

from simphys.autograd.kernels.runtime import ti


@ti.func
def slope(d, k, h):
    """Return g, and its derivative by d over d itself."""
    r = ti.sqrt(d.dot(d))
    u = ti.max(1 - r / (2 * h), 0.0)
    return -k * u * u * u, 1.5 * k * u * u / (h * r)


def strength(dim: int, h: float) -> float:
    """Return k of the kernel's slope [1/m^(dim + 2)]."""
    return 5 / h**2 * (7 / (4 * math.pi * h**2) if dim == 2 else 21 / (16 * math.pi * h**3))
