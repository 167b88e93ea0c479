"""Helpers for tests of constitutive laws: the response of particles with one law, and deformations of every kind."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from simphys.autograd import Context, Function, Tensor, kernel, runtime, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.mpm.laws import principal

Array = npt.NDArray[Any]


@functools.cache
@no_type_check
def kernels(functions: Any, real: Any, dim: int, width: int) -> SimpleNamespace:
    """Loops over particles with the element functions from `functions(real, dim)`."""
    f = functions(real, dim)
    mats = ti.types.ndarray(dtype=ti.types.matrix(dim, dim, real), ndim=1)
    reals, rows = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.types.vector(width, real), ndim=1)

    @kernel
    def forward(F: mats, q: reals, c: rows, n: ti.i32, F_new: mats, q_new: reals, tau: mats):
        for i in range(n):
            F_i, q_i, tau_i = f.respond(F[i], q[i], c[i])
            F_new[i] = F_i
            q_new[i] = q_i
            tau[i] = tau_i

    @kernel
    def adjoint(
        F: mats, q: reals, c: rows, n: ti.i32, adj_F_new: mats, adj_q_new: reals, adj_tau: mats,
        adj_F: mats, adj_q: reals, adj_c: rows,
    ):  # fmt: skip
        for i in range(n):
            F_i, q_i, c_i = f.adj(F[i], q[i], c[i], adj_F_new[i], adj_q_new[i], adj_tau[i])
            adj_F[i] = F_i
            adj_q[i] = q_i
            adj_c[i] = c_i

    @kernel
    def tangent(
        F: mats, q: reals, c: rows, n: ti.i32, dF: mats, dq: reals, dc: rows, dF_new: mats, dq_new: reals, dtau: mats
    ):
        for i in range(n):
            F_i, q_i, tau_i = f.jvp(F[i], q[i], c[i], dF[i], dq[i], dc[i])
            dF_new[i] = F_i
            dq_new[i] = q_i
            dtau[i] = tau_i

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Respond(Function):
    """F', q', tau from trial deformations F [n, dim, dim], hidden variables q [n] and coefficients c [n, width]."""

    @staticmethod
    def forward(ctx: Context, law: Any, F: Tensor, q: Tensor, c: Tensor) -> tuple[np.ndarray, ...]:
        ctx.kernels = kernels(law.functions, runtime.real(), F.shape[1], c.shape[1])
        ctx.save_for_backward(F, q, c)
        outputs = np.empty_like(F.data), np.empty_like(q.data), np.empty_like(F.data)
        ctx.kernels.forward(F, q, c, len(q), *outputs)
        return outputs

    @staticmethod
    def backward(ctx: Context, *adj: Tensor) -> tuple[Any, ...]:
        adjoints = [np.empty(x.shape, x.dtype) for x in ctx.saved_tensors]
        ctx.kernels.adjoint(*ctx.saved_tensors, len(adjoints[1]), *adj, *adjoints)
        return None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> tuple[np.ndarray, ...]:
        saved = ctx.saved_tensors
        given = [np.zeros(x.shape, x.dtype) if d is None else d for d, x in zip(tangents, saved, strict=True)]
        outputs = tuple(np.empty(saved[k].shape, saved[k].dtype) for k in (0, 1, 0))
        ctx.kernels.tangent(*saved, len(given[1]), *given, *outputs)
        return outputs


def respond(law: Any, F: npt.ArrayLike, q: npt.ArrayLike, *parameters: float) -> tuple[Array, Array, Array]:
    """Compute F', q', tau from trial deformations [n, dim, dim] of particles with the same parameters."""
    real = runtime.real_dtype()
    stacked = np.asarray(F, real)
    hidden = np.broadcast_to(np.asarray(q, real), len(stacked)).copy()
    rows = coefficients(law, len(stacked), *parameters).astype(real)
    F_new, q_new, tau = (x.data for x in Respond.apply(law, tensor(stacked), tensor(hidden), tensor(rows)))
    return F_new, q_new, tau


def in_principal_frame(law: Any) -> SimpleNamespace:
    """Restrict a law written for principal stretches to diagonal deformations, without the principal frame.

    In 3-D its kernels compile in a tenth of the time. The frame has its own test (tests/numerics/test_isotropic.py),
    and is tested together with a law that uses all of it (test_snow.py).
    """

    def functions(real: Any, dim: int) -> SimpleNamespace:
        with patch.object(principal, "functions", on_the_diagonal):
            return law.functions.__wrapped__(real, dim)

    return SimpleNamespace(functions=functions, coefficients=law.coefficients)


@no_type_check
def on_the_diagonal(real: Any, dim: int, law: SimpleNamespace) -> SimpleNamespace:
    """The functions of `principal.functions`, for F = diag(s)."""
    mat, vec = ti.types.matrix(dim, dim, real), ti.types.vector(dim, real)

    @ti.func
    def of(A: mat) -> vec:
        return vec([A[i, i] for i in ti.static(range(dim))])

    @ti.func
    def diag(x: vec) -> mat:
        A = mat(0.0)
        for i in ti.static(range(dim)):
            A[i, i] = x[i]
        return A

    @ti.func
    def respond(F: mat, q: real, c):
        g, q_new, h = law.respond(of(F), q, c)
        return diag(g), q_new, diag(h)

    @ti.func
    def adj(F: mat, q: real, c, adj_F_new: mat, adj_q_new: real, adj_tau: mat):
        s, adj_g, adj_h = of(F), of(adj_F_new), of(adj_tau)
        g_s, q_s, h_s = law.jacobian(s, q, c)
        adj_q, adj_c = law.adj(s, q, c, adj_g, adj_q_new, adj_h)
        return diag(g_s.transpose() @ adj_g + adj_q_new * q_s + h_s.transpose() @ adj_h), adj_q, adj_c

    @ti.func
    def jvp(F: mat, q: real, c, dF: mat, dq: real, dc):
        s, ds = of(F), of(dF)
        g_s, q_s, h_s = law.jacobian(s, q, c)
        dg, dq_new, dh = law.jvp(s, q, c, dq, dc)
        return diag(g_s @ ds + dg), q_s.dot(ds) + dq_new, diag(h_s @ ds + dh)

    return SimpleNamespace(respond=respond, adj=adj, jvp=jvp)


def coefficients(law: Any, particles: int, *parameters: float) -> Array:
    """Compute the law's coefficients of particles with the same parameters, [particles, width]."""
    return np.stack(law.coefficients(*[np.full(particles, p) for p in parameters]), axis=-1)


