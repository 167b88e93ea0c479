"""Spring force on each node: the sum over its springs, each damped by a dashpot along its axis.

For each spring, with d = x_b - x_a and u = v_b - v_a, the force f(d, u) of `simphys.numerics.spring` acts on node a,
and -f on node b. Adjoint: with adj_d and adj_u for adj_f = adj_force_a - adj_force_b,

    adj_x_b = sum of adj_d     adj_x_a = -sum of adj_d     adj_v_b = sum of adj_u     adj_v_a = -sum of adj_u
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.spring import functions

from .model import MassSpring


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, parallel: bool) -> SimpleNamespace:
    """Kernels of the nested sub-step: loops over the springs, then over the nodes, which gather from their springs."""
    vec, pair = ti.types.vector(dim, real), ti.types.vector(2, ti.i32)
    f = functions(real, dim, True)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    pairs, ints = ti.types.ndarray(dtype=pair, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, ends: pairs, start: ints, incidence: ints, n: ti.i32,
        S: ti.i32, work: vectors, force: vectors,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for s in range(S):
            a, b = ends[s][0], ends[s][1]
            work[s] = f.force(x[b] - x[a], v[b] - v[a], k[s], c[s], L[s])
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            total = vec(0.0)
            for j in range(start[i], start[i + 1]):
                total += (1 - 2 * (incidence[j] & 1)) * work[incidence[j] >> 1]
            force[i] = total

    @kernel
    def adjoint(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, ends: pairs, start: ints, incidence: ints, n: ti.i32,
        S: ti.i32, adj_force: vectors, work_d: vectors, work_u: vectors, adj_x: vectors, adj_v: vectors,
        adj_k: reals, adj_c: reals, adj_L: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for s in range(S):
            a, b = ends[s][0], ends[s][1]
            adj_d, adj_u, gk, gc, gL = f.adj(x[b] - x[a], v[b] - v[a], k[s], c[s], L[s], adj_force[a] - adj_force[b])
            work_d[s] = adj_d
            work_u[s] = adj_u
            adj_k[s] = gk
            adj_c[s] = gc
            adj_L[s] = gL
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            total_x, total_v = vec(0.0), vec(0.0)
            for j in range(start[i], start[i + 1]):  # d = x_b - x_a: end a takes the negative
                sign = 2 * (incidence[j] & 1) - 1
                total_x += sign * work_d[incidence[j] >> 1]
                total_v += sign * work_u[incidence[j] >> 1]
            adj_x[i] = total_x
            adj_v[i] = total_v

    @kernel
    def tangent(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, dx: vectors, dv: vectors, dk: reals, dc: reals,
        dL: reals, ends: pairs, start: ints, incidence: ints, n: ti.i32, S: ti.i32, work: vectors, dforce: vectors,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for s in range(S):
            a, b = ends[s][0], ends[s][1]
            work[s] = f.jvp(
                x[b] - x[a], v[b] - v[a], k[s], c[s], L[s], dx[b] - dx[a], dv[b] - dv[a], dk[s], dc[s], dL[s]
            )
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            total = vec(0.0)
            for j in range(start[i], start[i + 1]):
                total += (1 - 2 * (incidence[j] & 1)) * work[incidence[j] >> 1]
            dforce[i] = total

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class SpringForce(Function):
    """Forces [n, dim] [N] of all springs on the nodes, at position [n, dim] and velocity [n, dim].

    Saved: the five inputs. stiffness, damping, rest_length are [S].
    """

    @staticmethod
    def forward(
        ctx: Context,
        model: MassSpring,
        position: Tensor,
        velocity: Tensor,
        stiffness: Tensor,
        damping: Tensor,
        rest_length: Tensor,
    ) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(position, velocity, stiffness, damping, rest_length)
        work, force = (
            np.empty((model.springs, model.dim), position.dtype),
            np.empty(position.shape, position.dtype),
        )
        _kernels(model).forward(
            position, velocity, stiffness, damping, rest_length, *model.index_arguments, work, force
        )
        return force

    @staticmethod
    def backward(ctx: Context, adj_force: Tensor) -> tuple[Any, ...]:
        model: MassSpring = ctx.model
        position, velocity, stiffness, damping, rest_length = ctx.saved_tensors
        work_d, work_u = (np.empty((model.springs, model.dim), position.dtype) for _ in range(2))
        adj_x, adj_v = np.empty(position.shape, position.dtype), np.empty(position.shape, position.dtype)
        adj_k, adj_c, adj_L = (np.empty(model.springs, position.dtype) for _ in range(3))
        _kernels(model).adjoint(
            position,
            velocity,
            stiffness,
            damping,
            rest_length,
            *model.index_arguments,
            adj_force,
            work_d,
            work_u,
            adj_x,
            adj_v,
            adj_k,
            adj_c,
            adj_L,
        )
        return None, adj_x, adj_v, adj_k, adj_c, adj_L

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        model: MassSpring = ctx.model
        saved = ctx.saved_tensors
        work = np.empty((model.springs, model.dim), saved[0].dtype)
        dforce = np.empty(saved[0].shape, saved[0].dtype)
        _kernels(model).tangent(*saved, *tangents, *model.index_arguments, work, dforce)
        return dforce


SPRING_US = 0.004
"""Serial cost [us] of the forward pass for one spring, measured on the 128 x 128 lattice."""


def _kernels(model: MassSpring) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, runtime.parallel(SPRING_US * model.springs))
