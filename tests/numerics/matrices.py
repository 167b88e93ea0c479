"""Matrices of every kind, and the functions of simphys.numerics applied to arrays of matrices."""

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import isotropic, polar, svd

Array = np.ndarray[Any, Any]

DIMS = (2, 3)
COUPLING = 0.6
"""Strength of the coupling between principal values in `values_of`."""


def rotations(dim: int, n: int, seed: int = 0) -> Array:
    """Random rotations [n, dim, dim]."""
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, dim, dim)))[0]
    q[np.linalg.det(q) < 0, :, 0] *= -1
    return q


def make_stretched(stretches: Any, n: int = 20, seed: int = 0) -> Array:
    """Matrices U diag(stretches) V^T [n, dim, dim] with random rotations, in the precision of this process."""
    s = np.asarray(stretches, float)
    turns = rotations(len(s), 2 * n, seed)
    return (turns[:n] @ np.diag(s) @ turns[n:].transpose(0, 2, 1)).astype(runtime.real_dtype())


def random(dim: int, n: int = 20, seed: int = 0) -> Array:
    """Matrices [n, dim, dim] with normally distributed entries."""
    return np.random.default_rng(seed).normal(size=(n, dim, dim)).astype(runtime.real_dtype())


def kinds(dim: int) -> dict[str, Array]:
    """Matrices [n, dim, dim], by their special property."""
    return {
        "any": random(dim),
        "near the identity": np.eye(dim, dtype=runtime.real_dtype()) + runtime.real_dtype().type(1e-3) * random(dim),
        "the identity": make_stretched([1.0] * dim)[:1] * 0 + np.eye(dim, dtype=runtime.real_dtype()),
        "a multiple of a rotation": make_stretched([1.7] * dim),
        "two equal": make_stretched([2.0, 2.0, 0.5][:dim]),
        "two almost equal": make_stretched([2.0, 2.0 + 1e-7, 0.5][:dim]),
        "inverted": make_stretched([1.5, 1.2, -0.7][3 - dim :]),
        "a reflection": make_stretched([1.0, 1.0, -1.0][3 - dim :]),
        "rank 1": make_stretched([1.0, 0.0, 0.0][:dim]),
        "zero": 0 * make_stretched([1.0] * dim),
        "large": 1000 * random(dim),
        "small": random(dim) / 1000,
    }


@functools.cache
@no_type_check
def kernels(dim: int) -> SimpleNamespace:
    """Kernels that loop over matrices."""
    real = runtime.real()
    mat, vec = ti.types.matrix(dim, dim, real), ti.types.vector(dim, real)
    mats, vecs = ti.types.ndarray(dtype=mat, ndim=1), ti.types.ndarray(dtype=vec, ndim=1)
    decompose, p, maps = svd.functions(real, dim).svd, polar.functions(real, dim), isotropic.functions(real, dim)

    @kernel
    def svd_of(F: mats, U: mats, s: vecs, V: mats):
        for i in range(F.shape[0]):
            u, x, v = decompose(F[i])
            U[i] = u
            s[i] = x
            V[i] = v

    @kernel
    def rotation_of(F: mats, R: mats):
        for i in range(F.shape[0]):
            R[i] = p.rotation(F[i])

    @kernel
    def rotation_derivative(F: mats, X: mats, dR: mats):
        for i in range(F.shape[0]):
            dR[i] = p.derivative(F[i], p.rotation(F[i]), X[i])

    @kernel
    def map_derivatives(
        U: mats, s: vecs, V: mats, g: vecs, J: mats, X: mats, jvp: mats, adj: mats, jvp_left: mats, adj_left: mats
    ):
        for i in range(U.shape[0]):
            jvp[i] = maps.jvp(U[i], s[i], V[i], g[i], J[i], X[i])
            adj[i] = maps.adj(U[i], s[i], V[i], g[i], J[i], X[i])
            jvp_left[i] = maps.jvp_left(U[i], s[i], V[i], g[i], J[i], X[i])
            adj_left[i] = maps.adj_left(U[i], s[i], V[i], g[i], J[i], X[i])

    return SimpleNamespace(
        svd=svd_of, rotation=rotation_of, rotation_derivative=rotation_derivative, map_derivatives=map_derivatives
    )


def svd_of(F: Array) -> tuple[Array, Array, Array]:
    """Compute U, s, V of matrices [n, dim, dim]."""
    F = np.ascontiguousarray(F)
    U, s, V = np.empty_like(F), np.empty(F.shape[:2], F.dtype), np.empty_like(F)
    kernels(F.shape[-1]).svd(F, U, s, V)
    return U, s, V


def rotation_of(F: Array) -> Array:
    """Compute R of matrices [n, dim, dim]."""
    R = np.empty_like(F)
    kernels(F.shape[-1]).rotation(np.ascontiguousarray(F), R)
    return R


def rotation_derivative(F: Array, X: Array) -> Array:
    """Compute dR for dF = X, or adj_F for adj_R = X."""
    dR = np.empty_like(F)
    kernels(F.shape[-1]).rotation_derivative(np.ascontiguousarray(F), X, dR)
    return dR


def values_of(s: Array) -> tuple[Array, Array]:
    """An equivariant g that couples the principal stretches s [n, dim], and its Jacobians [n, dim, dim]."""
    square = (s * s).sum(axis=1, keepdims=True)
    g = np.sin(s) + COUPLING / 2 * s * square
    diagonal = np.cos(s) + COUPLING / 2 * square
    return g, COUPLING * s[:, :, None] * s[:, None, :] + diagonal[:, :, None] * np.eye(s.shape[1])


def map_of(F: Array) -> Array:
    """Compute G = U diag(g) V^T of matrices [n, dim, dim] with NumPy, for the g of `values_of`."""
    U, s, Vt = np.linalg.svd(F)  # NumPy's signs do not matter for an odd g
    return (U * values_of(s)[0][:, None, :]) @ Vt


def left_map_of(F: Array) -> Array:
    """Compute H = U diag(g s) U^T with NumPy."""
    U, s, _ = np.linalg.svd(F)
    return (U * (values_of(s)[0] * s)[:, None, :]) @ U.transpose(0, 2, 1)


def map_derivatives(F: Array, X: Array) -> tuple[Array, Array, Array, Array]:
    """Apply the tangent and adjoint of `map_of`, then those of `left_map_of`, to X."""
    U, s, V = svd_of(F)
    g, J = values_of(s)
    h, Jh = g * s, J * s[:, :, None] + g[:, :, None] * np.eye(s.shape[1])
    results_g, results_h = ([np.empty_like(F) for _ in range(4)] for _ in range(2))
    kernels(F.shape[-1]).map_derivatives(U, s, V, g, J, X, *results_g)
    kernels(F.shape[-1]).map_derivatives(U, s, V, h, Jh, X, *results_h)
    return results_g[0], results_g[1], results_h[2], results_h[3]


def difference(function: Callable[[Array], Array], F: Array, X: Array, h: float = 1e-3) -> Array:
    """Differentiate `function` at F along X by finite differences of fourth order."""
    near = function(F + h * X) - function(F - h * X)
    return (8 * near - (function(F + 2 * h * X) - function(F - 2 * h * X))) / (12 * h)


def dot(a: Array, b: Array) -> Array:
    """Compute A : B of each pair of matrices."""
    return (a * b).sum(axis=(1, 2))