def gradient(law: Any, F: npt.ArrayLike, q: float, *parameters: float, of: int) -> tuple[Array, ...]:
    """Compute the adjoints of F, q, c of one particle for the sum of all entries of output `of`: 0 F', 1 q', 2 tau."""
    one = np.asarray(F)[None], np.array([q]), coefficients(law, 1, *parameters)
    leaves = [tensor(x, requires_grad=True) for x in one]
    Respond.apply(law, *leaves)[of].sum().backward()
    return tuple(leaf.grad.data[0] for leaf in leaves if leaf.grad is not None)


def diagonal(*stretched: float) -> Array:
    """Build one deformation along the axes."""
    return np.diag(stretched)[None]


def diagonals(stretched: npt.ArrayLike) -> Array:
    """Build diag(s) for each row of principal stretches [n, dim]."""
    return np.stack([np.diag(row) for row in np.asarray(stretched, float)])


def deformed(stretched: npt.ArrayLike, *, seed: int = 0) -> Array:
    """Build U diag(s) V^T with random rotations U, V, for each row of principal stretches [n, dim]."""
    s = np.asarray(stretched, float)
    U, V = rotations(*s.shape, seed=seed), rotations(*s.shape, seed=seed + 1)
    return np.einsum("nij,nj,nkj->nik", U, s, V)


def rotations(n: int, dim: int, *, seed: int = 0) -> Array:
    """Draw random rotations, [n, dim, dim]."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, dim, dim)))
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    return Q


def stretches(F: Array) -> Array:
    """Compute singular values [n, dim], in descending order."""
    return np.linalg.svd(F, compute_uv=False)


def deviator(tau: Array) -> Array:
    """Compute the norm of the deviator of each stress, [n]."""
    dim = tau.shape[-1]
    pressure = np.trace(tau, axis1=1, axis2=2) / dim
    return np.linalg.norm(tau - pressure[:, None, None] * np.eye(dim), axis=(1, 2))


def require_isotropy(law: Any, F: Array, q: npt.ArrayLike, *parameters: float) -> None:
    """Require that rotation after deformation rotates stress and deformation, and rotation before has no effect."""
    Q = rotations(*F.shape[:2], seed=5)
    F_new, q_new, tau = respond(law, F, q, *parameters)
    close = 1e-12 if runtime.real_dtype() == np.float64 else 2e-5
    for turned, expected, stress in ((Q @ F, Q @ F_new, Q @ tau @ Q.swapaxes(1, 2)), (F @ Q, F_new @ Q, tau)):
        found = respond(law, turned, q, *parameters)
        for x, y in zip(found, (expected, q_new, stress), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=close)


def prove(law: Any, F: Array, q: npt.ArrayLike, *parameters: float, **options: Any) -> None:
    """Check the law's adjoint against finite differences, and its tangent against the adjoint."""
    hidden = np.broadcast_to(np.asarray(q, float), len(F)).copy()
    inputs = F, hidden, coefficients(law, len(F), *parameters)
    gradcheck(lambda *x: Respond.apply(law, *x), [tensor(x, requires_grad=True) for x in inputs], **options)


def prove_coefficients(law: Any, *parameters: float) -> None:
    """Check the derivatives of the law's coefficients against finite differences."""
    inputs = [tensor([p, 1.1 * p], requires_grad=True) for p in parameters]
    gradcheck(lambda *x: OfParameters.apply(law, *x), inputs, tolerance=1e-8)


class OfParameters(Function):
    """The law's coefficients as a function of its parameters."""

    @staticmethod
    def forward(ctx: Context, law: Any, *parameters: Tensor) -> tuple[np.ndarray, ...]:
        ctx.law = law
        ctx.save_for_backward(*parameters)
        return tuple(np.array(c) for c in law.coefficients(*[p.data for p in parameters]))

    @staticmethod
    def backward(ctx: Context, *adj: Tensor) -> tuple[Any, ...]:
        parameters = tuple(p.data for p in ctx.saved_tensors)
        return None, *ctx.law.adj_coefficients(parameters, tuple(a.data for a in adj))

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> tuple[np.ndarray, ...]:
        parameters = tuple(p.data for p in ctx.saved_tensors)
        given = tuple(np.zeros(p.shape) if d is None else d for d, p in zip(tangents, parameters, strict=True))
        return tuple(ctx.law.jvp_coefficients(parameters, given))
