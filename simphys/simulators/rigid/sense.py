"""Inputs of a controller: poses of the bodies relative to their mean position, their velocities, and the goal.

    s_i = (scale (x_i - c), R_i e_1 [, R_i e_2], scale v_i, scale w_i)   of each body i,      s_goal = goal - c

as one row, with c the mean of x_i. Of the rotation, the first dim - 1 columns determine it and have no jumps (Zhou et
al. 2019, On the Continuity of Rotation Representations). Adjoint, for g of the parts of body i, k columns, and g_goal:

    adj_x_i = scale g_x_i - (g_goal + scale sum over j of g_x_j) / n      adj_theta_i = sum_k (R_i e_k) x g_k_i
    adj_v_i = scale g_v_i      adj_w_i = scale g_w_i

Tangent: that of R_i e_k is dtheta_i x (R_i e_k), the rest is linear.
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

from . import arrays, rows
from .arrays import flat
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int, controller: Controller) -> SimpleNamespace:
    """Return the loops over the bodies; for the arguments see rows.py. The row is `s`."""
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)
    spins, vec, scale = at.spins, at.vec, controller.scale
    own = dim * (dim + 1) + spins
    goal = controller.goal

    @ti.func
    def sense(n, motion: ti.template(), s: ti.template()):
        total = vec(0.0)
        for i in range(n):
            total += at.vec_of(motion.x, i)
        c = total / n
        for i in range(n):
            start, R = i * own, rotate.matrix(at.rotation_of(motion.q, i))
            at.put_vec(s, start, scale * (at.vec_of(motion.x, i) - c))
            for k in ti.static(range(dim - 1)):
                for e in ti.static(range(dim)):
                    s[start + (k + 1) * dim + e] = R[e, k]
            at.put_vec(s, start + dim * dim, scale * at.vec_of(motion.v, i))
            at.put_spin(s, start + dim * dim + dim, scale * at.spin_of(motion.w, i))
        for e in ti.static(range(dim)):
            s[n * own + e] = goal[e] - c[e]

    @ti.func
    def adj_sense(n, s: ti.template(), adj_s: ti.template(), adj_motion: ti.template()):
        """Add to the adjoints; `s` is the result of the forward loop."""
        total = at.vec_at(adj_s, n * own)
        for i in range(n):
            total += scale * at.vec_at(adj_s, i * own)
        for i in range(n):
            start, g = i * own, i * own
            at.add_vec_of(adj_motion.x, i, scale * at.vec_at(adj_s, g) - total / n)
            for k in range(1, dim):
                column, adj_column = at.vec_at(s, start + k * dim), at.vec_at(adj_s, g + k * dim)
                at.add_spin_of(adj_motion.theta, i, rotate.moment(column, adj_column))
            at.add_vec_of(adj_motion.v, i, scale * at.vec_at(adj_s, g + dim * dim))
            at.add_spin_of(adj_motion.w, i, scale * at.spin_at(adj_s, g + dim * dim + dim))

    @ti.func
    def jvp_sense(n, motion: ti.template(), s: ti.template(), dmotion: ti.template(), ds: ti.template()):
        """Compute the tangent; `s` is the result of the forward loop."""
        total = vec(0.0)
        for i in range(n):
            total += at.vec_of(dmotion.x, i)
        dc = total / n
        for i in range(n):
            start, turn = i * own, at.turn_of(motion.q, dmotion.q, i)
            at.put_vec(ds, start, scale * (at.vec_of(dmotion.x, i) - dc))
            for k in range(1, dim):
                at.put_vec(ds, start + k * dim, rotate.cross(turn, at.vec_at(s, start + k * dim)))
            at.put_vec(ds, start + dim * dim, scale * at.vec_of(dmotion.v, i))
            at.put_spin(ds, start + dim * dim + dim, scale * at.spin_of(dmotion.w, i))
        at.put_vec(ds, n * own, -dc)

    return SimpleNamespace(sense=sense, adj_sense=adj_sense, jvp_sense=jvp_sense)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, controller: Controller) -> SimpleNamespace:
    """Return the kernels of the nested sub-step."""
    f, add_turns = loops(real, dim, controller), orientation_adjoint(real, dim)
    types = arrays.types(real)
    motion_type, turned_motion_type = types.motion, types.turned_motion
    reals = types.reals

    @kernel
    def forward(n: ti.i32, motion: motion_type, s: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.sense(n, motion, s)

    @kernel
    def adjoint(n: ti.i32, q: reals, s: reals, adj_s: reals, adj_motion: turned_motion_type):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj_sense(n, s, adj_s, adj_motion)
            add_turns(q, n, adj_motion.theta, adj_motion.q)

    @kernel
    def tangent(n: ti.i32, motion: motion_type, s: reals, dmotion: motion_type, ds: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.jvp_sense(n, motion, s, dmotion, ds)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Sense(Function):
    """Inputs that the controller gets from the fields of the state, [senses]. Saved: orientation, and the result."""

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *state: Tensor) -> Array:
        row = np.empty(model.senses, runtime.real_dtype())
        _kernels(model).forward(model.bodies, flat(arrays.Motion(*state)), row)
        ctx.model = model
        ctx.save_for_backward(*state, row)
        return row

    @staticmethod
    def backward(ctx: Context, adj_row: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        *state, row = ctx.saved_tensors
        adj_theta, adjoints = np.zeros(model.bodies * model.spins, adj_row.dtype), zeros_like(*state)
        adj_motion = flat(arrays.Motion(*adjoints)._replace(theta=adj_theta))
        _kernels(model).adjoint(model.bodies, *flatten(state[1], row, adj_row), adj_motion)
        return None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Array:
        model: RigidBodies = ctx.model
        *state, row = ctx.saved_tensors
        drow = np.empty(model.senses, tangents[0].dtype)
        motion, dmotion = flat(arrays.Motion(*state)), flat(arrays.Motion(*tangents))
        _kernels(model).tangent(model.bodies, motion, *flatten(row), dmotion, drow)
        return drow


def _kernels(model: RigidBodies) -> SimpleNamespace:
    assert model.controller is not None, "sense.py needs a controller"
    return kernels(runtime.real(), model.dim, model.controller)
