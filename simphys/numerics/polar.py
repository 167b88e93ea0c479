"""Polar decomposition F = R S: R is the rotation nearest to F, det R = 1, and S = R^T F is symmetric.

In 2-D, with (a, b) = (F00 + F11, F10 - F01) and r = sqrt(a^2 + b^2) = tr S:

    R = [[c, -s], [s, c]],   (c, s) = (a, b) / r
    dR = R' (R' : dF) / r,   R' = [[-s, -c], [c, -s]] the derivative of R with respect to its angle

In 3-D, Newton's iteration X -> (X + X^-T) / 2 from F drives every positive principal stretch to 1, with quadratic
convergence. If det F <= 0 or F is nearly singular, R = U V^T from the singular value decomposition. With [w] the matrix
of the cross product with w,

    dR = R [w],   K w = the axial vector of R^T dF - dF^T R,   K = tr(S) I - S

In both cases the derivative is a symmetric map, hence its own transpose: adj_F follows from adj_R as dR from dF.

The nearest rotation is not unique for an inverted F with s_i + s_j = 0; these sums are the eigenvalues of K, and r in
2-D. By convention R is then 0 in 2-D, the mean of all nearest rotations, and one of them in 3-D. The derivative, which
grows as 1 / (s_i + s_j), is limited to 1 / LEAST. Source: Higham 1986, Computing the polar decomposition; the
derivative is that of R^T R = I and S = S^T.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

from . import svd
from .cofactor import cofactor

LEAST = {"f32": 1e-3, "f64": 1e-6}
"""Smallest sum of two principal stretches that is used as a denominator."""
STEPS = 12
"""Largest number of Newton iterations, which converge quadratically."""


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions rotation(F) -> R and derivative(F, R, X): dR for X = dF, adj_F for X = adj_R."""
    return _in_plane(real) if dim == 2 else _in_space(real)


@functools.cache
def _in_plane(real: Any) -> SimpleNamespace:
    mat = ti.types.matrix(2, 2, real)
    tiny = 1e-37 if real is ti.f32 else 1e-300
    most = 1 / LEAST["f32" if real is ti.f32 else "f64"]

    @ti.func
    def inverse_trace(F):
        a, b = F[0, 0] + F[1, 1], F[1, 0] - F[0, 1]
        return 1 / ti.sqrt(ti.max(a * a + b * b, tiny))

    @ti.func
    def rotation(F):
        r = inverse_trace(F)
        c, s = (F[0, 0] + F[1, 1]) * r, (F[1, 0] - F[0, 1]) * r
        return mat([[c, -s], [s, c]])

    @ti.func
    def derivative(F, R, X):
        c, s = R[0, 0], R[1, 0]
        h = (c * (X[1, 0] - X[0, 1]) - s * (X[0, 0] + X[1, 1])) * ti.min(inverse_trace(F), most)
        return mat([[-s * h, -c * h], [c * h, -s * h]])

    return SimpleNamespace(rotation=rotation, derivative=derivative)


@functools.cache
def _in_space(real: Any) -> SimpleNamespace:
    mat, vec = ti.types.matrix(3, 3, real), ti.types.vector(3, real)
    tiny, close, eps = (1e-37, 1e-7, 1.2e-7) if real is ti.f32 else (1e-300, 1e-15, 2.2e-16)
    least = LEAST["f32" if real is ti.f32 else "f64"]
    values = svd.functions(real, 3).svd

    @ti.func
    def rotation(F):
        X = F
        converged = 0
        if F.determinant() > 0.01 * F.norm() ** 3:
            for _ in range(STEPS):
                if converged == 0:
                    C = cofactor(X)
                    next = 0.5 * (X + C / (C[0, 0] * X[0, 0] + C[0, 1] * X[0, 1] + C[0, 2] * X[0, 2]))
                    if (next - X).norm_sqr() < close:
                        converged = 1
                    X = next
        if converged == 0:
            U, _, V = values(F)
            X = U @ V.transpose()
        return X

    @ti.func
    def derivative(F, R, X):
        S, A = R.transpose() @ F, R.transpose() @ X
        trace = (1 + 16 * eps) * S.trace()  # so that rounding makes no eigenvalue of K negative
        K = -S
        for i in ti.static(range(3)):
            K[i, i] += trace
        C = cofactor(K)
        det = C[0, 0] * K[0, 0] + C[0, 1] * K[0, 1] + C[0, 2] * K[0, 2]
        w = C @ vec([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])
        w /= ti.max(det, least * C.trace(), tiny)
        return R @ mat([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])

    return SimpleNamespace(rotation=rotation, derivative=derivative)
