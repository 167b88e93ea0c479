"""Velocity of the grid nodes from their momentum: gravity, rigid colliders, walls.

    u = p / (m + m_0) + dt g,   then each collider (collision.py), then the walls axis by axis (wall.py)     [m/s]

m mass [kg], p momentum [kg m/s], m_0 the mass floor [kg], g gravity [m/s^2]. Walls come last, so that no material
leaves. Adjoint: walls and colliders in reverse (stages.py), then for a = adj_u

    adj_p = a / (m + m_0)     adj_m = -(p.a) / (m + m_0)^2     adj_g = dt a

The environment of the nodes in one step is one array `env`, [P] with P = dim + 1 + K (2 dim + rotations + spins + 1).
It holds gravity [dim], the friction of the walls, and for K colliders positions [K, dim], rotations [K, rotations],
velocities [K, dim], spins [K, spins], frictions [K]. Source: Hu et al. 2018 (MLS-MPM), grid operations.
"""

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import arrays, collision, wall
from .stages import accumulate, compose

if TYPE_CHECKING:
    from .model import MPM


@functools.cache
@no_type_check
def functions(
    real: Any,
    dim: int,
    cells: tuple[int, ...],
    margin: int,
    walls: tuple[str, ...],
    shapes: tuple[str, ...],
    contacts: tuple[str, ...],
) -> SimpleNamespace:
    """The element functions of a node. `cell` is its index along each axis; `boundary` is that of the step.

    If `wanted`, `adj_velocity` adds the adjoint of env to `acc`, by atomics if `atomic`.
    """
    vec, ivec = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32)
    count = len(shapes)
    stages = [collision.stage(real, dim, shapes[k], contacts[k], k, count) for k in range(count)]
    stages += [wall.stage(real, dim, axis, cells[axis], margin, walls[2 * axis : 2 * axis + 2]) for axis in range(dim)]
    boundary_stages = compose(real, dim, stages)

    @ti.func
    def free_velocity(m: real, p: vec, env: ti.template(), k: ti.template()) -> vec:
        return p / (m + k.floor) + k.h * vec([env[j] for j in ti.static(range(dim))])

    @ti.func
    def velocity(cell: ivec, m: real, p: vec, boundary: ti.template(), k: ti.template()) -> vec:
        return boundary_stages.velocity(
            cell, free_velocity(m, p, boundary.env, k), boundary.env, boundary.sizes, k.dx, k.skin
        )

    @ti.func
    def adj_velocity(
        cell: ivec,
        m: real,
        p: vec,
        adj_u: vec,
        boundary: ti.template(),
        k: ti.template(),
        acc: ti.template(),
        wanted: ti.template(),
        atomic: ti.template(),
    ):
        u = free_velocity(m, p, boundary.env, k)
        a = boundary_stages.adj(cell, u, adj_u, boundary.env, boundary.sizes, k.dx, k.skin, acc, wanted, atomic)
        inverse = 1 / (m + k.floor)
        if ti.static(wanted):  # noqa: SIM102 - one is compiled in, the other runs
            if ti.abs(a).sum() > 0:  # most nodes are empty, and adding to memory is slow
                accumulate(acc, 0, dim, k.h * a, atomic)
        return -p.dot(a) * inverse * inverse, a * inverse

    @ti.func
    def jvp_velocity(
        cell: ivec, m: real, p: vec, dm: real, dp: vec, boundary: ti.template(), denv: ti.template(), k: ti.template()
    ) -> vec:
        u, inverse = free_velocity(m, p, boundary.env, k), 1 / (m + k.floor)
        du = (dp - dm * inverse * p) * inverse + k.h * vec([denv[j] for j in ti.static(range(dim))])
        return boundary_stages.jvp(cell, u, du, boundary.env, denv, boundary.sizes, k.dx, k.skin)

    return SimpleNamespace(velocity=velocity, adj_velocity=adj_velocity, jvp_velocity=jvp_velocity)


