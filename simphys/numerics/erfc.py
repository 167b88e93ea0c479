"""Complementary error function: erfc(x) = t exp(-x^2) p(y) for x >= 0, with t = 1/(1 + x/2).

p is the polynomial that meets erfc at the Chebyshev points of y, which goes from 1 at x = 0 to -1 at x = 6. Up to
there the relative error is 1e-14; beyond, erfc is below 1e-16. The compilers have no such function themselves.
"""

import math

import numpy as np

from simphys.autograd.kernels.runtime import ti

LEAST = 0.25
"""Value of t at x = 6."""


def _fit() -> tuple[float, ...]:
    """Compute the coefficients of p, the highest first."""

    def scaled(y: float) -> float:
        t = LEAST + (1 - LEAST) * (y + 1) / 2
        x = 2 / t - 2
        return math.erfc(x) * math.exp(x * x) / t

    found = np.polynomial.chebyshev.chebinterpolate(np.vectorize(scaled), 18)
    return tuple(np.polynomial.chebyshev.cheb2poly(found)[::-1].tolist())


COEFFICIENTS = _fit()


@ti.func
def erfc(x):
    """Return erfc(x) of a number x >= 0."""
    t = 1 / (1 + 0.5 * x)
    y = (2 * t - (1 + LEAST)) / (1 - LEAST)
    p = 0 * x
    for c in ti.static(COEFFICIENTS):
        p = p * y + c
    return t * ti.exp(-x * x) * p
