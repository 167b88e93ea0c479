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
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from .. import rows
from ..arrays import SETTING


@functools.cache
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies; for the arguments see rows.py."""
    at = rows.functions(real, dim)

    @ti.func
    def split_step(model: ti.template(), x: ti.template()):
        for b in range(model.bodies):
            tau, s, c = real(0.0), real(1.0), ti.cast(x.first[b], ti.i32)
            if c >= 0:
                tau = x.time[c]
                s = (tau + model.dt / 2) / model.dt
            x.fraction[b] = s
            at.put_vec(x.x_impact, b * dim, at.vec_of(x.position, b) + tau * at.linear(x.twist, b))
            rotated = rotation.advance(at.rotation_of(x.orientation, b), tau * at.angular(x.twist, b))
            at.put_rotation(x.q_impact, b * at.rotations, rotated)

    @ti.func
    def adj_split_step(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for b in range(model.bodies):
            tau, c = real(0.0), ti.cast(x.first[b], ti.i32)
            if c >= 0:
                tau = x.time[c]
            g_x, still = at.vec_of(adj_x.x_impact, b), at.rotation_of(x.orientation, b)
            w = at.angular(x.twist, b)
            g_pose = at.rotation_of(adj_x.q_impact, b)
            g_q, g_phi = rotation.adj_advance(still, tau * w, g_pose)
            at.add_vec_of(adj_x.position, b, g_x)
            at.add_rotation_of(adj_x.orientation, b, g_q)
            at.add_twist(adj_x.twist, b, tau * g_x, tau * g_phi)
            if c >= 0:
                g_tau = adj_x.fraction[b] / model.dt + g_x.dot(at.linear(x.twist, b)) + g_phi.dot(w)
                adj_x.time[c] = adj_x.time[c] + g_tau

    @ti.func
    def jvp_split_step(model: ti.template(), x: ti.template(), dx: ti.template()):
        for b in range(model.bodies):
            tau, dtau, c = real(0.0), real(0.0), ti.cast(x.first[b], ti.i32)
            if c >= 0:
                tau = x.time[c]
                dtau = dx.time[c]
            dx.fraction[b] = dtau / model.dt
            dposition = at.vec_of(dx.position, b) + dtau * at.linear(x.twist, b) + tau * at.linear(dx.twist, b)
            at.put_vec(dx.x_impact, b * dim, dposition)
            w, dw = at.angular(x.twist, b), at.angular(dx.twist, b)
            dq = rotation.jvp_advance(
                at.rotation_of(x.orientation, b), tau * w, at.drotation_of(dx.orientation, b), dtau * w + tau * dw
            )  # fmt: skip
            at.put_rotation(dx.q_impact, b * at.rotations, dq)

    return SimpleNamespace(forward=split_step, adjoint=adj_split_step, tangent=jvp_split_step)


SplitStep = routine(
    "SplitStep",
    loops,
    Fields(
        given=("first", "position", "orientation", "twist", "time"),
        results=("x_impact", "q_impact", "fraction"),
        choices=("first",),
    ),
    SETTING,
    of_model=("bodies", "dt"),
)
"""Pose at the first impact that reaches each body, [n, dim] and [n, R], and the fraction of the step before it [n].

`first` [n] is that impact, `time` [M] the times of contacts.
"""