@functools.cache
@no_type_check
def kernels(
    real: Any, dim: int, cells: tuple[int, ...], *setup: Any, parallel: bool, wanted: bool, atomic: bool
) -> SimpleNamespace:
    """Loops over nodes for the nested sub-step; `setup` holds the arguments of `functions` after `cells`."""
    vec, ivec = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32)
    f = functions(real, dim, cells, *setup)
    vectors, types = ti.types.ndarray(dtype=vec, ndim=1), arrays.types(real)
    reals, boundary_type, constants_type = types.reals, types.boundary, types.constants

    @ti.func
    def cell_of(node) -> ivec:
        cell, rest = ivec(0), node
        for reverse in ti.static(range(dim)):
            axis = ti.static(dim - 1 - reverse)
            cell[axis] = rest % ti.static(cells[axis])
            rest = rest // ti.static(cells[axis])
        return cell

    @kernel
    def forward(m: reals, p: vectors, boundary: boundary_type, k: constants_type, n: ti.i32, u: vectors):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            u[i] = f.velocity(cell_of(i), m[i], p[i], boundary, k)

    @kernel
    def adjoint(
        m: reals, p: vectors, boundary: boundary_type, k: constants_type, n: ti.i32,
        adj_u: vectors, adj_m: reals, adj_p: vectors, adj_env: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            gm, gp = f.adj_velocity(cell_of(i), m[i], p[i], adj_u[i], boundary, k, adj_env, wanted, atomic)
            adj_m[i] = gm
            adj_p[i] = gp

    @kernel
    def tangent(
        m: reals, p: vectors, boundary: boundary_type, k: constants_type, n: ti.i32,
        dm: reals, dp: vectors, denv: reals, du: vectors,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            du[i] = f.jvp_velocity(cell_of(i), m[i], p[i], dm[i], dp[i], boundary, denv, k)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


NODE_US = 0.004
"""Serial cost [us] of one node in the forward loop."""


class GridVelocity(Function):
    """Velocity [nodes, dim] [m/s] of nodes with mass [nodes] and momentum [nodes, dim] in the environment `env`.

    Nodes are numbered with the last axis fastest. Saves the three inputs.
    """

    @staticmethod
    def forward(ctx: Context, model: "MPM", mass: Tensor, momentum: Tensor, env: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(mass, momentum, env)
        u = np.empty(momentum.shape, momentum.dtype)
        _kernels(model).forward(mass, momentum, *_surroundings(model, env), u)
        return u

    @staticmethod
    def backward(ctx: Context, adj_u: Tensor) -> tuple[Any, ...]:
        mass, momentum, env = ctx.saved_tensors
        adj_m, adj_p, adj_env = np.empty_like(mass.data), np.empty_like(momentum.data), np.zeros_like(env.data)
        chosen = _kernels(ctx.model, wanted=ctx.needs_input_grad[3])
        chosen.adjoint(mass, momentum, *_surroundings(ctx.model, env), adj_u, adj_m, adj_p, adj_env)
        return None, adj_m, adj_p, adj_env

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        du = np.empty_like(tangents[1])
        mass, momentum, env = ctx.saved_tensors
        _kernels(ctx.model).tangent(mass, momentum, *_surroundings(ctx.model, env), *tangents, du)
        return du


def setup(model: "MPM") -> tuple[Any, ...]:
    """Return the arguments of `functions` after `real`."""
    shapes, contacts = (tuple([getattr(c, name) for c in model.colliders]) for name in ("shape", "contact"))
    return model.dim, model.cells, model.margin, model.walls, shapes, contacts


def collider_sizes(model: "MPM") -> np.ndarray[Any, Any]:
    """Return three sizes for each collider, padded by 0; without colliders one row, as kernels take no empty arrays."""
    rows = [(*collider.size, 0.0, 0.0, 0.0)[:3] for collider in model.colliders] or [(0.0, 0.0, 0.0)]
    return np.array(rows, runtime.real_dtype()).ravel()


def _surroundings(model: "MPM", env: Tensor) -> tuple[Any, ...]:
    constants = arrays.Constants(model.dt, model.spacing, model.skin, model.mass_floor)
    return arrays.Boundary(env, collider_sizes(model)), constants, model.nodes


def _kernels(model: "MPM", wanted: bool = False) -> SimpleNamespace:
    """Compile the kernels. With the adjoint of env `wanted` on a CPU, they run serially, to sum in a fixed order."""
    on_gpu = runtime.settings().on_gpu
    parallel = on_gpu or (not wanted and runtime.parallel(NODE_US * model.nodes))
    return kernels(runtime.real(), *setup(model), parallel=parallel, wanted=wanted, atomic=on_gpu)
