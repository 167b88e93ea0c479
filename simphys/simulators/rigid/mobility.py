"""Mobility: changes of velocity by unit impulses of rows, from which the constraints are solved.

    1/m                            inverse mass of each body [1/kg]
    turned = A^-1 m_a, A^-1 m_b    for each row, the change of its bodies' angular velocities by an impulse of 1
    moment = m_a, m_b              coefficients of these angular velocities in the row

with the moments m_a, m_b of the row (rows.py), and the inverse inertia in the world frame A^-1 = R diag(1/J) R^T; the
first two are 0 for a fixed body. R is taken at the time of the row: for joints at the impact that splits the step
(parting.py), for contacts it is `facing` (meeting.py). Adjoint: adj_m = -adj_(1/m) / m^2, and that of A^-1 m in
inertia.py.

If `carries`, in variational steps in space: these store the spin w at the time of the forces. A free body keeps its
angular momentum L = A w while A rotates with it. At the time of a row, with inertia A_t, its spin is A_t^-1 A w. The
row measures

    m.(A_t^-1 A w) = m~.w,   m~ = A A_t^-1 m        and an impulse of 1 changes L by m, hence w by A^-1 m,

with m~ its moment. Otherwise derivatives by the time of an impact would miss the gyroscopic torque on the added spin,
and be wrong for any step size; for semi-implicit Euler see acts.py. In the plane, and for equal moments of inertia, m~
= m.
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
from .nested import turns, zeros_like
from .rows import flat


@functools.cache
@no_type_check
def loops(real: Any, dim: int, carries: bool) -> SimpleNamespace:
    """Return the loops over all bodies and rows; for the arguments see rows.py. `bodies` are those of all rows.

    q is the orientation in which forces act, q_then that of the joint rows; `facing` is [M, 2 R].
    """
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), inertia.functions(real, dim)
    R, S = at.rotations, at.spins
    W = dim + 2 * S

    @ti.func
    def counts(k, NJ, active: ti.template(), active0) -> bool:
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
    def place_of(k, side, NJ):
        """Return the index in `facing` of the orientation of a contact row's body; negative for joint rows."""
        return 2 * ((k - NJ) // dim) + side if k >= NJ else -1

    @ti.func
    def matrix_of(k, side, body, NJ, q_then: ti.template(), q_then0, facing: ti.template(), facing0):
        turned = at.rotation(0.0)
        for c in ti.static(range(R)):
            if k >= NJ:
                turned[c] = facing[facing0 + place_of(k, side, NJ) * R + c]
            else:
                turned[c] = q_then[q_then0 + body * R + c]
        return rotate.matrix(turned)

    @ti.func
    def mobility(
        free: ti.template(), n, bodies: ti.template(), NJ, M, row: ti.template(), row0, active: ti.template(), active0,
        q: ti.template(), q0, q_then: ti.template(), q_then0, facing: ti.template(), facing0,
        mass: ti.template(), mass0, inertia: ti.template(), inertia0,
        inverse_mass: ti.template(), inverse_mass0, turned: ti.template(), turned0, moment: ti.template(), moment0,
    ):  # fmt: skip
        for b in range(n):
            inverse_mass[inverse_mass0 + b] = free[b] / mass[mass0 + b]
        for k in range(NJ + M * dim):
            if counts(k, NJ, active, active0):
                for side in range(2):
                    body, to, moved = body_of(k, side, NJ, bodies), (2 * k + side) * S, False
                    if body >= 0:
                        moved = free[body] == 1
                    m = at.spin_at(row, row0 + k * W + dim + side * S)
                    at.put_spin(turned, turned0 + to, at.spin(0.0))
                    at.put_spin(moment, moment0 + to, m)
                    if moved:
                        T = matrix_of(k, side, body, NJ, q_then, q_then0, facing, facing0)
                        J = at.spin_of(inertia, inertia0, body)
                        if ti.static(carries):
                            now = rotate.matrix(at.rotation_of(q, q0, body))
                            at.put_spin(turned, turned0 + to, f.apply(now, 1 / J, m))
                            at.put_spin(moment, moment0 + to, f.apply(now, J, f.apply(T, 1 / J, m)))
                        else:
                            at.put_spin(turned, turned0 + to, f.apply(T, 1 / J, m))

    @ti.func
    def adj_mobility(
        free: ti.template(), n, bodies: ti.template(), NJ, M, row: ti.template(), row0, active: ti.template(), active0,
        q: ti.template(), q0, q_then: ti.template(), q_then0, facing: ti.template(), facing0,
        mass: ti.template(), mass0, inertia: ti.template(), inertia0,
        adj_inverse_mass: ti.template(), adj_inverse_mass0, adj_turned: ti.template(), adj_turned0,
        adj_moment: ti.template(), adj_moment0,
        adj_row: ti.template(), adj_row0, adj_theta: ti.template(), adj_theta0, adj_then: ti.template(), adj_then0,
        adj_facing: ti.template(), adj_facing0, adj_mass: ti.template(), adj_mass0,
        adj_inertia: ti.template(), adj_inertia0,
    ):  # fmt: skip
        """Add to the adjoints; adj_then [n, S] and adj_facing [M, 2 S] are by small rotations."""
        for b in range(n):
            m = mass[mass0 + b]
            change = free[b] * adj_inverse_mass[adj_inverse_mass0 + b] / (m * m)
            adj_mass[adj_mass0 + b] = adj_mass[adj_mass0 + b] - change
        for k in range(NJ + M * dim):
            if counts(k, NJ, active, active0):
                for side in range(2):
                    body, moved = body_of(k, side, NJ, bodies), False
                    if body >= 0:
                        moved = free[body] == 1
                    at_m, at_g = k * W + dim + side * S, (2 * k + side) * S
                    m, g = at.spin_at(row, row0 + at_m), at.spin_at(adj_turned, adj_turned0 + at_g)
                    by_m = at.spin_at(adj_moment, adj_moment0 + at_g)
                    if moved:
                        T = matrix_of(k, side, body, NJ, q_then, q_then0, facing, facing0)
                        J, by_T, by_inverse = at.spin_of(inertia, inertia0, body), at.spin(0.0), at.spin(0.0)
                        if ti.static(carries):
                            now = rotate.matrix(at.rotation_of(q, q0, body))
                            by_J, by_spin, by_now = f.adj(now, J, f.apply(T, 1 / J, m), by_m)
                            by_inverse, by_m, by_T = f.adj(T, 1 / J, m, by_spin)
                            also_by_inverse, also_by_m, also_by_now = f.adj(now, 1 / J, m, g)
                            by_m += also_by_m
                            by_inverse += also_by_inverse
                            at.add_spin_of(adj_theta, adj_theta0, body, by_now + also_by_now)
                            at.add_spin_of(adj_inertia, adj_inertia0, body, by_J)
                        else:
                            by_inverse, also_by_m, by_T = f.adj(T, 1 / J, m, g)
                            by_m += also_by_m
                        at.add_spin_of(adj_inertia, adj_inertia0, body, -by_inverse / (J * J))
                        if k >= NJ:
                            at.add_spin(adj_facing, adj_facing0 + place_of(k, side, NJ) * S, by_T)
                        else:
                            at.add_spin_of(adj_then, adj_then0, body, by_T)
                    at.add_spin(adj_row, adj_row0 + at_m, by_m)

    return SimpleNamespace(mobility=mobility, adj=adj_mobility)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, carries: bool) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim, carries), turns(real, dim)

    @kernel
    def forward(
        free: ints, n: ti.i32, bodies: ints, NJ: ti.i32, M: ti.i32, active: reals, row: reals, q: reals, q_then: reals,
        facing: reals, mass: reals, inertia: reals, inverse_mass: reals, turned: reals, moment: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.mobility(
                free, n, bodies, NJ, M, row, 0, active, 0, q, 0, q_then, 0, facing, 0, mass, 0, inertia, 0,
                inverse_mass, 0, turned, 0, moment, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        free: ints, n: ti.i32, bodies: ints, NJ: ti.i32, M: ti.i32, active: reals, row: reals, q: reals, q_then: reals,
        facing: reals, mass: reals, inertia: reals, adj_inverse_mass: reals, adj_turned: reals, adj_moment: reals,
        adj_theta: reals, adj_then: reals, adj_turns: reals,
        adj_row: reals, adj_q: reals, adj_q_then: reals, adj_facing: reals, adj_mass: reals, adj_inertia: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                free, n, bodies, NJ, M, row, 0, active, 0, q, 0, q_then, 0, facing, 0, mass, 0, inertia, 0,
                adj_inverse_mass, 0, adj_turned, 0, adj_moment, 0, adj_row, 0, adj_theta, 0, adj_then, 0,
                adj_turns, 0, adj_mass, 0, adj_inertia, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)
            add_turns(q_then, 0, n, adj_then, 0, adj_q_then, 0)
            add_turns(facing, 0, 2 * M, adj_turns, 0, adj_facing, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Mobility(Function):
    """Inverse mass [n], spin changes of both bodies [N, 2 S] and moments [N, 2 S] of the rows. Saved: all inputs.

    `active` [M] is the state of each contact. Inputs: row [N, W], orientation [n, R], that of the joint rows [n, R],
    facing [M, 2 R], mass [n], inertia [n, S].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, active: Tensor, *inputs: Tensor) -> tuple[Any, ...]:
        ctx.model = model
        ctx.save_for_backward(active, *inputs)
        dtype = inputs[0].dtype
        found = np.empty(model.bodies, dtype), *np.zeros((2, model.rows, 2 * model.spins), dtype)
        _kernels(model).forward(*_counts(model), *flat(active, *inputs, *found))
        return found

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, *inputs = ctx.saved_tensors
        places = model.bodies, model.bodies, 2 * model.contacts
        work = [np.zeros(count * model.spins, adj_outputs[0].dtype) for count in places]
        adjoints = zeros_like(*inputs)
        _kernels(model).adjoint(*_counts(model), *flat(active, *inputs, *adj_outputs, *work, *adjoints))
        return None, None, *adjoints


def _counts(model: RigidBodies) -> tuple[Any, ...]:
    return model.free, model.bodies, model.row_bodies, model.joint_rows, model.contacts


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.carries)
