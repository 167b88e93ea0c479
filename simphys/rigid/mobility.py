"""Mobility: what impulses of rows do to velocities, which is what rows of constraints are solved with.

    1/m                            inverse mass of each body [1/kg]
    turned = A^-1 m_a, A^-1 m_b    of each row, by what an impulse of 1 changes the angular velocities of its bodies

with the moments m_a, m_b of the row (rows.py), and the inverse inertia in the world's frame A^-1 = R diag(1/J) R^T; 0
of a fixed body. R is that of the bodies at the start of the step, for joints, and at the time of a contact for its rows
(`facing`, see meeting.py); where moments are carried, see carried.py. Adjoint: adj_m = -adj_(1/m) / m^2, and that of
A^-1 m in inertia.py.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from ..autograd import Context, Function, Tensor, kernel, runtime
from ..autograd.runtime import ti
from ..math import rotation
from . import carried, inertia, rows
from .meeting import NONE
from .model import RigidBodies
from .nested import turns, zeros_like
from .rows import flat


@functools.cache
@no_type_check
def loops(real: Any, dim: int, carries: bool) -> SimpleNamespace:
    """Over all bodies and rows; for the arguments see rows.py, `bodies` are those of all rows, `facing` [M, 2 R].

    carries: moments are carried to where velocities are kept, see carried.py.
    """
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), inertia.functions(real, dim)
    c = carried.functions(real) if carries else None
    R, S = at.rotations, at.spins
    W = dim + 2 * S

    @ti.func
    def counts(k, NJ, active: ti.template(), active0) -> bool:
        """Whether row k does: those of joints, and of contacts."""
        found = True
        if k >= NJ:
            found = active[active0 + (k - NJ) // dim] > NONE
        return found

    @ti.func
    def body_of(k, side, NJ, bodies: ti.template()):
        """Of row k."""
        block = k
        if k >= NJ:
            block = NJ + (k - NJ) // dim
        return bodies[2 * block + side]

    @ti.func
    def place_of(k, side, NJ):
        """Where the orientation is of a body of row k, in `facing`; below 0 for joints."""
        return 2 * ((k - NJ) // dim) + side if k >= NJ else -1

    @ti.func
    def matrix_of(k, side, body, NJ, q: ti.template(), q0, facing: ti.template(), facing0):
        turned = at.rotation(0.0)
        for c in ti.static(range(R)):
            if k >= NJ:
                turned[c] = facing[facing0 + place_of(k, side, NJ) * R + c]
            else:
                turned[c] = q[q0 + body * R + c]
        return rotate.matrix(turned)

    @ti.func
    def mobility(
        free: ti.template(), n, bodies: ti.template(), NJ, M, row: ti.template(), row0, active: ti.template(), active0,
        q: ti.template(), q0, facing: ti.template(), facing0, mass: ti.template(), mass0,
        inertia: ti.template(), inertia0, inverse_mass: ti.template(), inverse_mass0, turned: ti.template(), turned0,
    ):  # fmt: skip
        for b in range(n):
            inverse_mass[inverse_mass0 + b] = free[b] / mass[mass0 + b]
        for k in range(NJ + M * dim):
            if counts(k, NJ, active, active0):
                for side in range(2):
                    body, to, moved = body_of(k, side, NJ, bodies), turned0 + (2 * k + side) * S, False
                    if body >= 0:
                        moved = free[body] == 1
                    at.put_spin(turned, to, at.spin(0.0))
                    if moved:
                        T, J = matrix_of(k, side, body, NJ, q, q0, facing, facing0), at.spin_of(inertia, inertia0, body)
                        m = at.spin_at(row, row0 + k * W + dim + side * S)
                        if ti.static(carries):
                            at.put_spin(turned, to, c.turned(rotate.matrix(at.rotation_of(q, q0, body)), T, J, m))
                        else:
                            at.put_spin(turned, to, f.apply(T, 1 / J, m))

    @ti.func
    def adj_mobility(
        free: ti.template(), n, bodies: ti.template(), NJ, M, row: ti.template(), row0, active: ti.template(), active0,
        q: ti.template(), q0, facing: ti.template(), facing0, mass: ti.template(), mass0,
        inertia: ti.template(), inertia0,
        adj_inverse_mass: ti.template(), adj_inverse_mass0, adj_turned: ti.template(), adj_turned0,
        adj_row: ti.template(), adj_row0, adj_theta: ti.template(), adj_theta0,
        adj_facing: ti.template(), adj_facing0, adj_mass: ti.template(), adj_mass0,
        adj_inertia: ti.template(), adj_inertia0,
    ):  # fmt: skip
        """adj_facing [M, 2 S] is that by small turns."""
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
                    if moved:
                        T, J = matrix_of(k, side, body, NJ, q, q0, facing, facing0), at.spin_of(inertia, inertia0, body)
                        at_m, at_g = k * W + dim + side * S, adj_turned0 + (2 * k + side) * S
                        m, g = at.spin_at(row, row0 + at_m), at.spin_at(adj_turned, at_g)
                        by_T, by_J, by_m = at.spin(0.0), at.spin(0.0), at.spin(0.0)
                        if ti.static(carries):
                            now = rotate.matrix(at.rotation_of(q, q0, body))
                            by_R, g_T, g_J, g_m = c.adj_turned(now, T, J, m, g)
                            at.add_spin_of(adj_theta, adj_theta0, body, by_R)
                            by_T += g_T
                            by_J += g_J
                            by_m += g_m
                        else:
                            g_d, g_m, g_T = f.adj(T, 1 / J, m, g)
                            by_T += g_T
                            by_J -= g_d / (J * J)
                            by_m += g_m
                        at.add_spin(adj_row, adj_row0 + at_m, by_m)
                        at.add_spin_of(adj_inertia, adj_inertia0, body, by_J)
                        if k >= NJ:
                            at.add_spin(adj_facing, adj_facing0 + place_of(k, side, NJ) * S, by_T)
                        else:
                            at.add_spin_of(adj_theta, adj_theta0, body, by_T)

    return SimpleNamespace(mobility=mobility, adj=adj_mobility)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, carries: bool) -> SimpleNamespace:
    """The nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim, carries), turns(real, dim)

    @kernel
    def forward(
        free: ints, n: ti.i32, bodies: ints, NJ: ti.i32, M: ti.i32, active: reals, row: reals, q: reals, facing: reals,
        mass: reals, inertia: reals, inverse_mass: reals, turned: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.mobility(
                free, n, bodies, NJ, M, row, 0, active, 0, q, 0, facing, 0, mass, 0, inertia, 0,
                inverse_mass, 0, turned, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        free: ints, n: ti.i32, bodies: ints, NJ: ti.i32, M: ti.i32, active: reals, row: reals, q: reals, facing: reals,
        mass: reals, inertia: reals, adj_inverse_mass: reals, adj_turned: reals, adj_theta: reals, adj_turns: reals,
        adj_row: reals, adj_q: reals, adj_facing: reals, adj_mass: reals, adj_inertia: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                free, n, bodies, NJ, M, row, 0, active, 0, q, 0, facing, 0, mass, 0, inertia, 0,
                adj_inverse_mass, 0, adj_turned, 0, adj_row, 0, adj_theta, 0, adj_turns, 0, adj_mass, 0, adj_inertia, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)
            add_turns(facing, 0, 2 * M, adj_turns, 0, adj_facing, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Mobility(Function):
    """Inverse mass [n], and what rows turn both bodies by [N, 2 S]. Saved: all inputs.

    `active` [M] says which contacts count. Inputs: row [N, W], orientation [n, R], facing [M, 2 R], mass [n],
    inertia [n, S].
    """

    @staticmethod
    def forward(
        ctx: Context, model: RigidBodies, active: Tensor, *inputs: Tensor
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        ctx.model = model
        ctx.save_for_backward(active, *inputs)
        dtype = inputs[0].dtype
        inverse_mass, turned = np.empty(model.bodies, dtype), np.zeros((model.rows, 2 * model.spins), dtype)
        _kernels(model).forward(*_counts(model), *flat(active, *inputs), inverse_mass, turned.reshape(-1))
        return inverse_mass, turned

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, *inputs = ctx.saved_tensors
        turned = [np.zeros(count * model.spins, adj_outputs[0].dtype) for count in (model.bodies, 2 * model.contacts)]
        adjoints = zeros_like(*inputs)
        _kernels(model).adjoint(*_counts(model), *flat(active, *inputs, *adj_outputs), *flat(*turned), *flat(*adjoints))
        return None, None, *adjoints


def _counts(model: RigidBodies) -> tuple[Any, ...]:
    return model.free, model.bodies, model.row_bodies, model.joint_rows, model.contacts


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.carries)
