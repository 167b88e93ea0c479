"""Vectors and matrices in flat arrays of numbers: element i of array X begins at X[i * its size]."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Functions that read and write vectors [dim] and matrices [dim, dim]."""
    vec, mat = ti.types.vector(dim, real), ti.types.matrix(dim, dim, real)

    @ti.func
    def vector(X: ti.template(), i: ti.i32) -> vec:
        v = vec(0.0)
        for d in ti.static(range(dim)):
            v[d] = X[i * dim + d]
        return v

    @ti.func
    def matrix(X: ti.template(), i: ti.i32) -> mat:
        M = mat(0.0)
        for d in ti.static(range(dim)):
            for e in ti.static(range(dim)):
                M[d, e] = X[(i * dim + d) * dim + e]
        return M

    @ti.func
    def put_vector(X: ti.template(), i: ti.i32, v: vec):
        for d in ti.static(range(dim)):
            X[i * dim + d] = v[d]

    @ti.func
    def put_matrix(X: ti.template(), i: ti.i32, M: mat):
        for d in ti.static(range(dim)):
            for e in ti.static(range(dim)):
                X[(i * dim + d) * dim + e] = M[d, e]

    return SimpleNamespace(vector=vector, matrix=matrix, put_vector=put_vector, put_matrix=put_matrix)
