"""Integration: kick the velocity by a force for a time h, then drift the position at the new velocity for a time e.

    v' = v + (h/m) f
    x' = x + e v'

h and e [s] are the durations of kick and drift of one stage (see Charges.stages), m mass [kg]. Adjoint, with
w = adj_v' + e adj_x':

    adj_x = adj_x'     adj_v = w     adj_f = (h/m) w     adj_m = -(1/m) f.adj_f

Source: symplectic Euler and velocity Verlet, Hairer, Lubich and Wanner 2003.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.splitting import Stage

from .model import BODY_US, Charges


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions for bodies in `dim` dimensions."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def kick(v: vec, f: vec, m: real, h: real) -> vec:
        return v + (h / m) * f

    @ti.func
    def adj_kick_force(m: real, h: real, w: vec) -> vec:
        return (h / m) * w

    @ti.func
    def adj_kick_mass(f: vec, m: real, adj_f: vec) -> real:
        return -f.dot(adj_f) / m

    @ti.func
    def jvp_kick(f: vec, m: real, h: real, dv: vec, df: vec, dm: real) -> vec:
        return dv + (h / m) * (df - (dm / m) * f)

    return SimpleNamespace(kick=kick, adj_force=adj_kick_force, adj_mass=adj_kick_mass, jvp_kick=jvp_kick)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, parallel: bool) -> SimpleNamespace:
    """Kernels of the nested sub-step: loops over the bodies."""
    vec = ti.types.vector(dim, real)
    f = functions(real, dim)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(
        x: vectors, v: vectors, force: vectors, m: reals, h: real, e: real, n: ti.i32, x_new: vectors, v_new: vectors
    ):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            v_i = f.kick(v[i], force[i], m[i], h)
            x_new[i] = x[i] + e * v_i
            v_new[i] = v_i

    @kernel
    def adjoint(
        force: vectors, m: reals, h: real, e: real, n: ti.i32, adj_x_new: vectors, adj_v_new: vectors,
        adj_v: vectors, adj_force: vectors, adj_m: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            w = adj_v_new[i] + e * adj_x_new[i]
            gf = f.adj_force(m[i], h, w)
            adj_v[i] = w
            adj_force[i] = gf
            adj_m[i] = f.adj_mass(force[i], m[i], gf)

    @kernel
    def tangent(
        force: vectors, m: reals, h: real, e: real, n: ti.i32, dx: vectors, dv: vectors, dforce: vectors, dm: reals,
        dx_new: vectors, dv_new: vectors,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            dv_i = f.jvp_kick(force[i], m[i], h, dv[i], dforce[i], dm[i])
            dx_new[i] = dx[i] + e * dv_i
            dv_new[i] = dv_i

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Integrate(Function):
    """New position and velocity, both [n, dim], after one stage under `force` [n, dim]. Saved: force, mass [n]."""

    @staticmethod
    def forward(
        ctx: Context, model: Charges, stage: Stage, position: Tensor, velocity: Tensor, force: Tensor, mass: Tensor
    ) -> tuple[Any, Any]:
        ctx.model, ctx.lengths = model, (stage.kick, stage.drift, model.bodies)
        ctx.save_for_backward(force, mass)
        x_new, v_new = np.empty_like(position.data), np.empty_like(velocity.data)
        _kernels(model).forward(position, velocity, force, mass, *ctx.lengths, x_new, v_new)
        return x_new, v_new

    @staticmethod
    def backward(ctx: Context, adj_x_new: Tensor, adj_v_new: Tensor) -> tuple[Any, ...]:
        force, mass = ctx.saved_tensors
        adj_v, adj_force, adj_m = np.empty_like(force.data), np.empty_like(force.data), np.empty_like(mass.data)
        _kernels(ctx.model).adjoint(force, mass, *ctx.lengths, adj_x_new, adj_v_new, adj_v, adj_force, adj_m)
        return None, None, adj_x_new, adj_v, adj_force, adj_m

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, *tangents: Any) -> tuple[Any, Any]:
        force, mass = ctx.saved_tensors
        dx_new, dv_new = np.empty_like(force.data), np.empty_like(force.data)
        _kernels(ctx.model).tangent(force, mass, *ctx.lengths, *tangents, dx_new, dv_new)
        return dx_new, dv_new


def _kernels(model: Charges) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, runtime.parallel(BODY_US * model.bodies))
