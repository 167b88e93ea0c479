"""Split of a step: an impact divides it in two for all bodies that it reaches (islands.py).

    s = (tau - t_0) / h        fraction of the step before it          1 for bodies that no impact reaches
    x_t = x + tau v,   q_t = e(tau w) q          poses then            x, q where forces act

with tau the time of impact and t_0 that of the step's start, both relative to the time of the forces. v, w are the
velocities after the forces, as in the search for impacts (time_of_impact.py). In such a step, joints and contacts at
rest have their directions of that moment. Impulses act along them. Their rotation with the time of impact represents
the change of velocities by constraint forces until then. A fixed body has its pose at the forces.

Adjoint: adj_tau = adj_s / h + adj_x_t.v + p.w, adj_v = tau adj_x_t, adj_w = tau p, where adj_q and p, the adjoint of
tau w, are those of advance (numerics/rotation.py).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import rows
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies; for the arguments see rows.py."""
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)

    @ti.func
    def split_step(
        n, h, span, x: ti.template(), x0, q: ti.template(), q0, twist: ti.template(), twist0,
        time: ti.template(), time0, first: ti.template(), first0,
        x_impact: ti.template(), x_impact0, q_impact: ti.template(), q_impact0, fraction: ti.template(), fraction0,
    ):  # fmt: skip
        for b in range(n):
            tau, s, c = real(0.0), real(1.0), ti.cast(first[first0 + b], ti.i32)
            if c >= 0:
                tau = time[time0 + c]
                s = (tau + h - span) / h
            fraction[fraction0 + b] = s
            at.put_vec(x_impact, x_impact0 + b * dim, at.vec_of(x, x0, b) + tau * at.linear(twist, twist0, b))
            rotated = rotate.advance(at.rotation_of(q, q0, b), tau * at.angular(twist, twist0, b))
            at.put_rotation(q_impact, q_impact0 + b * at.rotations, rotated)

    @ti.func
    def adj_split_step(
        n, h, q: ti.template(), q0, twist: ti.template(), twist0, time: ti.template(), time0,
        first: ti.template(), first0, q_impact: ti.template(), q_impact0,
        adj_x_impact: ti.template(), adj_x_impact0, adj_rotation: ti.template(), adj_rotation0,
        adj_fraction: ti.template(), adj_fraction0,
        adj_x: ti.template(), adj_x0, adj_theta: ti.template(), adj_theta0, adj_twist: ti.template(), adj_twist0,
        adj_time: ti.template(), adj_time0,
    ):  # fmt: skip
        """Add to the adjoints; adj_rotation [n, S] is the adjoint of q_impact by small rotations."""
        for b in range(n):
            tau, c = real(0.0), ti.cast(first[first0 + b], ti.i32)
            if c >= 0:
                tau = time[time0 + c]
            g_x, still = at.vec_of(adj_x_impact, adj_x_impact0, b), at.rotation_of(q, q0, b)
            w = at.angular(twist, twist0, b)
            g_pose = rotate.adj_turn(at.rotation_of(q_impact, q_impact0, b), at.spin_of(adj_rotation, adj_rotation0, b))
            g_q, g_phi = rotate.adj_advance(still, tau * w, g_pose)
            at.add_vec_of(adj_x, adj_x0, b, g_x)
            at.add_spin_of(adj_theta, adj_theta0, b, rotate.adj_theta(still, g_q))
            at.add_twist(adj_twist, adj_twist0, b, tau * g_x, tau * g_phi)
            if c >= 0:
                g_tau = adj_fraction[adj_fraction0 + b] / h + g_x.dot(at.linear(twist, twist0, b)) + g_phi.dot(w)
                adj_time[adj_time0 + c] = adj_time[adj_time0 + c] + g_tau

    return SimpleNamespace(split_step=split_step, adj=adj_split_step)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, f, add_turns = ti.types.ndarray(dtype=real, ndim=1), loops(real, dim), orientation_adjoint(real, dim)
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)

    @kernel
    def forward(
        n: ti.i32, h: real, span: real, x: reals, q: reals, twist: reals, time: reals, first: reals,
        x_impact: reals, q_impact: reals, fraction: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.split_step(n, h, span, x, 0, q, 0, twist, 0, time, 0, first, 0, x_impact, 0, q_impact, 0, fraction, 0)

    @kernel
    def adjoint(
        n: ti.i32, h: real, q: reals, twist: reals, time: reals, first: reals, q_impact: reals,
        adj_x_impact: reals, adj_q_impact: reals, adj_fraction: reals, adj_rotation: reals, adj_theta: reals,
        adj_x: reals, adj_q: reals, adj_twist: reals, adj_time: reals,
    ):  # fmt: skip
        for _ in range(1):
            for b in range(n):
                g_rotation = rotate.adj_theta(at.rotation_of(q_impact, 0, b), at.rotation_of(adj_q_impact, 0, b))
                at.put_spin(adj_rotation, b * at.spins, g_rotation)
            f.adj(
                n, h, q, 0, twist, 0, time, 0, first, 0, q_impact, 0, adj_x_impact, 0, adj_rotation, 0, adj_fraction, 0,
                adj_x, 0, adj_theta, 0, adj_twist, 0, adj_time, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class SplitStep(Function):
    """Pose at the first impact that reaches each body, [n, dim] and [n, R], and the fraction of the step before it [n].

    `first` [n] is that impact. Inputs: position [n, dim], orientation [n, R], twist [n, D], time [M]. Saved: all but
    the position, and the new orientations.
    """

    @staticmethod
    def forward(
        ctx: Context, model: RigidBodies, first: Tensor, position: Tensor, orientation: Tensor, *inputs: Tensor
    ) -> tuple[Any, ...]:
        x_impact, q_impact = np.empty_like(position.data), np.empty_like(orientation.data)
        fraction = np.empty(model.bodies, position.dtype)
        _kernels(model).forward(
            model.bodies,
            model.dt,
            model.span,
            *flatten(position, orientation, *inputs, first, x_impact, q_impact, fraction),
        )
        ctx.model = model
        ctx.save_for_backward(orientation, *inputs, first, q_impact)
        return x_impact, q_impact, fraction

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        work = [np.zeros(model.bodies * model.spins, adjoints[0].dtype) for _ in range(2)]
        found = [np.zeros((model.bodies, model.dim), adjoints[0].dtype), *zeros_like(*ctx.saved_tensors[:3])]
        _kernels(model).adjoint(model.bodies, model.dt, *flatten(*ctx.saved_tensors, *adjoints, *work, *found))
        return None, None, *found


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
