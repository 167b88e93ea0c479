"""Springs with dampers between a point of body a and a point of body b or of the world.

With r_a, r_b the arms from either centre to its point, d the vector from the point of a to that of b, and z its rate,

    d = (x_b + r_b) - (x_a + r_a)      z = (v_b + w_b x r_b) - (v_a + w_a x r_a)

the force f(d, z) of `simphys.numerics.spring` acts on a, and -f on b, at their points. Its adjoints adj_d and adj_z are
those for adj_f = g_a - g_b + h_a x r_a - h_b x r_b, where (g_a, h_a), (g_b, h_b) are the adjoints of force and torque
on a and b. The arm of a gets adj_ra = f x h_a - adj_d - adj_z x w_a, b's the opposite; adj_theta = r x adj_r and
adj_w_a = -r_a x adj_z.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation, spring
from simphys.simulator import Array

from . import rows
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over springs, bodies [2 K] with anchors [2 K dim]; see rows.py. Forces are added to `wrench`."""
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), spring.functions(real, dim, True)
    vec = at.vec

    @ti.func
    def arm(anchors: ti.template(), end, q: ti.template(), q0, body) -> vec:
        return rotate.matrix(at.rotation_of(q, q0, body)) @ at.vec_at(anchors, end * dim)

    @ti.func
    def rate(v: ti.template(), v0, w: ti.template(), w0, body, r: vec) -> vec:
        return at.vec_of(v, v0, body) + rotate.cross(at.spin_of(w, w0, body), r)

    @ti.func
    def spring_damper(
        bodies: ti.template(), anchors: ti.template(), K,
        x: ti.template(), x0, q: ti.template(), q0, v: ti.template(), v0, w: ti.template(), w0,
        stiffness: ti.template(), stiffness0, damping: ti.template(), damping0, length: ti.template(), length0,
        wrench: ti.template(), wrench0,
    ):  # fmt: skip
        for k in range(K):
            i, j = bodies[2 * k], bodies[2 * k + 1]
            r_a, r_b = arm(anchors, 2 * k, q, q0, i), arm(anchors, 2 * k + 1, q, q0, j)
            d = at.vec_of(x, x0, j) + r_b - at.vec_of(x, x0, i) - r_a
            z = rate(v, v0, w, w0, j, r_b) - rate(v, v0, w, w0, i, r_a)
            F = f.force(d, z, stiffness[stiffness0 + k], damping[damping0 + k], length[length0 + k])
            at.add_twist(wrench, wrench0, i, F, rotate.moment(r_a, F))
            at.add_twist(wrench, wrench0, j, -F, -rotate.moment(r_b, F))

    @ti.func
    def adj_spring_damper(
        bodies: ti.template(), anchors: ti.template(), K,
        x: ti.template(), x0, q: ti.template(), q0, v: ti.template(), v0, w: ti.template(), w0,
        stiffness: ti.template(), stiffness0, damping: ti.template(), damping0, length: ti.template(), length0,
        adj_wrench: ti.template(), adj_wrench0,
        adj_x: ti.template(), adj_x0, adj_theta: ti.template(), adj_theta0,
        adj_v: ti.template(), adj_v0, adj_w: ti.template(), adj_w0,
        adj_stiffness: ti.template(), adj_stiffness0, adj_damping: ti.template(), adj_damping0,
        adj_length: ti.template(), adj_length0,
    ):  # fmt: skip
        for s in range(K):
            i, j = bodies[2 * s], bodies[2 * s + 1]
            r_a, r_b = arm(anchors, 2 * s, q, q0, i), arm(anchors, 2 * s + 1, q, q0, j)
            d = at.vec_of(x, x0, j) + r_b - at.vec_of(x, x0, i) - r_a
            z = rate(v, v0, w, w0, j, r_b) - rate(v, v0, w, w0, i, r_a)
            k, c, L = stiffness[stiffness0 + s], damping[damping0 + s], length[length0 + s]
            F = f.force(d, z, k, c, L)

            h_a, h_b = at.angular(adj_wrench, adj_wrench0, i), at.angular(adj_wrench, adj_wrench0, j)
            g = at.linear(adj_wrench, adj_wrench0, i) - at.linear(adj_wrench, adj_wrench0, j)
            g += rotate.cross(h_a, r_a) - rotate.cross(h_b, r_b)
            adj_d, adj_z, adj_k, adj_c, adj_L = f.adj(d, z, k, c, L, g)
            w_a, w_b = at.spin_of(w, w0, i), at.spin_of(w, w0, j)
            adj_ra = rotate.adj_cross(h_a, F) - adj_d - rotate.adj_cross(w_a, adj_z)
            adj_rb = -rotate.adj_cross(h_b, F) + adj_d + rotate.adj_cross(w_b, adj_z)

            at.add_vec_of(adj_x, adj_x0, i, -adj_d)
            at.add_vec_of(adj_x, adj_x0, j, adj_d)
            at.add_spin_of(adj_theta, adj_theta0, i, rotate.moment(r_a, adj_ra))
            at.add_spin_of(adj_theta, adj_theta0, j, rotate.moment(r_b, adj_rb))
            at.add_vec_of(adj_v, adj_v0, i, -adj_z)
            at.add_vec_of(adj_v, adj_v0, j, adj_z)
            at.add_spin_of(adj_w, adj_w0, i, -rotate.moment(r_a, adj_z))
            at.add_spin_of(adj_w, adj_w0, j, rotate.moment(r_b, adj_z))
            adj_stiffness[adj_stiffness0 + s] = adj_stiffness[adj_stiffness0 + s] + adj_k
            adj_damping[adj_damping0 + s] = adj_damping[adj_damping0 + s] + adj_c
            adj_length[adj_length0 + s] = adj_length[adj_length0 + s] + adj_L

    return SimpleNamespace(spring_damper=spring_damper, adj=adj_spring_damper)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim), orientation_adjoint(real, dim)

    @kernel
    def forward(
        bodies: ints, anchors: reals, K: ti.i32, x: reals, q: reals, v: reals, w: reals,
        stiffness: reals, damping: reals, length: reals, wrench: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.spring_damper(
                bodies, anchors, K, x, 0, q, 0, v, 0, w, 0, stiffness, 0, damping, 0, length, 0, wrench, 0
            )  # fmt: skip

    @kernel
    def adjoint(
        bodies: ints, anchors: reals, K: ti.i32, n: ti.i32, x: reals, q: reals, v: reals, w: reals,
        stiffness: reals, damping: reals, length: reals, adj_wrench: reals, adj_theta: reals,
        adj_x: reals, adj_q: reals, adj_v: reals, adj_w: reals,
        adj_stiffness: reals, adj_damping: reals, adj_length: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                bodies, anchors, K, x, 0, q, 0, v, 0, w, 0, stiffness, 0, damping, 0, length, 0, adj_wrench, 0,
                adj_x, 0, adj_theta, 0, adj_v, 0, adj_w, 0, adj_stiffness, 0, adj_damping, 0, adj_length, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class SpringDamper(Function):
    """Wrench [n, D] of all spring-dampers of a model. Saved: the inputs.

    Inputs: the fields of the state, spring_stiffness, spring_damping and spring_length, [K] each.
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *inputs: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(*inputs)
        wrench = np.zeros((model.bodies, model.dim + model.spins), inputs[0].dtype)
        _kernels(model).forward(*springs(model), *flatten(*inputs, wrench))
        return wrench

    @staticmethod
    def backward(ctx: Context, adj_wrench: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        adj_theta = np.zeros(model.bodies * model.spins, adj_wrench.dtype)
        adjoints = zeros_like(*ctx.saved_tensors)
        _kernels(model).adjoint(
            *springs(model), model.bodies, *flatten(*ctx.saved_tensors, adj_wrench, adj_theta), *flatten(*adjoints)
        )
        return None, *adjoints


def springs(model: RigidBodies) -> tuple[Array, Array, int]:
    """Return bodies [2 K] and anchors [2 K dim] of all springs, end a first, and their number K."""
    bodies = [(spring.a, spring.b) for spring in model.springs]
    anchors = [(spring.anchor_a, spring.anchor_b) for spring in model.springs]
    return *flatten(np.array(bodies, np.int32), np.array(anchors, runtime.real_dtype())), len(model.springs)


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
