"""Distances of features that may touch: the gap and the frame of each candidate.

    gap [M]           distance along the normal, negative if they overlap [m]
    frame [M, 3 dim]  unit normal n from b to a, then r_a and r_b, from the centres of both bodies to the contact points

of M candidates (candidates.py) at the bodies' positions [n, dim] and orientations [n, R]. pair.py defines them, and has
the adjoint of one pair. The adjoints by position and by small rotations are sums over candidates, in their order. An
inactive pair has gap = FAR, the first axis as n, both r = 0, and derivative 0.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from .. import rows
from ..model import RigidBodies
from ..nested import orientation_adjoint, zeros_like
from ..rows import flatten
from . import feature, pair


@functools.cache
@no_type_check
def loops(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the loops over all candidates of these kinds; for the arguments see rows.py and `Candidates`."""
    at, part, rotate = rows.functions(real, dim), feature.functions(real, dim), rotation.functions(real, dim)
    f = pair.functions(real, dim, kinds)
    numbers, Feature = feature.numbers(dim), part.Feature

    @ti.func
    def feature_of(c, second, body, constants: ti.template(), q: ti.template(), q0) -> Feature:
        """Return the first or the second feature of candidate c."""
        return part.read(constants, (2 * c + second) * numbers, rotate.matrix(at.rotation_of(q, q0, body)))

    @ti.func
    def contacts(
        kind: ti.template(), body_a: ti.template(), body_b: ti.template(), constants: ti.template(), M,
        x: ti.template(), x0, q: ti.template(), q0,
        gap: ti.template(), gap0, frame: ti.template(), frame0,
    ):  # fmt: skip
        for c in range(M):
            i, j = body_a[c], body_b[c]
            a, b = feature_of(c, 0, i, constants, q, q0), feature_of(c, 1, j, constants, q, q0)
            g, n, r_a, r_b, is_active = f.contact(kind[c], at.vec_of(x, x0, i) - at.vec_of(x, x0, j), a, b)
            start = frame0 + c * 3 * dim
            gap[gap0 + c] = g
            at.put_vec(frame, start, n)
            at.put_vec(frame, start + dim, r_a)
            at.put_vec(frame, start + 2 * dim, r_b)
            if not is_active:
                gap[gap0 + c] = pair.FAR
                for e in range(3 * dim):
                    frame[start + e] = 0.0
                frame[start] = 1.0

    @ti.func
    def adj_contacts(
        kind: ti.template(), body_a: ti.template(), body_b: ti.template(), constants: ti.template(), M,
        x: ti.template(), x0, q: ti.template(), q0,
        gap: ti.template(), gap0, frame: ti.template(), frame0,
        adj_gap: ti.template(), adj_gap0, adj_frame: ti.template(), adj_frame0,
        adj_x: ti.template(), adj_x0, adj_theta: ti.template(), adj_theta0,
    ):  # fmt: skip
        """Add to the adjoints; `gap` and `frame` are the results. Candidates with zero adjoints are skipped."""
        for c in range(M):
            frame_c, adj_frame_c = frame0 + c * 3 * dim, adj_frame0 + c * 3 * dim
            is_idle = adj_gap[adj_gap0 + c] == 0  # False for NaN, which `!= 0` may miss
            for e in range(3 * dim):
                is_idle = is_idle and adj_frame[adj_frame_c + e] == 0
            if not is_idle and gap[gap0 + c] < pair.FAR:
                i, j = body_a[c], body_b[c]
                a, b = feature_of(c, 0, i, constants, q, q0), feature_of(c, 1, j, constants, q, q0)
                adj_d, adj_theta_a, adj_theta_b = f.adj(
                    kind[c], at.vec_of(x, x0, i) - at.vec_of(x, x0, j), a, b,
                    gap[gap0 + c], at.vec_at(frame, frame_c), adj_gap[adj_gap0 + c], at.vec_at(adj_frame, adj_frame_c),
                    at.vec_at(adj_frame, adj_frame_c + dim), at.vec_at(adj_frame, adj_frame_c + 2 * dim),
                )  # fmt: skip
                at.add_vec_of(adj_x, adj_x0, i, adj_d)
                at.add_vec_of(adj_x, adj_x0, j, -adj_d)
                at.add_spin_of(adj_theta, adj_theta0, i, adj_theta_a)
                at.add_spin_of(adj_theta, adj_theta0, j, adj_theta_b)

    return SimpleNamespace(contacts=contacts, adj=adj_contacts)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    f, add_turns = loops(real, dim, kinds), orientation_adjoint(real, dim)

    @kernel
    def forward(
        kind: ints,
        body_a: ints,
        body_b: ints,
        constants: reals,
        M: ti.i32,
        x: reals,
        q: reals,
        gap: reals,
        frame: reals,
    ):
        for _ in range(1):
            f.contacts(kind, body_a, body_b, constants, M, x, 0, q, 0, gap, 0, frame, 0)

    @kernel
    def adjoint(
        kind: ints, body_a: ints, body_b: ints, constants: reals, M: ti.i32, x: reals, q: reals,
        gap: reals, frame: reals, n: ti.i32, adj_gap: reals, adj_frame: reals,
        adj_x: reals, adj_theta: reals, adj_q: reals,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(
                kind, body_a, body_b, constants, M, x, 0, q, 0, gap, 0, frame, 0,
                adj_gap, 0, adj_frame, 0, adj_x, 0, adj_theta, 0,
            )  # fmt: skip
        for _ in range(1):
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Contacts(Function):
    """gap [M] and frame [M, 3 dim] of all candidates, at position [n, dim] and orientation [n, R]. Saved: all four."""

    @staticmethod
    def forward(
        ctx: Context, model: RigidBodies, position: Tensor, orientation: Tensor
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        M = model.candidates.count
        gap, frame = np.empty(M, position.dtype), np.empty((M, 3 * model.dim), position.dtype)
        if M:
            _kernels(model).forward(*_arguments(model), *flatten(position, orientation, gap, frame))
        ctx.model = model
        ctx.save_for_backward(position, orientation, gap, frame)
        return gap, frame

    @staticmethod
    def backward(ctx: Context, adj_gap: Tensor, adj_frame: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        position, orientation, gap, frame = ctx.saved_tensors
        adj_x, adj_q = zeros_like(position, orientation)
        if model.candidates.count:
            adj_theta = np.zeros((model.bodies, model.spins), position.dtype)
            _kernels(model).adjoint(
                *_arguments(model), *flatten(position, orientation, gap, frame), model.bodies,
                *flatten(adj_gap, adj_frame, adj_x, adj_theta, adj_q),
            )  # fmt: skip
        return None, adj_x, adj_q


def _arguments(model: RigidBodies) -> tuple[Any, ...]:
    return *model.candidates.arrays(), model.candidates.count


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.candidates.kinds)
