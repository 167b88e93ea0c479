"""Force between charges: softened Coulomb attraction and repulsion of all pairs.

With d_ij = x_i - x_j and r_ij = (d_ij.d_ij + s^2)^(-1/2), the force on body i is

    F_i = k q_i sum_j p_ij d_ij,   p_ij = q_j r_ij^3                        [N]

q charge [C], k coupling [N m^2/C^2], s softening [m]. Adjoint, for g = adj_F: the force on body j is opposite to that
on body i, so z_ij = g_i - g_j is the adjoint of the pair's force. With e_ij = p_ij d_ij.z_ij and h_ij = 3 r_ij^2 e_ij:

    adj_x_i = k q_i sum_j (p_ij z_ij - h_ij d_ij)      adj_k = 1/2 sum_i q_i sum_j e_ij
    adj_q_i = k sum_j e_ij                             adj_s = -1/2 k s sum_i q_i sum_j h_ij

The adjoint is again a sum over j for each i, which writes to i alone. The pair of a body with itself contributes
nothing, as d_ii = 0. Source: Coulomb's law with the softening of Aarseth 1963; the adjoint is the transpose of the
Jacobian.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from .model import Charges, check_softening, pairs_us


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions of a pair, and of a body's sum over all pairs, in `dim` dimensions.

    Rows hold vectors component by component, [dim, n], and the sums write to no array: this lets the compiler vectorize
    them.
    """
    vec = ti.types.vector(dim, real)

    @ti.func
    def pair_force(d: vec, q: real, s: real) -> vec:
        r = 1 / ti.sqrt(d.dot(d) + s * s)
        return (q * r * r * r) * d

    @ti.func
    def adj_pair_force(d: vec, q: real, s: real, z: vec):
        r = 1 / ti.sqrt(d.dot(d) + s * s)
        p = q * r * r * r
        e = p * d.dot(z)
        h = 3 * r * r * e
        return p * z - h * d, e, h

    @ti.func
    def jvp_pair_force(d: vec, q: real, s: real, dd: vec, dq: real, ds: real) -> vec:
        r = 1 / ti.sqrt(d.dot(d) + s * s)
        r3 = r * r * r
        return (dq * r3 - 3 * q * r3 * r * r * (d.dot(dd) + s * ds)) * d + (q * r3) * dd

    @ti.func
    def body_vector(x: ti.template(), row, n, i) -> vec:
        """Vector of body i in a row."""
        return vec([x[(row * dim + c) * n + i] for c in ti.static(range(dim))])

    @ti.func
    def sum_force(x: ti.template(), q: ti.template(), row, b, n, i, s) -> vec:
        """F_i / (k q_i) in member b, with the positions in `row`."""
        x_i, total = body_vector(x, row, n, i), vec(0.0)
        for j in range(n):
            total += pair_force(x_i - body_vector(x, row, n, j), q[b * n + j], s)
        return total

    @ti.func
    def adj_sum_force(x: ti.template(), q: ti.template(), g: ti.template(), row, b, n, i, s):
        """Sums over j of p z - h d, of e, of h and of p d."""
        x_i, g_i = body_vector(x, row, n, i), body_vector(g, b, n, i)
        adj_d, adj_p, adj_r, total = vec(0.0), real(0.0), real(0.0), vec(0.0)
        for j in range(n):
            d = x_i - body_vector(x, row, n, j)
            gd, e, h = adj_pair_force(d, q[b * n + j], s, g_i - body_vector(g, b, n, j))
            adj_d += gd
            adj_p += e
            adj_r += h
            total += pair_force(d, q[b * n + j], s)
        return adj_d, adj_p, adj_r, total

    @ti.func
    def jvp_sum_force(
        x: ti.template(), q: ti.template(), dx: ti.template(), dq: ti.template(), row, b, n, i, s, ds
    ) -> vec:
        """Tangent of `sum_force`."""
        x_i, dx_i, total = body_vector(x, row, n, i), body_vector(dx, row, n, i), vec(0.0)
        for j in range(n):
            d, dd = x_i - body_vector(x, row, n, j), dx_i - body_vector(dx, row, n, j)
            total += jvp_pair_force(d, q[b * n + j], s, dd, dq[b * n + j], ds)
        return total

    return SimpleNamespace(
        body_vector=body_vector,
        sum=sum_force, adj_sum=adj_sum_force, jvp_sum=jvp_sum_force,
    )  # fmt: skip


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, parallel: bool) -> SimpleNamespace:
    """Kernels of the nested sub-step: loops over the bodies; x, g and dx are stored component by component."""
    vec = ti.types.vector(dim, real)
    f = functions(real, dim)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(x: reals, q: reals, k: real, s: real, n: ti.i32, force: vectors):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            force[i] = k * q[i] * f.sum(x, q, 0, 0, n, i, s)

    @kernel
    def adjoint(
        x: reals, q: reals, k: real, s: real, n: ti.i32, g: reals,
        adj_x: vectors, adj_q: reals, adj_k: reals, adj_s: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            gd, e, h, _ = f.adj_sum(x, q, g, 0, 0, n, i, s)
            adj_x[i] = k * q[i] * gd
            adj_q[i] = k * e
            adj_k[i] = 0.5 * q[i] * e
            adj_s[i] = -0.5 * k * s * q[i] * h

    @kernel
    def tangent(
        x: reals, q: reals, k: real, s: real, dx: reals, dq: reals, dk: real, ds: real, n: ti.i32, dforce: vectors
    ):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            total = f.sum(x, q, 0, 0, n, i, s)
            dforce[i] = (dk * q[i] + k * dq[i]) * total + k * q[i] * f.jvp_sum(x, q, dx, dq, 0, 0, n, i, s, ds)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class ChargeForce(Function):
    """Forces [n, dim] [N] of all charges on each other, at position [n, dim].

    Saved: the four inputs. charge is [n]; coupling and softening are scalars.
    """

    @staticmethod
    def forward(
        ctx: Context, model: Charges, position: Tensor, charge: Tensor, coupling: Tensor, softening: Tensor
    ) -> np.ndarray[Any, Any]:
        check_softening(softening.data)
        ctx.model = model
        ctx.save_for_backward(position, charge, coupling, softening)
        force = np.empty(position.shape, position.dtype)
        _kernels(model).forward(*_arguments(*ctx.saved_tensors), model.bodies, force)
        return force

    @staticmethod
    def backward(ctx: Context, adj_force: Tensor) -> tuple[Any, ...]:
        model: Charges = ctx.model
        position, charge, coupling, softening = ctx.saved_tensors
        adj_x = np.empty(position.shape, position.dtype)
        adj_q, adj_k, adj_s = (np.empty(model.bodies, position.dtype) for _ in range(3))
        _kernels(model).adjoint(
            *_arguments(position, charge, coupling, softening), model.bodies, flatten_components(adj_force.data),
            adj_x, adj_q, adj_k, adj_s,
        )  # fmt: skip
        return None, adj_x, adj_q, adj_k.sum(), adj_s.sum()

    @staticmethod
    def jvp(ctx: Context, _: None, dx: Any, dq: Any, dk: Any, ds: Any) -> np.ndarray[Any, Any]:
        saved = ctx.saved_tensors
        dforce = np.empty(saved[0].shape, saved[0].dtype)
        model: Charges = ctx.model
        _kernels(model).tangent(
            *_arguments(*saved), flatten_components(dx), dq, float(dk), float(ds), model.bodies, dforce
        )
        return dforce


def flatten_components(vectors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Reorder vectors [n, dim] component by component, [dim * n]."""
    return np.ascontiguousarray(vectors.T).reshape(-1)


def _arguments(position: Tensor, charge: Tensor, coupling: Tensor, softening: Tensor) -> tuple[Any, ...]:
    return flatten_components(position.data), charge, float(coupling.data), float(softening.data)


def _kernels(model: Charges) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, runtime.parallel(pairs_us(model.bodies)))
