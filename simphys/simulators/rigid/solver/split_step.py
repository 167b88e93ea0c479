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

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.substep import Fields, Functions, routine

from ..arrays import SETTING
from ..rows import add_to_row, angular, join, linear, orientation_of, put, row_of


@ti.func
def split_step(model: ti.template(), x: ti.template()):
    for b in range(model.bodies):
        tau, s, c = 0.0, 1.0, ti.cast(x.first[b], ti.i32)
        if c >= 0:
            tau = x.time[c]
            s = (tau + model.dt / 2) / model.dt
        x.fraction[b] = s
        twist = row_of(x.twist, b)
        put(x.x_impact, b * x.x_impact.width, row_of(x.position, b) + tau * linear(twist))
        rotated = rotation.advance(orientation_of(x.orientation, b), tau * angular(twist))
        put(x.q_impact, b * x.q_impact.width, rotated)


@ti.func
def adj_split_step(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    for b in range(model.bodies):
        tau, c = 0.0, ti.cast(x.first[b], ti.i32)
        if c >= 0:
            tau = x.time[c]
        g_x, twist = row_of(adj_x.x_impact, b), row_of(x.twist, b)
        still, g_pose = orientation_of(x.orientation, b), orientation_of(adj_x.q_impact, b)
        g_q, g_phi = rotation.adj_advance(still, tau * angular(twist), g_pose)
        add_to_row(adj_x.position, b, g_x)
        add_to_row(adj_x.orientation, b, g_q)
        add_to_row(adj_x.twist, b, join(tau * g_x, tau * g_phi))
        if c >= 0:
            g_tau = adj_x.fraction[b] / model.dt + g_x.dot(linear(twist)) + g_phi.dot(angular(twist))
            adj_x.time[c] = adj_x.time[c] + g_tau


SplitStep = routine(
    "SplitStep",
    Functions(split_step, adj_split_step),
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
