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

from simphys.autograd.kernels.runtime import ti
from simphys.nn import Controller
from simphys.numerics import rotation
from simphys.substep import Fields, routine

from . import rows
from .arrays import SETTING


@functools.cache
@no_type_check
def loops(real: Any, dim: int, controller: Controller) -> SimpleNamespace:
    """Return the loops over the bodies; for the arguments see rows.py."""
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)
    spins, vec, scale = at.spins, at.vec, controller.scale
    own = dim * (dim + 1) + spins
    goal = controller.goal

    @ti.func
    def sense(model: ti.template(), x: ti.template()):
        total = vec(0.0)
        for i in range(model.bodies):
            total += at.vec_of(x.position, i)
        c = total / model.bodies
        for i in range(model.bodies):
            start, R = i * own, rotate.matrix(at.rotation_of(x.orientation, i))
            at.put_vec(x.sensed, start, scale * (at.vec_of(x.position, i) - c))
            for k in ti.static(range(dim - 1)):
                for e in ti.static(range(dim)):
                    x.sensed[start + (k + 1) * dim + e] = R[e, k]
            at.put_vec(x.sensed, start + dim * dim, scale * at.vec_of(x.velocity, i))
            at.put_spin(x.sensed, start + dim * dim + dim, scale * at.spin_of(x.angular_velocity, i))
        for e in ti.static(range(dim)):
            x.sensed[model.bodies * own + e] = goal[e] - c[e]

    @ti.func
    def adj_sense(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        """Add to the adjoints."""
        total = at.vec_at(adj_x.sensed, model.bodies * own)
        for i in range(model.bodies):
            total += scale * at.vec_at(adj_x.sensed, i * own)
        for i in range(model.bodies):
            start, g = i * own, i * own
            at.add_vec_of(adj_x.position, i, scale * at.vec_at(adj_x.sensed, g) - total / model.bodies)
            for k in range(1, dim):
                column, adj_column = at.vec_at(x.sensed, start + k * dim), at.vec_at(adj_x.sensed, g + k * dim)
                at.add_turn_of(adj_x.orientation, x.orientation, i, rotate.moment(column, adj_column))
            at.add_vec_of(adj_x.velocity, i, scale * at.vec_at(adj_x.sensed, g + dim * dim))
            at.add_spin_of(adj_x.angular_velocity, i, scale * at.spin_at(adj_x.sensed, g + dim * dim + dim))

    @ti.func
    def jvp_sense(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Compute the tangent."""
        total = vec(0.0)
        for i in range(model.bodies):
            total += at.vec_of(dx.position, i)
        dc = total / model.bodies
        for i in range(model.bodies):
            start, turn = i * own, at.turn_of(x.orientation, dx.orientation, i)
            at.put_vec(dx.sensed, start, scale * (at.vec_of(dx.position, i) - dc))
            for k in range(1, dim):
                at.put_vec(dx.sensed, start + k * dim, rotate.cross(turn, at.vec_at(x.sensed, start + k * dim)))
            at.put_vec(dx.sensed, start + dim * dim, scale * at.vec_of(dx.velocity, i))
            at.put_spin(dx.sensed, start + dim * dim + dim, scale * at.spin_of(dx.angular_velocity, i))
        at.put_vec(dx.sensed, model.bodies * own, -dc)

    return SimpleNamespace(forward=sense, adjoint=adj_sense, tangent=jvp_sense)


Sense = routine(
    "Sense",
    loops,
    Fields(given=("position", "orientation", "velocity", "angular_velocity"), results=("sensed",)),
    SETTING,
    of_model=("bodies",),
    choose=lambda model: (model.dim, model.controller),
)
"""Inputs that the controller gets from the fields of the state, [senses]."""
