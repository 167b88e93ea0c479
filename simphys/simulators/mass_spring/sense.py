"""Sensing: the inputs of a controller from the nodes' positions relative to their centre, their velocities, and a goal.

    s_i = (scale (x_i - c), scale v_i)   for each node i,      s_goal = goal - c,      c = mean of x_i

These form one row of 2 n dim + dim numbers: x_0, v_0, x_1, v_1, ..., goal. scale is in [1/m] for positions, in [s/m]
for velocities. Adjoint, for the adjoints g_i, h_i of the two parts of s_i, and g_goal of s_goal:

    adj_v_i = scale h_i      adj_x_i = scale g_i - (g_goal + scale sum over j of g_j) / n

Source: Hu et al. 2020 (DiffTaichi), mass_spring.py.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.nn import Controller
from simphys.simulator import Array

from .model import MassSpring


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions: the sensed values of a node, their adjoint, and the adjoint of the centre."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def node(x: vec, v: vec, c: vec, scale: real):
        return scale * (x - c), scale * v

    @ti.func
    def adj_node(scale: real, g: vec, h: vec):
        """Adjoints of x and v; that of c is the negative of the first."""
        return scale * g, scale * h

    @ti.func
    def adj_centre(scale: real, total: vec, g_goal: vec, n: real) -> vec:
        """Adjoint of each node's position through the centre; `total` is the sum of all g."""
        return -(g_goal + scale * total) / n

    return SimpleNamespace(node=node, adj_node=adj_node, adj_centre=adj_centre)


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Loops over the nodes of one member: states begin at `now`, adjoints at `own`, the row at `at`."""
    vec, f = ti.types.vector(dim, real), functions(real, dim)

    @ti.func
    def sense(x: ti.template(), v: ti.template(), now, n, goal: vec, scale: real, row: ti.template(), at):
        c = vec(0.0)
        for i in range(n):
            c += x[now + i]
        centre = c / n
        for i in range(n):
            d, w = f.node(x[now + i], v[now + i], centre, scale)
            for k in ti.static(range(dim)):
                row[at + 2 * dim * i + k] = d[k]
                row[at + 2 * dim * i + dim + k] = w[k]
        for k in ti.static(range(dim)):
            row[at + 2 * dim * n + k] = goal[k] - centre[k]

    @ti.func
    def adj_sense(n, scale: real, adj_row: ti.template(), at, adj_x: ti.template(), adj_v: ti.template(), own):
        """Add to adj_x and adj_v."""
        total, g_goal = vec(0.0), vec(0.0)
        for i in range(n):
            for k in ti.static(range(dim)):
                total[k] += adj_row[at + 2 * dim * i + k]
        for k in ti.static(range(dim)):
            g_goal[k] = adj_row[at + 2 * dim * n + k]
        adj_c = f.adj_centre(scale, total, g_goal, n)
        for i in range(n):
            g, h = vec(0.0), vec(0.0)
            for k in ti.static(range(dim)):
                g[k] = adj_row[at + 2 * dim * i + k]
                h[k] = adj_row[at + 2 * dim * i + dim + k]
            gx, gv = f.adj_node(scale, g, h)
            adj_x[own + i] = adj_x[own + i] + gx + adj_c
            adj_v[own + i] = adj_v[own + i] + gv

    return SimpleNamespace(sense=sense, adj_sense=adj_sense)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Kernels of the nested sub-step."""
    f, vec = loops(real, dim), ti.types.vector(dim, real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(x: vectors, v: vectors, n: ti.i32, goal: vectors, scale: real, row: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.sense(x, v, 0, n, goal[0], scale, row, 0)

    @kernel
    def adjoint(n: ti.i32, scale: real, adj_row: reals, adj_x: vectors, adj_v: vectors):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj_sense(n, scale, adj_row, 0, adj_x, adj_v, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Sense(Function):
    """Row [2 n dim + dim] that the controller senses, from position [m] and velocity [m/s], [n, dim] each.

    Saved: nothing, since the map is affine.
    """

    @staticmethod
    def forward(ctx: Context, model: MassSpring, position: Tensor, velocity: Tensor) -> Array:
        ctx.model = model
        return _sense_row(model, position, velocity, _controller(model).goal)

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor) -> tuple[Any, ...]:
        model: MassSpring = ctx.model
        adj_x, adj_v = (np.zeros((model.nodes, model.dim), adj_row.dtype) for _ in range(2))
        launch = kernels(runtime.real(), model.dim).adjoint
        launch(model.nodes, _controller(model).scale, adj_row, adj_x, adj_v)
        return None, adj_x, adj_v

    @staticmethod
    def jvp(ctx: Context, _: None, dposition: Any, dvelocity: Any) -> Array:
        model: MassSpring = ctx.model
        return _sense_row(model, dposition, dvelocity, (0.0,) * model.dim)


def _controller(model: MassSpring) -> Controller:
    assert model.controller is not None, "only a controller senses"
    return model.controller


def _sense_row(model: MassSpring, x: Any, v: Any, goal: tuple[float, ...]) -> Array:
    n, dim = model.nodes, model.dim
    row = np.empty((2 * n + 1) * dim, runtime.real_dtype())
    goal_vector = np.array([goal], runtime.real_dtype())
    kernels(runtime.real(), dim).forward(x, v, n, goal_vector, _controller(model).scale, row)
    return row
