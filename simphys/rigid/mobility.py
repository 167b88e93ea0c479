"""Mobility: how easily impulses move the bodies, which is what rows of constraints are solved with.

    1/m                                 inverse mass [1/kg]
    K = A^-1 = R diag(1/J) R^T          inverse inertia in the world's frame [1/(kg m^2)]

of each body, and 0 of a fixed one. Adjoint: adj_m = -adj_(1/m) / m^2, and K column by column, K e_j, as in inertia.py.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from ..autograd import Context, Function, Tensor, kernel, runtime
from ..autograd.runtime import ti
from ..math import rotation
from . import inertia, rows
from .model import RigidBodies
from .nested import turns, zeros_like
from .rows import flat


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions of one body."""
    body, at = inertia.functions(real, dim), rows.functions(real, dim)
    spins, spin = at.spins, at.spin
    mat, square = ti.types.matrix(dim, dim, real), ti.types.matrix(spins, spins, real)

    @ti.func
    def unit(j) -> spin:
        e = spin(0.0)
        e[j] = 1.0
        return e

    @ti.func
    def inverse(R: mat, J: spin) -> square:
        K = square(0.0)
        for j in ti.static(range(spins)):
            column = body.apply(R, 1 / J, unit(j))
            for i in ti.static(range(spins)):
                K[i, j] = column[i]
        return K

    @ti.func
    def adj_inverse(R: mat, J: spin, g: square):
        """By J and theta."""
        adj_inverse, adj_theta = spin(0.0), spin(0.0)
        for j in ti.static(range(spins)):
            column = spin(0.0)
            for i in ti.static(range(spins)):
                column[i] = g[i, j]
            by_d, _, by_theta = body.adj(R, 1 / J, unit(j), column)
            adj_inverse += by_d
            adj_theta += by_theta
        return -adj_inverse / (J * J), adj_theta

    return SimpleNamespace(inverse=inverse, adj=adj_inverse, square=square)


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Over all bodies; for the arguments see rows.py."""
    at, rotate, f = rows.functions(real, dim), rotation.functions(real, dim), functions(real, dim)
    spins, square = at.spins, f.square

    @ti.func
    def mobility(
        free: ti.template(), n, q: ti.template(), q0, mass: ti.template(), mass0, inertia: ti.template(), inertia0,
        inverse_mass: ti.template(), inverse_mass0, inverse_inertia: ti.template(), inverse_inertia0,
    ):  # fmt: skip
        for b in range(n):
            K = f.inverse(rotate.matrix(at.rotation_of(q, q0, b)), at.spin_of(inertia, inertia0, b))
            inverse_mass[inverse_mass0 + b] = free[b] / mass[mass0 + b]
            for i, j in ti.static(ti.ndrange(spins, spins)):
                inverse_inertia[inverse_inertia0 + (b * spins + i) * spins + j] = free[b] * K[i, j]

    @ti.func
    def adj_mobility(
        free: ti.template(), n, q: ti.template(), q0, mass: ti.template(), mass0, inertia: ti.template(), inertia0,
        adj_inverse_mass: ti.template(), adj_inverse_mass0,
        adj_inverse_inertia: ti.template(), adj_inverse_inertia0,
        adj_theta: ti.template(), adj_theta0, adj_mass: ti.template(), adj_mass0,
        adj_inertia: ti.template(), adj_inertia0,
    ):  # fmt: skip
        for b in range(n):
            if free[b] == 1:
                g, m = square(0.0), mass[mass0 + b]
                for i, j in ti.static(ti.ndrange(spins, spins)):
                    g[i, j] = adj_inverse_inertia[adj_inverse_inertia0 + (b * spins + i) * spins + j]
                g_J, g_theta = f.adj(rotate.matrix(at.rotation_of(q, q0, b)), at.spin_of(inertia, inertia0, b), g)
                at.add_spin_of(adj_inertia, adj_inertia0, b, g_J)
                at.add_spin_of(adj_theta, adj_theta0, b, g_theta)
                adj_mass[adj_mass0 + b] = adj_mass[adj_mass0 + b] - adj_inverse_mass[adj_inverse_mass0 + b] / (m * m)

    return SimpleNamespace(mobility=mobility, adj=adj_mobility)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """The nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim), turns(real, dim)

    @kernel
    def forward(
        free: ints, n: ti.i32, q: reals, mass: reals, inertia: reals, inverse_mass: reals, inverse_inertia: reals
    ):
        for _ in range(1):
            f.mobility(free, n, q, 0, mass, 0, inertia, 0, inverse_mass, 0, inverse_inertia, 0)

    @kernel
    def adjoint(
        free: ints, n: ti.i32, q: reals, mass: reals, inertia: reals, adj_inverse_mass: reals,
        adj_inverse_inertia: reals, adj_theta: reals, adj_q: reals, adj_mass: reals, adj_inertia: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                free, n, q, 0, mass, 0, inertia, 0, adj_inverse_mass, 0, adj_inverse_inertia, 0,
                adj_theta, 0, adj_mass, 0, adj_inertia, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Mobility(Function):
    """Inverse mass [n] and inverse inertia [n, S S] from orientation [n, R], mass [n], inertia [n, S]. Saved: these."""

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, *inputs: Tensor) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        ctx.model = model
        ctx.save_for_backward(*inputs)
        n, squares, dtype = model.bodies, model.spins**2, inputs[0].dtype
        inverse_mass, inverse_inertia = np.empty(n, dtype), np.empty((n, squares), dtype)
        _kernels(model).forward(model.free, n, *flat(*inputs), inverse_mass, inverse_inertia.reshape(-1))
        return inverse_mass, inverse_inertia

    @staticmethod
    def backward(ctx: Context, *adj_inverses: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        adj_theta = np.zeros(model.bodies * model.spins, adj_inverses[0].dtype)
        adjoints = zeros_like(*ctx.saved_tensors)
        _kernels(model).adjoint(
            model.free, model.bodies, *flat(*ctx.saved_tensors, *adj_inverses), adj_theta,
            *flat(*adjoints),
        )  # fmt: skip
        return None, *adjoints


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
