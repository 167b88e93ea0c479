"""Split of a step: an impact divides it in two for all bodies that it reaches (islands.py).

    s = (tau - t_0) / h        fraction of the step before it          1 for bodies that no impact reaches
    x_t = x + tau v,   q_t = e(tau w) q          poses then            x, q where forces act

with tau the time of impact and t_0 that of the step's start, both relative to the time of the forces. v, w are the
velocities after the forces, as in the search for impacts (time_of_impact.py). In such a step, joints and contacts at
rest have their directions of that moment. Impulses act along them. Their rotation with the time of impact represents
the change of velocities by constraint forces until then. A fixed body has its pose at the forces.

Adjoint: adj_tau = adj_s / h + adj_x_t.v + p.w, adj_v = tau adj_x_t, adj_w = tau p, where adj_q and p, the adjoint of
tau w, are those of advance (numerics/rotation.py). Tangent: ds = dtau / h, dx_t = dx + dtau v + tau dv, and that of
advance with dtau w + tau dw.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import arrays, rows
from .arrays import flat
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies; for the arguments see rows.py."""
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)

    @ti.func
    def split_step(n, h, motion: ti.template(), change: ti.template(), contacts: ti.template(), impact: ti.template()):
        for b in range(n):
            tau, s, c = real(0.0), real(1.0), ti.cast(contacts.first[b], ti.i32)
            if c >= 0:
                tau = contacts.time[c]
                s = (tau + h / 2) / h
            impact.fraction[b] = s
            at.put_vec(impact.x, b * dim, at.vec_of(motion.x, b) + tau * at.linear(change.twist, b))
            rotated = rotate.advance(at.rotation_of(motion.q, b), tau * at.angular(change.twist, b))
            at.put_rotation(impact.q, b * at.rotations, rotated)

    @ti.func
    def adj_split_step(
        n,
        h,
        motion: ti.template(),
        change: ti.template(),
        contacts: ti.template(),
        impact: ti.template(),
        adj_impact: ti.template(),
        adj_motion: ti.template(),
        adj_change: ti.template(),
        adj_contacts: ti.template(),
    ):
        """Add to the adjoints; that of the impact's orientations [n, S] is by small rotations."""
        for b in range(n):
            tau, c = real(0.0), ti.cast(contacts.first[b], ti.i32)
            if c >= 0:
                tau = contacts.time[c]
            g_x, still = at.vec_of(adj_impact.x, b), at.rotation_of(motion.q, b)
            w = at.angular(change.twist, b)
            g_pose = rotate.adj_turn(at.rotation_of(impact.q, b), at.spin_of(adj_impact.theta, b))
            g_q, g_phi = rotate.adj_advance(still, tau * w, g_pose)
            at.add_vec_of(adj_motion.x, b, g_x)
            at.add_spin_of(adj_motion.theta, b, rotate.adj_theta(still, g_q))
            at.add_twist(adj_change.twist, b, tau * g_x, tau * g_phi)
            if c >= 0:
                g_tau = adj_impact.fraction[b] / h + g_x.dot(at.linear(change.twist, b)) + g_phi.dot(w)
                adj_contacts.time[c] = adj_contacts.time[c] + g_tau

    @ti.func
    def jvp_split_step(
        n, h, motion: ti.template(), change: ti.template(), contacts: ti.template(),
        dmotion: ti.template(), dchange: ti.template(), dcontacts: ti.template(), dimpact: ti.template(),
    ):  # fmt: skip
        for b in range(n):
            tau, dtau, c = real(0.0), real(0.0), ti.cast(contacts.first[b], ti.i32)
            if c >= 0:
                tau = contacts.time[c]
                dtau = dcontacts.time[c]
            dimpact.fraction[b] = dtau / h
            dx = at.vec_of(dmotion.x, b) + dtau * at.linear(change.twist, b) + tau * at.linear(dchange.twist, b)
            at.put_vec(dimpact.x, b * dim, dx)
            w, dw = at.angular(change.twist, b), at.angular(dchange.twist, b)
            dq = rotate.jvp_advance(
                at.rotation_of(motion.q, b), tau * w, at.drotation_of(dmotion.q, b), dtau * w + tau * dw
            )  # fmt: skip
            at.put_rotation(dimpact.q, b * at.rotations, dq)

    return SimpleNamespace(split_step=split_step, adj=adj_split_step, jvp=jvp_split_step)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, add_turns, types = loops(real, dim), orientation_adjoint(real, dim), arrays.types(real)
    pose_type, turned_pose_type = types.pose, types.turned_pose
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)
    twists, impacts = types.part(arrays.Change, "twist"), types.part(arrays.Contacts, "time first")
    met, times = types.part(arrays.Impact, "x q fraction"), types.part(arrays.Contacts, "time")
    still, poses = types.part(arrays.Motion, "q"), types.part(arrays.Impact, "q")
    turned = types.part(arrays.Impact, "x q fraction theta")

    @kernel
    def forward(
        n: ti.i32, h: real, motion: pose_type, change: twists, contacts: impacts, impact: met,
    ):  # fmt: skip
        for _ in range(1):
            f.split_step(n, h, motion, change, contacts, impact)

    @kernel
    def adjoint(
        n: ti.i32, h: real, motion: still, change: twists, contacts: impacts, impact: poses,
        adj_impact: turned, adj_motion: turned_pose_type, adj_change: twists, adj_contacts: times,
    ):  # fmt: skip
        for _ in range(1):
            for b in range(n):
                g_rotation = rotate.adj_theta(at.rotation_of(impact.q, b), at.rotation_of(adj_impact.q, b))
                at.put_spin(adj_impact.theta, b * at.spins, g_rotation)
            f.adj(n, h, motion, change, contacts, impact, adj_impact, adj_motion, adj_change, adj_contacts)
            add_turns(motion.q, n, adj_motion.theta, adj_motion.q)

    @kernel
    def tangent(
        n: ti.i32, h: real, motion: still, change: twists, contacts: impacts,
        dmotion: pose_type, dchange: twists, dcontacts: times, dimpact: met,
    ):  # fmt: skip
        for _ in range(1):
            f.jvp(n, h, motion, change, contacts, dmotion, dchange, dcontacts, dimpact)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


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
        twist, time = inputs
        _kernels(model).forward(
            model.bodies,
            model.dt,
            flat(arrays.Motion(position, orientation)),
            flat(arrays.Change(twist=twist)),
            flat(arrays.Contacts(time=time, first=first)),
            flat(arrays.Impact(x_impact, q_impact, fraction)),
        )
        ctx.model = model
        ctx.save_for_backward(orientation, *inputs, first, q_impact)
        return x_impact, q_impact, fraction

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        orientation, twist, time, first, q_impact = ctx.saved_tensors
        adj_rotation, adj_theta = np.zeros((2, model.bodies * model.spins), adjoints[0].dtype)
        found = [np.zeros((model.bodies, model.dim), adjoints[0].dtype), *zeros_like(orientation, twist, time)]
        adj_x, adj_q, adj_twist, adj_time = found
        _kernels(model).adjoint(
            model.bodies,
            model.dt,
            flat(arrays.Motion(q=orientation)),
            flat(arrays.Change(twist=twist)),
            flat(arrays.Contacts(time=time, first=first)),
            flat(arrays.Impact(q=q_impact)),
            flat(arrays.Impact(*adjoints)._replace(theta=adj_rotation)),
            flat(arrays.Motion(adj_x, adj_q, theta=adj_theta)),
            flat(arrays.Change(twist=adj_twist)),
            flat(arrays.Contacts(time=adj_time)),
        )
        return None, None, *found

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, *tangents: Any) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        orientation, twist, time, first, _q_impact = ctx.saved_tensors
        dx, dq, dtwist, dtime = tangents
        found = np.empty_like(dx), np.empty_like(dq), np.empty(model.bodies, dx.dtype)
        _kernels(model).tangent(
            model.bodies,
            model.dt,
            flat(arrays.Motion(q=orientation)),
            flat(arrays.Change(twist=twist)),
            flat(arrays.Contacts(time=time, first=first)),
            flat(arrays.Motion(dx, dq)),
            flat(arrays.Change(twist=dtwist)),
            flat(arrays.Contacts(time=dtime)),
            flat(arrays.Impact(*found)),
        )
        return found


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
