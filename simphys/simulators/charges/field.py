"""Force of a uniform external field:

    F_i = q_i E                                                             [N]

q charge [C], E field [N/C]. Adjoint, for g = adj_F:

    adj_q_i = E.g_i     adj_E = sum_i q_i g_i
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from .model import BODY_US


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions for bodies in `dim` dimensions."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def field_force(q: real, E: vec) -> vec:
        return q * E

    @ti.func
    def adj_field_force(q: real, E: vec, g: vec):
        return E.dot(g), q * g

    @ti.func
    def jvp_field_force(q: real, E: vec, dq: real, dE: vec) -> vec:
        return dq * E + q * dE

    return SimpleNamespace(force=field_force, adj=adj_field_force, jvp=jvp_field_force)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, parallel: bool) -> SimpleNamespace:
    """Kernels of the nested sub-step: loops over the bodies."""
    vec = ti.types.vector(dim, real)
    f = functions(real, dim)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(q: reals, E: vectors, n: ti.i32, force: vectors):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            force[i] = f.force(q[i], E[0])

    @kernel
    def adjoint(q: reals, E: vectors, n: ti.i32, adj_force: vectors, adj_q: reals, adj_E: vectors):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            gq, gE = f.adj(q[i], E[0], adj_force[i])
            adj_q[i] = gq
            adj_E[i] = gE

    @kernel
    def tangent(q: reals, E: vectors, dq: reals, dE: vectors, n: ti.i32, dforce: vectors):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            dforce[i] = f.jvp(q[i], E[0], dq[i], dE[0])

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class FieldForce(Function):
    """Forces [n, dim] [N] of the field [dim] on charges [n]. Saved: the two inputs."""

    @staticmethod
    def forward(ctx: Context, charge: Tensor, field: Tensor) -> np.ndarray[Any, Any]:
        ctx.save_for_backward(charge, field)
        n, dim = charge.shape[0], field.shape[0]
        force = np.empty((n, dim), charge.dtype)
        _kernels(n, dim).forward(charge, field.data[None], n, force)
        return force

    @staticmethod
    def backward(ctx: Context, adj_force: Tensor) -> tuple[Any, ...]:
        charge, field = ctx.saved_tensors
        n, dim = adj_force.shape
        adj_charge, adj_field = np.empty(n, charge.dtype), np.empty((n, dim), charge.dtype)
        _kernels(n, dim).adjoint(charge, field.data[None], n, adj_force, adj_charge, adj_field)
        return adj_charge, adj_field.sum(axis=0)

    @staticmethod
    def jvp(ctx: Context, dq: Any, dE: Any) -> np.ndarray[Any, Any]:
        charge, field = ctx.saved_tensors
        n, dim = charge.shape[0], field.shape[0]
        dforce = np.empty((n, dim), charge.dtype)
        _kernels(n, dim).tangent(charge, field.data[None], dq, dE[None], n, dforce)
        return dforce


def _kernels(bodies: int, dim: int) -> SimpleNamespace:
    return kernels(runtime.real(), dim, runtime.parallel(BODY_US * bodies))
