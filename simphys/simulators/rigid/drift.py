"""Drift: bodies follow their velocities for a time h, corrected for impulses within that time:

    x' = x + h v - s                                                        [m]
    q', w' = rotate(q, w, turn)

An impulse that changed v by dv at a time t after the forces was applied too early by t. Hence s = sum t dv and
turn = sum t dw over all impulses of the step (see phases.py). rotate is the free rotation, with its adjoint and tangent
(see variational.py). Adjoint and tangent of the rest:

    adj_x = adj_x'     adj_v = adj_v' + h adj_x'     adj_s = -adj_x'     dx' = dx + h dv - ds     dv' = dv

A step is a drift by h/2, a kick by h and a drift by h/2, as in Verlet's method: of second order, symplectic (Hairer,
Lubich and Wanner 2003).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.substep import Fields, routine

from . import rows, variational
from .arrays import SETTING


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies, for the end of a step."""
    at, f = rows.functions(real, dim), variational.functions(real, dim)

    @ti.func
    def drift(model: ti.template(), x: ti.template()):
        for i in range(model.bodies):
            v = at.linear(x.twist, i)
            q_i, w_i = f.rotate(
                at.rotation_of(x.orientation, i), at.angular(x.twist, i), at.spin_of(x.inertia, i), model.h,
                at.angular(x.shift, i),
            )  # fmt: skip
            at.put_vec(x.new_position, i * dim, at.vec_of(x.position, i) + model.h * v - at.linear(x.shift, i))
            at.put_vec(x.new_velocity, i * dim, v)
            at.put_spin(x.new_spin, i * at.spins, w_i)
            at.put_rotation(x.new_orientation, i * at.rotations, q_i)

    @ti.func
    def adj_drift(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for i in range(model.bodies):
            g_x = at.vec_of(adj_x.new_position, i)
            g_q, g_w, g_J, g_turn = f.adj(
                at.rotation_of(x.orientation, i), at.angular(x.twist, i), at.spin_of(x.inertia, i), model.h,
                at.angular(x.shift, i), at.rotation_of(adj_x.new_orientation, i), at.spin_of(adj_x.new_spin, i),
            )  # fmt: skip
            at.add_vec_of(adj_x.position, i, g_x)
            at.add_twist(adj_x.twist, i, at.vec_of(adj_x.new_velocity, i) + model.h * g_x, g_w)
            at.add_twist(adj_x.shift, i, -g_x, g_turn)
            at.add_spin_of(adj_x.inertia, i, g_J)
            at.add_rotation_of(adj_x.orientation, i, g_q)

    @ti.func
    def jvp_drift(model: ti.template(), x: ti.template(), dx: ti.template()):
        for i in range(model.bodies):
            dv = at.linear(dx.twist, i)
            dq, dw = f.jvp(
                at.rotation_of(x.orientation, i), at.angular(x.twist, i), at.spin_of(x.inertia, i), model.h,
                at.angular(x.shift, i), at.drotation_of(dx.orientation, i), at.angular(dx.twist, i),
                at.spin_of(dx.inertia, i), at.angular(dx.shift, i),
            )  # fmt: skip
            at.put_vec(dx.new_position, i * dim, at.vec_of(dx.position, i) + model.h * dv - at.linear(dx.shift, i))
            at.put_vec(dx.new_velocity, i * dim, dv)
            at.put_spin(dx.new_spin, i * at.spins, dw)
            at.put_rotation(dx.new_orientation, i * at.rotations, dq)

    return SimpleNamespace(forward=drift, adjoint=adj_drift, tangent=jvp_drift)


@functools.cache
@no_type_check
def free_loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over all bodies, for the beginning of a step, which has no impulses."""
    at, f = rows.functions(real, dim), variational.functions(real, dim)
    spin = at.spin

    @ti.func
    def drift_freely(model: ti.template(), x: ti.template()):
        for i in range(model.bodies):
            q_i, w_i = f.rotate(
                at.rotation_of(x.orientation, i), at.spin_of(x.angular_velocity, i), at.spin_of(x.inertia, i), model.h,
                spin(0.0),
            )  # fmt: skip
            at.put_vec(x.new_position, i * dim, at.vec_of(x.position, i) + model.h * at.vec_of(x.velocity, i))
            at.put_spin(x.new_spin, i * at.spins, w_i)
            at.put_rotation(x.new_orientation, i * at.rotations, q_i)

    @ti.func
    def adj_drift_freely(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for i in range(model.bodies):
            g_x = at.vec_of(adj_x.new_position, i)
            g_q, g_w, g_J, _ = f.adj(
                at.rotation_of(x.orientation, i), at.spin_of(x.angular_velocity, i), at.spin_of(x.inertia, i), model.h,
                spin(0.0), at.rotation_of(adj_x.new_orientation, i), at.spin_of(adj_x.new_spin, i),
            )  # fmt: skip
            at.add_vec_of(adj_x.position, i, g_x)
            at.add_vec_of(adj_x.velocity, i, model.h * g_x)
            at.add_spin_of(adj_x.angular_velocity, i, g_w)
            at.add_spin_of(adj_x.inertia, i, g_J)
            at.add_rotation_of(adj_x.orientation, i, g_q)

    @ti.func
    def jvp_drift_freely(model: ti.template(), x: ti.template(), dx: ti.template()):
        for i in range(model.bodies):
            dq, dw = f.jvp(
                at.rotation_of(x.orientation, i), at.spin_of(x.angular_velocity, i), at.spin_of(x.inertia, i), model.h,
                spin(0.0), at.drotation_of(dx.orientation, i), at.spin_of(dx.angular_velocity, i),
                at.spin_of(dx.inertia, i), spin(0.0),
            )  # fmt: skip
            at.put_vec(dx.new_position, i * dim, at.vec_of(dx.position, i) + model.h * at.vec_of(dx.velocity, i))
            at.put_spin(dx.new_spin, i * at.spins, dw)
            at.put_rotation(dx.new_orientation, i * at.rotations, dq)

    return SimpleNamespace(forward=drift_freely, adjoint=adj_drift_freely, tangent=jvp_drift_freely)


Drift = routine(
    "Drift",
    loops,
    Fields(
        given=("position", "orientation", "twist", "shift", "inertia"),
        results=("new_position", "new_orientation", "new_velocity", "new_spin"),
        numbers=("h",),
    ),
    SETTING,
    of_model=("bodies",),
)
"""Position [n, dim], orientation [n, R], velocity [n, dim] and angular velocity [n, S] after `h` [s]."""

FreeDrift = routine(
    "FreeDrift",
    free_loops,
    Fields(
        given=("position", "orientation", "velocity", "angular_velocity", "inertia"),
        results=("new_position", "new_orientation", "new_spin"),
        numbers=("h",),
    ),
    SETTING,
    of_model=("bodies",),
)
"""Position [n, dim], orientation [n, R] and angular velocity [n, S] after `h` [s] without impulses."""
