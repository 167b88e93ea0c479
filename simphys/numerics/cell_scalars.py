"""The scalars of conjugate gradients on the device, which one thread computes from the last numbers of a sum."""

import functools
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from .cell_sums import functions, integer_of

MAGNITUDE, INVERSE, MEAN, RHO, BETA, ALPHA, PRODUCT = SCALARS = range(7)
"""Indices into `scalars`: the magnitude of b and its inverse, the mean to subtract, the factors of an iteration, and
the product r.r after it."""


@functools.cache
def magnitude_kernel(real: Any) -> Any:
    """Kernel that finds the magnitude of b, see `find_magnitude`, and sets all other scalars to 0."""
    f, integer, reals = functions(real), integer_of(real), ti.types.ndarray(dtype=real, ndim=1)
    info = np.finfo(np.float64 if real == ti.f64 else np.float32)
    mantissa, special = info.nmant, 2**info.nexp - 1

    @no_type_check
    @kernel
    def set_magnitude(cells: ti.i32, groups: ti.i32, sums: reals, scalars: reals):
        """Set the magnitude and its inverse: both 0 for zeros, NaN and 0 for a number that is not finite.

        At the end of the range it is one step smaller, as its inverse would not be a normal number.
        """
        for _ in range(1):
            exponent = f.total_largest(sums, groups) >> mantissa
            magnitude, inverse = integer(0), integer(0)
            if exponent == special:
                magnitude = (2 * exponent + 1) << (mantissa - 1)
            elif exponent > 0:
                exponent = ti.min(exponent, special - 2)
                magnitude = exponent << mantissa
                inverse = (special - 1 - exponent) << mantissa
            scalars[MAGNITUDE], scalars[INVERSE] = ti.bit_cast(magnitude, real), ti.bit_cast(inverse, real)
            for k in range(MEAN, PRODUCT + 1):
                scalars[k] = 0.0

    return set_magnitude


@functools.cache
def iteration_scalars(real: Any) -> dict[str, Any]:
    """Kernels that set other scalars."""
    f, reals = functions(real), ti.types.ndarray(dtype=real, ndim=1)

    @no_type_check
    @kernel
    def set_mean(cells: ti.i32, groups: ti.i32, sums: reals, scalars: reals):
        for _ in range(1):
            scalars[MEAN] = f.total(sums, 0, groups) / cells

    @no_type_check
    @kernel
    def set_product(cells: ti.i32, groups: ti.i32, sums: reals, scalars: reals):
        for _ in range(1):
            scalars[PRODUCT] = f.total(sums, 0, groups)

    @no_type_check
    @kernel
    def set_mean_and_product(cells: ti.i32, groups: ti.i32, sums: reals, scalars: reals):
        """Set the mean of r, and r.r without it: rounding adds to the mean, which no iteration can reduce."""
        for _ in range(1):
            mean = f.total(sums, 1, groups) / cells
            scalars[MEAN], scalars[PRODUCT] = mean, f.total(sums, 0, groups) - cells * mean * mean

    @no_type_check
    @kernel
    def set_beta(cells: ti.i32, groups: ti.i32, sums: reals, scalars: reals):
        for _ in range(1):
            before, now, beta = scalars[RHO], f.total(sums, 0, groups), real(0.0)
            if before > 0:
                beta = now / before
            scalars[RHO], scalars[BETA] = now, beta

    @no_type_check
    @kernel
    def set_alpha(cells: ti.i32, groups: ti.i32, sums: reals, scalars: reals):
        for _ in range(1):
            curvature, alpha = f.total(sums, 0, groups), real(0.0)
            if curvature > 0:
                alpha = scalars[RHO] / curvature
            scalars[ALPHA] = alpha

    return {
        "mean": set_mean,
        "product": set_product,
        "mean_and_product": set_mean_and_product,
        "beta": set_beta,
        "alpha": set_alpha,
    }
