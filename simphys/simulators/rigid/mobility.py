"""Mobility: changes of velocity by unit impulses of rows, from which the constraints are solved.

    1/m                            inverse mass of each body [1/kg]
    spin_change = A^-1 m_a, A^-1 m_b    for each row, the change of its bodies' angular velocities by an impulse of 1
    moment = m_a, m_b              coefficients of these angular velocities in the row

with the moments m_a, m_b of the row (rows.py), and the inverse inertia in the world frame A^-1 = R diag(1/J) R^T; the
first two are 0 for a fixed body. R is taken at the time of the row: for joints at the impact that splits the step
(split_step.py), for contacts it is `attitude` (time_of_impact.py). Adjoint: adj_m = -adj_(1/m) / m^2, and that of A^-1
m in inertia.py.

If `tracks_momentum`, in variational steps in space: these store the spin w at the time of the forces. A free body keeps
its angular momentum L = A w while A rotates with it. At the time of a row, with inertia A_t, its spin is A_t^-1 A w.
The row measures

    m.(A_t^-1 A w) = m~.w,   m~ = A A_t^-1 m        and an impulse of 1 changes L by m, hence w by A^-1 m,

with m~ its moment. Otherwise derivatives by the time of an impact would miss the gyroscopic torque on the added spin,
and be wrong for any step size; for semi-implicit Euler see phases.py. In the plane, and for equal moments of inertia,
m~ = m.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from . import inertia, rows
from .islands import NONE
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .rows import flatten


@functools.cache
@no_type_check
def loops(real: Any, dim: int, tracks_momentum: bool) -> SimpleNamespace:
    """Return the loops over all bodies and rows; for the arguments see rows.py. `bodies` are those of all rows.

    q is the orientation in which forces act, q_impact that of the joint rows; `attitude` is [M, 2 R].
    """
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), inertia.functions(real, dim)
    R, S = at.rotations, at.spins
    W = dim + 2 * S

    @ti.func
    def is_active(k, NJ, active: ti.template(), active0) -> bool:
        """Return True if row k is active: a joint row, or a row of an active contact."""
        found = True
        if k >= NJ:
            found = active[active0 + (k - NJ) // dim] > NONE
        return found

    @ti.func
    def body_of(k, side, NJ, bodies: ti.template()):
        """Return a body of row k."""
        block = k
        if k >= NJ:
            block = NJ + (k - NJ) // dim
        return bodies[2 * block + side]

    @ti.func
    def attitude_index(k, side, NJ):
        """Return the index in `attitude` of the orientation of a contact row's body; negative for joint rows."""
        return 2 * ((k - NJ) // dim) + side if k >= NJ else -1

    @ti.func
    def rotation_at(k, side, body, NJ, q_impact: ti.template(), q_impact0, attitude: ti.template(), attitude0):
        orientation = at.rotation(0.0)
        for c in ti.static(range(R)):
            if k >= NJ:
                orientation[c] = attitude[attitude0 + attitude_index(k, side, NJ) * R + c]
            else:
                orientation[c] = q_impact[q_impact0 + body * R + c]
        return rotate.matrix(orientation)

    @ti.func
    def mobility(
        free: ti.template(), n, bodies: ti.template(), NJ, M, row: ti.template(), row0, active: ti.template(), active0,
        q: ti.template(), q0, q_impact: ti.template(), q_impact0, attitude: ti.template(), attitude0,
        mass: ti.template(), mass0, inertia: ti.template(), inertia0,
        inverse_mass: ti.template(), inverse_mass0, spin_change: ti.template(), spin_change0, moment: ti.template(),
        moment0,
    ):  # fmt: skip
        for b in range(n):
            inverse_mass[inverse_mass0 + b] = free[b] / mass[mass0 + b]
        for k in range(NJ + M * dim):
            if is_active(k, NJ, active, active0):
                for side in range(2):
                    body, to, is_free = body_of(k, side, NJ, bodies), (2 * k + side) * S, False
                    if body >= 0:
                        is_free = free[body] == 1
                    m = at.spin_at(row, row0 + k * W + dim + side * S)
                    at.put_spin(spin_change, spin_change0 + to, at.spin(0.0))
                    at.put_spin(moment, moment0 + to, m)
                    if is_free:
                        T = rotation_at(k, side, body, NJ, q_impact, q_impact0, attitude, attitude0)
                        J = at.spin_of(inertia, inertia0, body)
                        if ti.static(tracks_momentum):
                            now = rotate.matrix(at.rotation_of(q, q0, body))
                            at.put_spin(spin_change, spin_change0 + to, f.apply(now, 1 / J, m))
                            at.put_spin(moment, moment0 + to, f.apply(now, J, f.apply(T, 1 / J, m)))
                        else:
                            at.put_spin(spin_change, spin_change0 + to, f.apply(T, 1 / J, m))

    @ti.func
    def adj_mobility(
        free: ti.template(), n, bodies: ti.template(), NJ, M, row: ti.template(), row0, active: ti.template(), active0,
        q: ti.template(), q0, q_impact: ti.template(), q_impact0, attitude: ti.template(), attitude0,
        mass: ti.template(), mass0, inertia: ti.template(), inertia0,
        adj_inverse_mass: ti.template(), adj_inverse_mass0, adj_spin_change: ti.template(), adj_spin_change0,
        adj_moment: ti.template(), adj_moment0,
        adj_row: ti.template(), adj_row0, adj_theta: ti.template(), adj_theta0, adj_impact_theta: ti.template(),
        adj_impact_theta0,
        adj_attitude: ti.template(), adj_attitude0, adj_mass: ti.template(), adj_mass0,
        adj_inertia: ti.template(), adj_inertia0,
    ):  # fmt: skip
        """Add to the adjoints; adj_impact_theta [n, S] and adj_attitude [M, 2 S] are by small rotations."""
        for b in range(n):
            m = mass[mass0 + b]
            change = free[b] * adj_inverse_mass[adj_inverse_mass0 + b] / (m * m)
            adj_mass[adj_mass0 + b] = adj_mass[adj_mass0 + b] - change
        for k in range(NJ + M * dim):
            if is_active(k, NJ, active, active0):
                for side in range(2):
                    body, is_free = body_of(k, side, NJ, bodies), False
                    if body >= 0:
                        is_free = free[body] == 1
                    m_offset, g_offset = k * W + dim + side * S, (2 * k + side) * S
                    m, g = at.spin_at(row, row0 + m_offset), at.spin_at(adj_spin_change, adj_spin_change0 + g_offset)
                    g_m = at.spin_at(adj_moment, adj_moment0 + g_offset)
                    if is_free:
                        T = rotation_at(k, side, body, NJ, q_impact, q_impact0, attitude, attitude0)
                        J, g_T, g_inverse = at.spin_of(inertia, inertia0, body), at.spin(0.0), at.spin(0.0)
                        if ti.static(tracks_momentum):
                            now = rotate.matrix(at.rotation_of(q, q0, body))
                            g_J, g_spin, g_now = f.adj(now, J, f.apply(T, 1 / J, m), g_m)
                            g_inverse, g_m, g_T = f.adj(T, 1 / J, m, g_spin)
                            more_g_inverse, more_g_m, more_g_now = f.adj(now, 1 / J, m, g)
                            g_m += more_g_m
                            g_inverse += more_g_inverse
                            at.add_spin_of(adj_theta, adj_theta0, body, g_now + more_g_now)
                            at.add_spin_of(adj_inertia, adj_inertia0, body, g_J)
                        else:
                            g_inverse, more_g_m, g_T = f.adj(T, 1 / J, m, g)
                            g_m += more_g_m
                        at.add_spin_of(adj_inertia, adj_inertia0, body, -g_inverse / (J * J))
                        if k >= NJ:
                            at.add_spin(adj_attitude, adj_attitude0 + attitude_index(k, side, NJ) * S, g_T)
                        else:
                            at.add_spin_of(adj_impact_theta, adj_impact_theta0, body, g_T)
                    at.add_spin(adj_row, adj_row0 + m_offset, g_m)

    return SimpleNamespace(mobility=mobility, adj=adj_mobility)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, tracks_momentum: bool) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim, tracks_momentum), orientation_adjoint(real, dim)

    @kernel
    def forward(
        free: ints, n: ti.i32, bodies: ints, NJ: ti.i32, M: ti.i32, active: reals, row: reals, q: reals,
        q_impact: reals,
        attitude: reals, mass: reals, inertia: reals, inverse_mass: reals, spin_change: reals, moment: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.mobility(
                free, n, bodies, NJ, M, row, 0, active, 0, q, 0, q_impact, 0, attitude, 0, mass, 0, inertia, 0,
                inverse_mass, 0, spin_change, 0, moment, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        free: ints, n: ti.i32, bodies: ints, NJ: ti.i32, M: ti.i32, active: reals, row: reals, q: reals,
        q_impact: reals,
        attitude: reals, mass: reals, inertia: reals, adj_inverse_mass: reals, adj_spin_change: reals,
        adj_moment: reals,
        adj_theta: reals, adj_impact_theta: reals, adj_turns: reals,
        adj_row: reals, adj_q: reals, adj_q_impact: reals, adj_attitude: reals, adj_mass: reals, adj_inertia: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                free, n, bodies, NJ, M, row, 0, active, 0, q, 0, q_impact, 0, attitude, 0, mass, 0, inertia, 0,
                adj_inverse_mass, 0, adj_spin_change, 0, adj_moment, 0, adj_row, 0, adj_theta, 0, adj_impact_theta, 0,
                adj_turns, 0, adj_mass, 0, adj_inertia, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)
            add_turns(q_impact, 0, n, adj_impact_theta, 0, adj_q_impact, 0)
            add_turns(attitude, 0, 2 * M, adj_turns, 0, adj_attitude, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Mobility(Function):
    """Inverse mass [n], spin changes of both bodies [N, 2 S] and moments [N, 2 S] of the rows. Saved: all inputs.

    `active` [M] is the state of each contact. Inputs: row [N, W], orientation [n, R], that of the joint rows [n, R],
    attitude [M, 2 R], mass [n], inertia [n, S].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, active: Tensor, *inputs: Tensor) -> tuple[Any, ...]:
        ctx.model = model
        ctx.save_for_backward(active, *inputs)
        dtype = inputs[0].dtype
        found = np.empty(model.bodies, dtype), *np.zeros((2, model.rows, 2 * model.spins), dtype)
        _kernels(model).forward(*_counts(model), *flatten(active, *inputs, *found))
        return found

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, *inputs = ctx.saved_tensors
        places = model.bodies, model.bodies, 2 * model.contacts
        work = [np.zeros(count * model.spins, adj_outputs[0].dtype) for count in places]
        adjoints = zeros_like(*inputs)
        _kernels(model).adjoint(*_counts(model), *flatten(active, *inputs, *adj_outputs, *work, *adjoints))
        return None, None, *adjoints


def _counts(model: RigidBodies) -> tuple[Any, ...]:
    return model.free, model.bodies, model.row_bodies, model.joint_rows, model.contacts


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.tracks_momentum)
