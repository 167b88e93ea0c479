"""Springs with dampers between a point of body a and a point of body b or of the world.

With r_a, r_b the arms from either centre to its point, d the vector from the point of a to that of b, and z its rate,

    d = (x_b + r_b) - (x_a + r_a)      z = (v_b + w_b x r_b) - (v_a + w_a x r_a)

the force f(d, z) of `simphys.numerics.spring` acts on a, and -f on b, at their points. Its adjoints adj_d and adj_z are
those for adj_f = g_a - g_b + h_a x r_a - h_b x r_b, where (g_a, h_a), (g_b, h_b) are the adjoints of force and torque
on a and b. The arm of a gets adj_ra = f x h_a - adj_d - adj_z x w_a, b's the opposite; adj_theta = r x adj_r and
adj_w_a = -r_a x adj_z. Tangents, with dr = dtheta x r:

    dd = dx_b + dr_b - dx_a - dr_a      dz = (dv_b + dw_b x r_b + w_b x dr_b) - (dv_a + dw_a x r_a + w_a x dr_a)

and that of the moment r x f is dr x f + r x df.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation, spring

from . import arrays, rows
from .arrays import flat
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over springs, bodies [2 K] with anchors [2 K dim]; see rows.py. Forces are added to `wrench`."""
    at, rotate, f = (
        rows.functions(real, dim),
        rotation.functions(real, dim),
        SimpleNamespace(force=spring.spring_force, adj=spring.adj_spring_force, jvp=spring.jvp_spring_force),
    )
    vec = at.vec

    @ti.func
    def arm(anchors: ti.template(), end, q: ti.template(), body) -> vec:
        return rotate.matrix(at.rotation_of(q, body)) @ at.vec_at(anchors, end * dim)

    @ti.func
    def rate(motion: ti.template(), body, r: vec) -> vec:
        return at.vec_of(motion.v, body) + rotate.cross(at.spin_of(motion.w, body), r)

    @ti.func
    def spring_damper(springs: ti.template(), motion: ti.template(), params: ti.template(), change: ti.template()):
        for k in range(springs.count):
            i, j = springs.bodies[2 * k], springs.bodies[2 * k + 1]
            r_a, r_b = arm(springs.anchors, 2 * k, motion.q, i), arm(springs.anchors, 2 * k + 1, motion.q, j)
            d = at.vec_of(motion.x, j) + r_b - at.vec_of(motion.x, i) - r_a
            z = rate(motion, j, r_b) - rate(motion, i, r_a)
            F = f.force(d, z, params.spring_stiffness[k], params.spring_damping[k], params.spring_length[k])
            at.add_twist(change.wrench, i, F, rotate.moment(r_a, F))
            at.add_twist(change.wrench, j, -F, -rotate.moment(r_b, F))

    @ti.func
    def adj_spring_damper(
        springs: ti.template(),
        motion: ti.template(),
        params: ti.template(),
        adj_change: ti.template(),
        adj_motion: ti.template(),
        adj_params: ti.template(),
    ):
        for s in range(springs.count):
            i, j = springs.bodies[2 * s], springs.bodies[2 * s + 1]
            r_a, r_b = arm(springs.anchors, 2 * s, motion.q, i), arm(springs.anchors, 2 * s + 1, motion.q, j)
            d = at.vec_of(motion.x, j) + r_b - at.vec_of(motion.x, i) - r_a
            z = rate(motion, j, r_b) - rate(motion, i, r_a)
            k, c, L = params.spring_stiffness[s], params.spring_damping[s], params.spring_length[s]
            F = f.force(d, z, k, c, L)

            h_a, h_b = at.angular(adj_change.wrench, i), at.angular(adj_change.wrench, j)
            g = at.linear(adj_change.wrench, i) - at.linear(adj_change.wrench, j)
            g += rotate.cross(h_a, r_a) - rotate.cross(h_b, r_b)
            adj_d, adj_z, adj_k, adj_c, adj_L = f.adj(d, z, k, c, L, g)
            w_a, w_b = at.spin_of(motion.w, i), at.spin_of(motion.w, j)
            adj_ra = rotate.adj_cross(h_a, F) - adj_d - rotate.adj_cross(w_a, adj_z)
            adj_rb = -rotate.adj_cross(h_b, F) + adj_d + rotate.adj_cross(w_b, adj_z)

            at.add_vec_of(adj_motion.x, i, -adj_d)
            at.add_vec_of(adj_motion.x, j, adj_d)
            at.add_spin_of(adj_motion.theta, i, rotate.moment(r_a, adj_ra))
            at.add_spin_of(adj_motion.theta, j, rotate.moment(r_b, adj_rb))
            at.add_vec_of(adj_motion.v, i, -adj_z)
            at.add_vec_of(adj_motion.v, j, adj_z)
            at.add_spin_of(adj_motion.w, i, -rotate.moment(r_a, adj_z))
            at.add_spin_of(adj_motion.w, j, rotate.moment(r_b, adj_z))
            adj_params.spring_stiffness[s] = adj_params.spring_stiffness[s] + adj_k
            adj_params.spring_damping[s] = adj_params.spring_damping[s] + adj_c
            adj_params.spring_length[s] = adj_params.spring_length[s] + adj_L

    @ti.func
    def jvp_rate(motion: ti.template(), dmotion: ti.template(), body, r: vec, dr: vec) -> vec:
        drate = at.vec_of(dmotion.v, body) + rotate.cross(at.spin_of(dmotion.w, body), r)
        return drate + rotate.cross(at.spin_of(motion.w, body), dr)

    @ti.func
    def jvp_spring_damper(
        springs: ti.template(), motion: ti.template(), params: ti.template(), dmotion: ti.template(),
        dparams: ti.template(), dchange: ti.template(),
    ):  # fmt: skip
        for s in range(springs.count):
            i, j = springs.bodies[2 * s], springs.bodies[2 * s + 1]
            r_a, r_b = arm(springs.anchors, 2 * s, motion.q, i), arm(springs.anchors, 2 * s + 1, motion.q, j)
            dr_a = rotate.cross(at.turn_of(motion.q, dmotion.q, i), r_a)
            dr_b = rotate.cross(at.turn_of(motion.q, dmotion.q, j), r_b)
            d = at.vec_of(motion.x, j) + r_b - at.vec_of(motion.x, i) - r_a
            dd = at.vec_of(dmotion.x, j) + dr_b - at.vec_of(dmotion.x, i) - dr_a
            z = rate(motion, j, r_b) - rate(motion, i, r_a)
            dz = jvp_rate(motion, dmotion, j, r_b, dr_b) - jvp_rate(motion, dmotion, i, r_a, dr_a)
            k, c, L = params.spring_stiffness[s], params.spring_damping[s], params.spring_length[s]
            dk, dc, dL = dparams.spring_stiffness[s], dparams.spring_damping[s], dparams.spring_length[s]
            F, dF = f.force(d, z, k, c, L), f.jvp(d, z, k, c, L, dd, dz, dk, dc, dL)
            at.add_twist(dchange.wrench, i, dF, rotate.moment(dr_a, F) + rotate.moment(r_a, dF))
            at.add_twist(dchange.wrench, j, -dF, -rotate.moment(dr_b, F) - rotate.moment(r_b, dF))

    return SimpleNamespace(spring_damper=spring_damper, adj=adj_spring_damper, jvp=jvp_spring_damper)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, add_turns, types = loops(real, dim), orientation_adjoint(real, dim), arrays.types(real)
    springs_type, motion_type, turned_motion_type = types.springs, types.motion, types.turned_motion
    forces = types.part(arrays.Change, "wrench")
    law = types.part(arrays.Params, "spring_stiffness spring_damping spring_length")

    @kernel
    def forward(springs: springs_type, motion: motion_type, params: law, change: forces):
        for _ in range(1):
            f.spring_damper(springs, motion, params, change)

    @kernel
    def adjoint(
        springs: springs_type, n: ti.i32, motion: motion_type, params: law, adj_change: forces,
        adj_motion: turned_motion_type, adj_params: law,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(springs, motion, params, adj_change, adj_motion, adj_params)
            add_turns(motion.q, n, adj_motion.theta, adj_motion.q)

    @kernel
    def tangent(
        springs: springs_type, motion: motion_type, params: law, dmotion: motion_type, dparams: law, dchange: forces,
    ):  # fmt: skip
        for _ in range(1):
            f.jvp(springs, motion, params, dmotion, dparams, dchange)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class SpringDamper(Function):
    """Wrench [n, D] of all spring-dampers of a model. Saved: the inputs.

    Inputs: the fields of the state, spring_stiffness, spring_damping and spring_length, [K] each.
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *inputs: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(*inputs)
        wrench = np.zeros((model.bodies, model.dim + model.spins), inputs[0].dtype)
        _kernels(model).forward(springs(model), *_records(*inputs), flat(arrays.Change(wrench)))
        return wrench

    @staticmethod
    def backward(ctx: Context, adj_wrench: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        adj_theta = np.zeros(model.bodies * model.spins, adj_wrench.dtype)
        adjoints = zeros_like(*ctx.saved_tensors)
        adj_motion, adj_params = _records(*adjoints)
        forces, turned = flat(arrays.Change(adj_wrench)), adj_motion._replace(theta=adj_theta)
        _kernels(model).adjoint(springs(model), model.bodies, *_records(*ctx.saved_tensors), forces, turned, adj_params)
        return None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        model: RigidBodies = ctx.model
        dwrench = np.zeros((model.bodies, model.dim + model.spins), tangents[0].dtype)
        values, dvalues = _records(*ctx.saved_tensors), _records(*tangents)
        _kernels(model).tangent(springs(model), *values, *dvalues, flat(arrays.Change(dwrench)))
        return dwrench


def _records(x: Any, q: Any, v: Any, w: Any, stiffness: Any, damping: Any, length: Any) -> tuple[Any, Any]:
    """Return motion and parameters, of the inputs or of their adjoints."""
    law = arrays.Params(spring_stiffness=stiffness, spring_damping=damping, spring_length=length)
    return flat(arrays.Motion(x, q, v, w)), flat(law)


def springs(model: RigidBodies) -> arrays.Springs:
    """Return bodies, anchors and number of all springs."""
    bodies = [(spring.a, spring.b) for spring in model.springs]
    anchors = [(spring.anchor_a, spring.anchor_b) for spring in model.springs]
    ends = np.array(bodies, np.int32), np.array(anchors, runtime.real_dtype())
    return flat(arrays.Springs(*ends, len(model.springs)))


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
