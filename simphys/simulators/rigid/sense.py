"""Inputs of a controller: poses of the bodies relative to their mean position, their velocities, and the goal.

    s_i = (scale (x_i - c), R_i e_1 [, R_i e_2], scale v_i, scale w_i)   of each body i,      s_goal = goal - c

as one row, with c the mean of x_i. Of the rotation, the first dim - 1 columns determine it and have no jumps (Zhou et
al. 2019, On the Continuity of Rotation Representations). Adjoint, for g of the parts of body i, k columns, and g_goal:

    adj_x_i = scale g_x_i - (g_goal + scale sum over j of g_x_j) / n      adj_theta_i = sum_k (R_i e_k) x g_k_i
    adj_v_i = scale g_v_i      adj_w_i = scale g_w_i
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.nn import Controller
from simphys.numerics import rotation
from simphys.simulator import Array

from . import rows
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int, controller: Controller) -> SimpleNamespace:
    """Return the loops over the bodies; for the arguments see rows.py. The row begins at `s0` of s."""
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)
    spins, vec, scale = at.spins, at.vec, controller.scale
    own = dim * (dim + 1) + spins
    goal = controller.goal

    @ti.func
    def sense(
        n, x: ti.template(), x0, q: ti.template(), q0, v: ti.template(), v0, w: ti.template(), w0,
        s: ti.template(), s0,
    ):  # fmt: skip
        total = vec(0.0)
        for i in range(n):
            total += at.vec_of(x, x0, i)
        c = total / n
        for i in range(n):
            start, R = s0 + i * own, rotate.matrix(at.rotation_of(q, q0, i))
            at.put_vec(s, start, scale * (at.vec_of(x, x0, i) - c))
            for k in ti.static(range(dim - 1)):
                for e in ti.static(range(dim)):
                    s[start + (k + 1) * dim + e] = R[e, k]
            at.put_vec(s, start + dim * dim, scale * at.vec_of(v, v0, i))
            at.put_spin(s, start + dim * dim + dim, scale * at.spin_of(w, w0, i))
        for e in ti.static(range(dim)):
            s[s0 + n * own + e] = goal[e] - c[e]

    @ti.func
    def adj_sense(
        n, s: ti.template(), s0, adj_s: ti.template(), adj_s0,
        adj_x: ti.template(), adj_x0, adj_theta: ti.template(), adj_theta0, adj_v: ti.template(), adj_v0,
        adj_w: ti.template(), adj_w0,
    ):  # fmt: skip
        """Add to the adjoints; `s` is the result of the forward loop."""
        total = at.vec_at(adj_s, adj_s0 + n * own)
        for i in range(n):
            total += scale * at.vec_at(adj_s, adj_s0 + i * own)
        for i in range(n):
            start, g = s0 + i * own, adj_s0 + i * own
            at.add_vec_of(adj_x, adj_x0, i, scale * at.vec_at(adj_s, g) - total / n)
            for k in range(1, dim):
                column, adj_column = at.vec_at(s, start + k * dim), at.vec_at(adj_s, g + k * dim)
                at.add_spin_of(adj_theta, adj_theta0, i, rotate.moment(column, adj_column))
            at.add_vec_of(adj_v, adj_v0, i, scale * at.vec_at(adj_s, g + dim * dim))
            at.add_spin_of(adj_w, adj_w0, i, scale * at.spin_at(adj_s, g + dim * dim + dim))

    return SimpleNamespace(sense=sense, adj_sense=adj_sense)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, controller: Controller) -> SimpleNamespace:
    """Return the kernels of the nested sub-step."""
    f, add_turns, reals = (
        loops(real, dim, controller),
        orientation_adjoint(real, dim),
        ti.types.ndarray(dtype=real, ndim=1),
    )

    @kernel
    def forward(n: ti.i32, x: reals, q: reals, v: reals, w: reals, s: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.sense(n, x, 0, q, 0, v, 0, w, 0, s, 0)

    @kernel
    def adjoint(
        n: ti.i32, q: reals, s: reals, adj_s: reals, adj_theta: reals, adj_x: reals, adj_q: reals, adj_v: reals,
        adj_w: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj_sense(n, s, 0, adj_s, 0, adj_x, 0, adj_theta, 0, adj_v, 0, adj_w, 0)
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Sense(Function):
    """Inputs that the controller gets from the fields of the state, [senses]. Saved: orientation, and the result."""

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *state: Tensor) -> Array:
        row = np.empty(model.senses, runtime.real_dtype())
        _kernels(model).forward(model.bodies, *flatten(*state), row)
        ctx.model = model
        ctx.save_for_backward(*state, row)
        return row

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        *state, row = ctx.saved_tensors
        adj_theta, adjoints = np.zeros(model.bodies * model.spins, adj_row.dtype), zeros_like(*state)
        _kernels(model).adjoint(model.bodies, *flatten(state[1], row, adj_row, adj_theta, *adjoints))
        return None, *adjoints


def _kernels(model: RigidBodies) -> SimpleNamespace:
    assert model.controller is not None, "sense.py needs a controller"
    return kernels(runtime.real(), model.dim, model.controller)
