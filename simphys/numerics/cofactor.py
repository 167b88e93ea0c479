"""The cofactor matrix, which is the derivative of the determinant: d det(F) = cof(F) : dF, cof(F) = det(F) F^-T.

It is a polynomial in F, so it exists even where F^-1 does not. Source: Jacobi's formula.
"""

from simphys.autograd.kernels.runtime import ti


@ti.func
def cofactor(F):
    """Return cof(F), for matrices with 2 or 3 rows."""
    result = 0.0 * F
    if ti.static(F.n == 2):
        result = ti.Matrix([[F[1, 1], -F[1, 0]], [-F[0, 1], F[0, 0]]])
    else:
        for i, j in ti.static(ti.ndrange(3, 3)):
            a, b, c, d = ti.static((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3)
            result[i, j] = F[a, c] * F[b, d] - F[a, d] * F[b, c]
    return result
