"""External force on each node: gravity, and a penalty ground with viscous friction. The last axis points up.

With penetration p = max(0, h - x_up), normal force N = k_g p and tangential velocity v_t (all axes but the last):

    f = m g + N e_up - mu N v_t                                             [N]

h ground height [m], k_g ground stiffness [N/m], mu ground friction [s/m]. Adjoint, for b = adj_f:

    adj_m = g.b      adj_g = m b      adj_N = b_up - mu v_t.b_t      adj_mu = -N v_t.b_t      adj_v_t = -mu N b_t
    adj_k_g = p adj_N      adj_h = -adj_x_up = k_g adj_N  (where p > 0)

Convention at the kink: a node exactly at the height of the ground is not in contact, and its derivative is 0.
Source: the linear penalty contact of Hu et al. 2020 (DiffTaichi) made continuous.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from .model import MassSpring


@functools.cache
@no_type_check
def functions(real: Any, dim: int, ground: bool) -> SimpleNamespace:
    """The element functions for nodes in `dim` dimensions. The ground is the vector (h, k_g, mu)."""
    vec, vec3 = ti.types.vector(dim, real), ti.types.vector(3, real)
    up = dim - 1

    @ti.func
    def external_force(x: vec, v: vec, m: real, g: vec, floor: vec3) -> vec:
        f = m * g
        if ti.static(ground):
            normal = floor[1] * ti.max(floor[0] - x[up], 0)
            for j in ti.static(range(up)):
                f[j] -= floor[2] * normal * v[j]
            f[up] += normal
        return f

    @ti.func
    def adj_external_force(x: vec, v: vec, m: real, g: vec, floor: vec3, adj_f: vec):
        adj_x, adj_v, adj_floor = vec(0.0), vec(0.0), vec3(0.0)
        if ti.static(ground):
            p = ti.max(floor[0] - x[up], 0)
            normal = floor[1] * p
            slip = 0.0
            for j in ti.static(range(up)):
                slip += v[j] * adj_f[j]
                adj_v[j] = -floor[2] * normal * adj_f[j]
            adj_normal = adj_f[up] - floor[2] * slip
            adj_height = ti.select(p > 0, floor[1] * adj_normal, 0.0)
            adj_x[up] = -adj_height
            adj_floor = vec3(adj_height, p * adj_normal, -normal * slip)
        return adj_x, adj_v, g.dot(adj_f), m * adj_f, adj_floor

    @ti.func
    def jvp_external_force(
        x: vec, v: vec, m: real, g: vec, floor: vec3, dx: vec, dv: vec, dm: real, dg: vec, dfloor: vec3
    ) -> vec:
        df = dm * g + m * dg
        if ti.static(ground):
            p = ti.max(floor[0] - x[up], 0)
            normal = floor[1] * p
            dnormal = dfloor[1] * p + ti.select(p > 0, floor[1] * (dfloor[0] - dx[up]), 0.0)
            for j in ti.static(range(up)):
                df[j] -= dfloor[2] * normal * v[j] + floor[2] * (dnormal * v[j] + normal * dv[j])
            df[up] += dnormal
        return df

    return SimpleNamespace(force=external_force, adj=adj_external_force, jvp=jvp_external_force)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, parallel: bool) -> SimpleNamespace:
    """Kernels of the nested sub-step: loops over the nodes."""
    vec, vec3 = ti.types.vector(dim, real), ti.types.vector(3, real)
    f = functions(real, dim, True)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    floors = ti.types.ndarray(dtype=vec3, ndim=1)

    @kernel
    def forward(x: vectors, v: vectors, m: reals, g: vectors, floor: floors, n: ti.i32, force: vectors):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            force[i] = f.force(x[i], v[i], m[i], g[0], floor[0])

    @kernel
    def adjoint(
        x: vectors, v: vectors, m: reals, g: vectors, floor: floors, n: ti.i32, adj_force: vectors,
        adj_x: vectors, adj_v: vectors, adj_m: reals, adj_g: vectors, adj_floor: floors,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            gx, gv, gm, gg, gf = f.adj(x[i], v[i], m[i], g[0], floor[0], adj_force[i])
            adj_x[i] = gx
            adj_v[i] = gv
            adj_m[i] = gm
            adj_g[i] = gg
            adj_floor[i] = gf

    @kernel
    def tangent(
        x: vectors, v: vectors, m: reals, g: vectors, floor: floors,
        dx: vectors, dv: vectors, dm: reals, dg: vectors, dfloor: floors, n: ti.i32, dforce: vectors,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            dforce[i] = f.jvp(x[i], v[i], m[i], g[0], floor[0], dx[i], dv[i], dm[i], dg[0], dfloor[0])

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


def pack(*ground: Any) -> np.ndarray[Any, Any]:
    """Pack (height, stiffness, friction) into the single vector [1, 3] that kernels take."""
    return np.array([[float(value) for value in ground]], runtime.real_dtype())


class ExternalForce(Function):
    """Gravity and ground forces [n, dim] [N] at position [n, dim] and velocity [n, dim].

    Saved: the seven inputs. mass is [n], gravity [dim]; ground_height, ground_stiffness, ground_friction are scalars.
    """

    @staticmethod
    def forward(ctx: Context, model: MassSpring, *inputs: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(*inputs)
        position, velocity, mass, gravity, *ground = inputs
        force = np.empty(position.shape, position.dtype)
        _kernels(model).forward(position, velocity, mass, gravity.data[None], pack(*ground), model.nodes, force)
        return force

    @staticmethod
    def backward(ctx: Context, adj_force: Tensor) -> tuple[Any, ...]:
        model: MassSpring = ctx.model
        position, velocity, mass, gravity, *ground = ctx.saved_tensors
        like = functools.partial(np.empty, dtype=position.dtype)
        adj_x, adj_v, adj_g = (like(position.shape) for _ in range(3))
        adj_m, adj_floor = like(model.nodes), like((model.nodes, 3))
        _kernels(model).adjoint(
            position, velocity, mass, gravity.data[None], pack(*ground), model.nodes, adj_force,
            adj_x, adj_v, adj_m, adj_g, adj_floor,
        )  # fmt: skip
        return None, adj_x, adj_v, adj_m, adj_g.sum(axis=0), *adj_floor.sum(axis=0)

    @staticmethod
    def jvp(ctx: Context, _: None, dx: Any, dv: Any, dm: Any, dg: Any, *dground: Any) -> np.ndarray[Any, Any]:
        model: MassSpring = ctx.model
        position, velocity, mass, gravity, *ground = ctx.saved_tensors
        dforce = np.empty(position.shape, position.dtype)
        _kernels(model).tangent(
            position, velocity, mass, gravity.data[None], pack(*ground),
            dx, dv, dm, dg[None], pack(*dground), model.nodes, dforce,
        )  # fmt: skip
        return dforce


NODE_US = 0.003
"""Serial cost [us] of the forward pass for one node."""


def _kernels(model: MassSpring) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, runtime.parallel(NODE_US * model.nodes))
