"""Small dense linear systems with matrices A [n, n] and right-hand sides [n].

Sources: Golub and Van Loan, Matrix Computations, 4th ed., algorithms 4.2.1 (Cholesky) and 3.4.1 (Gaussian elimination
with partial pivoting).
"""

from simphys.autograd.kernels.runtime import ti


@ti.func
def factor(A):
    """Return the Cholesky factor C of a symmetric positive definite A = C C^T; upper triangles are not used."""
    C = A
    n = ti.static(A.n)
    for j in range(n):
        square = A[j, j]
        for k in range(j):
            square -= C[j, k] * C[j, k]
        root = ti.sqrt(square)
        C[j, j] = root
        for i in range(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total -= C[i, k] * C[j, k]
            C[i, j] = total / root
    return C


@ti.func
def solve(C, b):
    """Return A^-1 b, given the Cholesky factor of A."""
    x = b
    n = ti.static(C.n)
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= C[i, k] * x[k]
        x[i] = total / C[i, i]
    for back in range(n):
        i = n - 1 - back
        total = x[i]
        for k in range(i + 1, n):
            total -= C[k, i] * x[k]
        x[i] = total / C[i, i]
    return x


@ti.func
def eliminate(A, b):
    """Return A^-1 b for any invertible A."""
    U, x = A, b
    n = ti.static(A.n)
    for j in range(n):
        pivot = j
        for i in range(j + 1, n):
            if ti.abs(U[i, j]) > ti.abs(U[pivot, j]):
                pivot = i
        if pivot != j:
            for k in range(j, n):
                swapped = U[j, k]
                U[j, k] = U[pivot, k]
                U[pivot, k] = swapped
            right = x[j]
            x[j] = x[pivot]
            x[pivot] = right
        for i in range(j + 1, n):
            part = U[i, j] / U[j, j]
            for k in range(j + 1, n):
                U[i, k] = U[i, k] - part * U[j, k]
            x[i] = x[i] - part * x[j]
    for back in range(n):
        i = n - 1 - back
        total = x[i]
        for k in range(i + 1, n):
            total -= U[i, k] * x[k]
        x[i] = total / U[i, i]
    return x
