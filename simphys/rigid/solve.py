"""Solve for the impulses of all rows: the sweeps of sweeps.py as a Function."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from ..autograd import Context, Function, Tensor, kernel, runtime
from ..autograd.runtime import ti
from .model import RigidBodies
from .rows import flat
from .sweeps import loops, record_length


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """The loops of the nested sub-step."""
    f = loops(real, dim)
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        row: reals, target: reals, limit: reals, im: reals, turned: reals, twist: reals, active: reals, time: reals,
        bodies: ints, NJ: ti.i32, M: ti.i32, n: ti.i32, sweeps: ti.i32,
        order: ints, record: reals, speed: reals, trace: reals, impulse: reals, new: reals, shift: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.solve(
                row, 0, target, 0, limit, 0, im, 0, turned, 0, twist, 0, active, 0, time, 0, bodies, NJ, M, n, sweeps,
                order, 0, record, 0, speed, 0, trace, 0, impulse, 0, new, 0, shift, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        row: reals, target: reals, limit: reals, im: reals, time: reals, bodies: ints,
        NJ: ti.i32, M: ti.i32, n: ti.i32, sweeps: ti.i32,
        order: ints, record: reals, speed: reals, trace: reals, adj_record: reals, adj_speed: reals,
        adj_impulse: reals, adj_new: reals, adj_shift: reals,
        adj_row: reals, adj_target: reals, adj_limit: reals, adj_im: reals, adj_turned: reals, adj_twist: reals,
        adj_time: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj_solve(
                row, 0, target, 0, limit, 0, im, 0, time, 0, bodies, NJ, M, n, sweeps,
                order, 0, record, 0, speed, 0, trace, 0, adj_record, 0, adj_speed, 0, adj_impulse, 0, adj_new, 0,
                adj_shift, 0, adj_row, 0, adj_target, 0, adj_limit, 0, adj_im, 0, adj_turned, 0, adj_twist, 0,
                adj_time, 0,
            )  # fmt: skip

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Solve(Function):
    """The new twist [n, D], the shift of positions [n, D] and the impulses [N] of all rows; saved: the impulses of all
    sweeps, and inputs.

    Inputs: row [N, W], target [N], limit [M], inverse mass [n], turned [N, 2 S], time [M], twist [n, D],
    active [M], which has no gradient.
    """

    @staticmethod
    def forward(
        ctx: Context, model: RigidBodies, row: Tensor, target: Tensor, limit: Tensor, inverse_mass: Tensor,
        turned: Tensor, time: Tensor, twist: Tensor, active: Tensor,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        N, M, real = len(target.data), len(limit.data), twist.dtype
        ctx.counts = (model.joint_rows, M, model.bodies, model.sweeps)
        order, impulse, new, shift = np.zeros(M + 1, np.int32), np.zeros(N, real), *np.empty((2, *twist.shape), real)
        record, trace = np.zeros((N, record_length(model.dim)), real), np.zeros((model.sweeps, N), real)
        speed = np.empty((model.bodies + 1, twist.shape[1]), real)
        inputs = (row, target, limit, inverse_mass)
        work = (order, record, speed, trace)
        _kernels(model).forward(
            *flat(*inputs, turned, twist, active, time),
            model.row_bodies,
            *ctx.counts,
            *flat(*work, impulse, new, shift),
        )
        ctx.model = model
        ctx.save_for_backward(*inputs, turned, time, *work)
        return new, shift, impulse

    @staticmethod
    def backward(ctx: Context, adj_new: Tensor, adj_shift: Tensor, adj_impulse: Tensor) -> tuple[Any, ...]:
        *inputs, turned, time, order, record, speed, trace = ctx.saved_tensors
        adjoints = [np.zeros(each.shape, adj_new.dtype) for each in (*inputs, turned, adj_new, time)]
        work = (order, record.data.copy(), speed.data.copy(), trace, *map(np.empty_like, (record.data, speed.data)))
        _kernels(ctx.model).adjoint(
            *flat(*inputs, time), ctx.model.row_bodies, *ctx.counts,
            *flat(*work, adj_impulse.data.copy(), adj_new, adj_shift, *adjoints),
        )  # fmt: skip
        *of_inputs, adj_twist, adj_time = adjoints
        return None, *of_inputs, adj_time, adj_twist, None


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
