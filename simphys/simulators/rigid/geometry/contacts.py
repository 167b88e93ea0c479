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

from simphys.autograd import Context, Function, Tensor, kernel, record, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from .. import arrays, rows
from ..arrays import flat
from ..model import RigidBodies
from ..nested import orientation_adjoint, zeros_like
from . import feature, pair


@functools.cache
@no_type_check
def loops(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the loops over all candidates of these kinds; for the arguments see rows.py and `Candidates`."""
    at, part, rotate = rows.functions(real, dim), feature.functions(real, dim), rotation.functions(real, dim)
    f = pair.functions(real, dim, kinds)
    numbers, Feature = feature.numbers(dim), part.Feature

    @ti.func
    def feature_of(c, second, body, constants: ti.template(), q: ti.template()) -> Feature:
        """Return the first or the second feature of candidate c."""
        return part.read(constants, (2 * c + second) * numbers, rotate.matrix(at.rotation_of(q, body)))

    @ti.func
    def contacts(
        candidates: ti.template(), motion: ti.template(), found: ti.template()
    ):  # fmt: skip
        for c in range(candidates.count):
            i, j = candidates.body_a[c], candidates.body_b[c]
            a, b = (
                feature_of(c, 0, i, candidates.constants, motion.q),
                feature_of(c, 1, j, candidates.constants, motion.q),
            )
            g, n, r_a, r_b, is_active = f.contact(
                candidates.kind[c], at.vec_of(motion.x, i) - at.vec_of(motion.x, j), a, b
            )
            start = c * 3 * dim
            found.gap[c] = g
            at.put_vec(found.frame, start, n)
            at.put_vec(found.frame, start + dim, r_a)
            at.put_vec(found.frame, start + 2 * dim, r_b)
            if not is_active:
                found.gap[c] = pair.FAR
                for e in range(3 * dim):
                    found.frame[start + e] = 0.0
                found.frame[start] = 1.0

    @ti.func
    def adj_contacts(
        candidates: ti.template(), motion: ti.template(), found: ti.template(), adj_found: ti.template(),
        adj_motion: ti.template(),
    ):  # fmt: skip
        """Add to the adjoints; `found` are the results. Candidates with zero adjoints are skipped."""
        for c in range(candidates.count):
            start = c * 3 * dim
            is_idle = adj_found.gap[c] == 0  # False for NaN, which `!= 0` may miss
            for e in range(3 * dim):
                is_idle = is_idle and adj_found.frame[start + e] == 0
            if not is_idle and found.gap[c] < pair.FAR:
                i, j = candidates.body_a[c], candidates.body_b[c]
                a, b = (
                    feature_of(c, 0, i, candidates.constants, motion.q),
                    feature_of(c, 1, j, candidates.constants, motion.q),
                )
                adj_d, adj_theta_a, adj_theta_b = f.adj(
                    candidates.kind[c], at.vec_of(motion.x, i) - at.vec_of(motion.x, j), a, b,
                    found.gap[c], at.vec_at(found.frame, start),
                    adj_found.gap[c], at.vec_at(adj_found.frame, start),
                    at.vec_at(adj_found.frame, start + dim), at.vec_at(adj_found.frame, start + 2 * dim),
                )  # fmt: skip
                at.add_vec_of(adj_motion.x, i, adj_d)
                at.add_vec_of(adj_motion.x, j, -adj_d)
                at.add_spin_of(adj_motion.theta, i, adj_theta_a)
                at.add_spin_of(adj_motion.theta, j, adj_theta_b)

    @ti.func
    def jvp_contacts(
        candidates: ti.template(), motion: ti.template(), found: ti.template(), dmotion: ti.template(),
        dfound: ti.template(),
    ):  # fmt: skip
        """Compute the tangents of the results `found`; those of inactive pairs are 0."""
        for c in range(candidates.count):
            start, i, j = c * 3 * dim, candidates.body_a[c], candidates.body_b[c]
            dgap, dn, dr_a, dr_b = real(0.0), at.vec(0.0), at.vec(0.0), at.vec(0.0)
            if found.gap[c] < pair.FAR:
                a, b = (
                    feature_of(c, 0, i, candidates.constants, motion.q),
                    feature_of(c, 1, j, candidates.constants, motion.q),
                )
                dgap, dn, dr_a, dr_b = f.jvp(
                    candidates.kind[c], at.vec_of(motion.x, i) - at.vec_of(motion.x, j), a, b,
                    found.gap[c], at.vec_at(found.frame, start),
                    at.vec_of(dmotion.x, i) - at.vec_of(dmotion.x, j),
                    at.turn_of(motion.q, dmotion.q, i), at.turn_of(motion.q, dmotion.q, j),
                )  # fmt: skip
            dfound.gap[c] = dgap
            at.put_vec(dfound.frame, start, dn)
            at.put_vec(dfound.frame, start + dim, dr_a)
            at.put_vec(dfound.frame, start + 2 * dim, dr_b)

    return SimpleNamespace(contacts=contacts, adj=adj_contacts, jvp=jvp_contacts)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the kernels of the nested sub-step, over flat arrays."""
    f, add_turns, types = loops(real, dim, kinds), orientation_adjoint(real, dim), arrays.types(real)
    candidates_type, pose_type = types.candidates, types.pose
    distances = record(arrays.Contacts, gap=types.reals, frame=types.reals)
    turned = record(arrays.Motion, x=types.reals, q=types.reals, theta=types.reals)

    @kernel
    def forward(candidates: candidates_type, pose: pose_type, found: distances):
        for _ in range(1):
            f.contacts(candidates, pose, found)

    @kernel
    def adjoint(
        candidates: candidates_type, pose: pose_type, found: distances, n: ti.i32, adj_found: distances,
        adj_pose: turned,
    ):  # fmt: skip
        for _ in range(1):
            f.adj(candidates, pose, found, adj_found, adj_pose)
        for _ in range(1):
            add_turns(pose.q, n, adj_pose.theta, adj_pose.q)

    @kernel
    def tangent(
        candidates: candidates_type, pose: pose_type, found: distances, dpose: pose_type, dfound: distances,
    ):  # fmt: skip
        for _ in range(1):
            f.jvp(candidates, pose, found, dpose, dfound)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Contacts(Function):
    """gap [M] and frame [M, 3 dim] of all candidates, at position [n, dim] and orientation [n, R]. Saved: all four."""

    @staticmethod
    def forward(
        ctx: Context, model: RigidBodies, position: Tensor, orientation: Tensor
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        M = model.candidates.count
        gap, frame = np.empty(M, position.dtype), np.empty((M, 3 * model.dim), position.dtype)
        if M:
            pose, found = arrays.Motion(position, orientation), arrays.Contacts(gap, frame)
            _kernels(model).forward(_candidates(model), flat(pose), flat(found))
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
                _candidates(model),
                flat(arrays.Motion(position, orientation)),
                flat(arrays.Contacts(gap, frame)),
                model.bodies,
                flat(arrays.Contacts(adj_gap, adj_frame)),
                flat(arrays.Motion(x=adj_x, q=adj_q, theta=adj_theta)),
            )
        return None, adj_x, adj_q

    @staticmethod
    def jvp(ctx: Context, _: None, dx: Any, dq: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        model: RigidBodies = ctx.model
        position, orientation, gap, frame = ctx.saved_tensors
        dgap, dframe = np.empty_like(gap.data), np.empty_like(frame.data)
        if model.candidates.count:
            _kernels(model).tangent(
                _candidates(model),
                flat(arrays.Motion(position, orientation)),
                flat(arrays.Contacts(gap, frame)),
                flat(arrays.Motion(dx, dq)),
                flat(arrays.Contacts(dgap, dframe)),
            )
        return dgap, dframe


def _candidates(model: RigidBodies) -> arrays.Candidates:
    return arrays.Candidates(*model.candidates.arrays(), model.candidates.count)


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.candidates.kinds)
