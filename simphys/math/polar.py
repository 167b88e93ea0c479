"""Polar decomposition F = R S: the rotation R that is nearest to F, with det R = 1, and a symmetric S.

In the plane, with (a, b) = (F00 + F11, F10 - F01) and r = sqrt(a^2 + b^2) = tr S:

    R = [[c, -s], [s, c]],   (c, s) = (a, b) / r
    dR = R' (R' : dF) / r,   R' = [[-s, -c], [c, -s]] the derivative of R by its angle

The derivative is a symmetric map, hence its own transpose: adj_F of adj_R is what dR is of dF.

Convention at a = b = 0, where all rotations are equally near: R = 0, which is their mean, and its derivative is 0.
Source: the polar decomposition of 2 x 2 matrices in closed form.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from ..autograd.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """rotation(F) -> R; derivative(F, R, X): dR of X = dF, and adj_F of X = adj_R."""
    return _in_plane(real)


@functools.cache
@no_type_check
def _in_plane(real: Any) -> SimpleNamespace:
    mat = ti.types.matrix(2, 2, real)
    tiny = 1e-37 if real is ti.f32 else 1e-300

    @ti.func
    def inverse_trace(F: mat) -> real:
        a, b = F[0, 0] + F[1, 1], F[1, 0] - F[0, 1]
        return 1 / ti.sqrt(ti.max(a * a + b * b, tiny))

    @ti.func
    def rotation(F: mat) -> mat:
        r = inverse_trace(F)
        c, s = (F[0, 0] + F[1, 1]) * r, (F[1, 0] - F[0, 1]) * r
        return mat([[c, -s], [s, c]])

    @ti.func
    def derivative(F: mat, R: mat, X: mat) -> mat:
        c, s = R[0, 0], R[1, 0]
        h = (c * (X[1, 0] - X[0, 1]) - s * (X[0, 0] + X[1, 1])) * inverse_trace(F)
        return mat([[-s * h, -c * h], [c * h, -s * h]])

    return SimpleNamespace(rotation=rotation, derivative=derivative)
