"""Motion of rigid colliders: centre and rotation advance by velocity and angular velocity over a time step.

    c' = c + dt v     q' = q + dt omega (angle, in the plane)     q' = e(dt omega) q / |q| (quaternion, in space)

c centre [m], v velocity [m/s], omega angular velocity in the world's frame [rad/s]. A constant omega turns the body by
exactly |omega| dt a step, and q' is a unit quaternion. Adjoint:

    adj_c = adj_c'     adj_v = dt adj_c'     adj_q, adj_omega: see rotation.py and quaternion.py, with phi = dt omega

Source: Sola 2017, Quaternion kinematics for the error-state Kalman filter, section 4.6.
"""

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import memory, rotation

if TYPE_CHECKING:
    from .model import MPM


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions of a collider."""
    turn = rotation.functions(real, dim)
    vec = ti.types.vector(dim, real)
    spin, quat = ti.types.vector(turn.spins, real), ti.types.vector(turn.rotations, real)

    @ti.func
    def move(c: vec, q: quat, v: vec, omega: spin, dt: real):
        return c + dt * v, turn.advance(q, dt * omega)

    @ti.func
    def adj_move(q: quat, omega: spin, dt: real, adj_c: vec, adj_q: quat):
        gq, gphi = turn.adj_advance(q, dt * omega, adj_q)
        return adj_c, gq, dt * adj_c, dt * gphi

    @ti.func
    def jvp_move(q: quat, omega: spin, dt: real, dc: vec, dq: quat, dv: vec, domega: spin):
        return dc + dt * dv, turn.jvp_advance(q, dt * omega, dq, dt * domega)

    return SimpleNamespace(move=move, adj=adj_move, jvp=jvp_move)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Loops over K colliders and `steps` steps from row `start` on, for flat arrays.

    A row holds all colliders at one time: position [rows, K, dim], rotation [rows, K, rotations]. A row of velocity
    [rows, K, dim] and spin [rows, K, spins] belongs to the step from this row to the next.
    """
    turn, f = rotation.functions(real, dim), functions(real, dim)
    centres, turns, spins = (memory.functions(real, width) for width in (dim, turn.rotations, turn.spins))
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(
        position: reals, rotation: reals, velocity: reals, spin: reals, dt: real, K: ti.i32, start: ti.i32,
        steps: ti.i32,
    ):  # fmt: skip
        """Compute rows start + 1 ... start + steps of the pose from row `start`."""
        for k in range(K):
            for t in range(steps):
                i = (start + t) * K + k
                c, q = f.move(
                    centres.vector(position, i), turns.vector(rotation, i),
                    centres.vector(velocity, i), spins.vector(spin, i), dt,
                )  # fmt: skip
                centres.put_vector(position, i + K, c)
                turns.put_vector(rotation, i + K, q)

    @kernel
    def adjoint(
        rotation: reals, spin: reals, dt: real, K: ti.i32, start: ti.i32, steps: ti.i32,
        adj_position: reals, adj_rotation: reals, adj_velocity: reals, adj_spin: reals,
    ):  # fmt: skip
        """Add to all four adjoints, for rows start + steps - 1 ... start in this order, each from the next.

        A row of the adjoint pose initially holds the contributions of grid and loss, and finally the total. Row
        start + steps must already hold its total.
        """
        for k in range(K):
            for t in range(steps):
                i = (start + steps - 1 - t) * K + k
                gc, gq, gv, gomega = f.adj(
                    turns.vector(rotation, i), spins.vector(spin, i), dt,
                    centres.vector(adj_position, i + K), turns.vector(adj_rotation, i + K),
                )  # fmt: skip
                centres.put_vector(adj_position, i, centres.vector(adj_position, i) + gc)
                turns.put_vector(adj_rotation, i, turns.vector(adj_rotation, i) + gq)
                centres.put_vector(adj_velocity, i, centres.vector(adj_velocity, i) + gv)
                spins.put_vector(adj_spin, i, spins.vector(adj_spin, i) + gomega)

    @kernel
    def tangent(
        rotation: reals, spin: reals, dt: real, K: ti.i32, start: ti.i32, steps: ti.i32,
        dposition: reals, drotation: reals, dvelocity: reals, dspin: reals,
    ):  # fmt: skip
        """Compute rows start + 1 ... start + steps of the tangent of the pose from row `start`."""
        for k in range(K):
            for t in range(steps):
                i = (start + t) * K + k
                dc, dq = f.jvp(
                    turns.vector(rotation, i), spins.vector(spin, i), dt,
                    centres.vector(dposition, i), turns.vector(drotation, i),
                    centres.vector(dvelocity, i), spins.vector(dspin, i),
                )  # fmt: skip
                centres.put_vector(dposition, i + K, dc)
                turns.put_vector(drotation, i + K, dq)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class MoveColliders(Function):
    """Position [K, dim] and rotation [K, rotations] after a step with velocity [K, dim] and spin [K, spins].

    Saves rotation and spin.
    """

    @staticmethod
    def forward(
        ctx: Context, model: "MPM", position: Tensor, rotation: Tensor, velocity: Tensor, spin: Tensor
    ) -> tuple[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(rotation, spin)
        rows = _two_rows(position), _two_rows(rotation)
        flatten = [value.data.reshape(-1) for value in (velocity, spin)]
        _kernels(model).forward(*[row.reshape(-1) for row in rows], *flatten, *_scalars(model))
        return rows[0][1], rows[1][1]

    @staticmethod
    def backward(ctx: Context, adj_position: Tensor, adj_rotation: Tensor) -> tuple[Any, ...]:
        model: MPM = ctx.model
        rotation, spin = ctx.saved_tensors
        adj_poses = [np.stack([np.zeros(adj.shape, adj.dtype), adj.data]) for adj in (adj_position, adj_rotation)]
        adj_velocity, adj_spin = np.zeros(adj_position.shape, adj_position.dtype), np.zeros(spin.shape, spin.dtype)
        adjoints = [adj.reshape(-1) for adj in (*adj_poses, adj_velocity, adj_spin)]
        _kernels(model).adjoint(rotation.data.reshape(-1), spin.data.reshape(-1), *_scalars(model), *adjoints)
        return None, adj_poses[0][0], adj_poses[1][0], adj_velocity, adj_spin

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> tuple[Any, Any]:
        model: MPM = ctx.model
        rotation, spin = ctx.saved_tensors
        rows = [_two_rows(d) for d in tangents[:2]]
        drows = [d.reshape(-1) for d in (*rows, *tangents[2:])]
        _kernels(model).tangent(rotation.data.reshape(-1), spin.data.reshape(-1), *_scalars(model), *drows)
        return rows[0][1], rows[1][1]


def _two_rows(first: Any) -> np.ndarray[Any, Any]:
    """Allocate two rows, for the values before and after a step, both holding the values before."""
    values = first.data if isinstance(first, Tensor) else first
    return np.stack([values, values])


def _scalars(model: "MPM") -> tuple[Any, ...]:
    return model.dt, len(model.colliders), 0, 1


def _kernels(model: "MPM") -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
