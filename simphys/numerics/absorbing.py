"""Memory of an absorbing layer: convolutional perfectly matched layers replace a derivative D across it by D + psi',

    psi' = b psi + a D      b = exp(-(d + alpha) dt)      a = d / (d + alpha) (b - 1)

With x from 0 at the inner edge to 1 at the side of a layer of the width L, and with waves of the speed c,

    d = d_0 x^2,  d_0 = -3 c log(R) / (2 L)      alpha = pi f (1 - x)      R: theoretical reflection at normal incidence

Adjoint, for g = adj_psi': adj_psi = b g, adj_D = a g.
Sources: Komatitsch and Martin 2007 (profiles); Collino and Tsogka 2001 (d_0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .element import element

Array = np.ndarray[Any, Any]

REFLECTION = 1e-3
"""R."""


@element
def remember(psi, D, a, b):
    return b * psi + a * D


@remember.adjoint
def adj_remember(psi, D, a, b, g):
    return b * g, a * g


def profile(x: Array, *, width: float, speed: float, frequency: float, dt: float) -> tuple[Array, Array]:
    """Compute a and b at places x in a layer: width L [m], speed c [m/s], frequency f [Hz], time step [s]."""
    d0 = -3 * speed * np.log(REFLECTION) / (2 * width)
    d, alpha = d0 * x**2, np.pi * frequency * (1 - x)
    b = np.exp(-(d + alpha) * dt)
    return d / (d + alpha) * (b - 1), b
