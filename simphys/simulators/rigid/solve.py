"""Solve for the impulses of all rows: the phases of a step (phases.py) as a Function."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from .checks import EULER
from .model import RigidBodies
from .nested import orientation_adjoint, zeros_like
from .phases import PHASES, loops
from .rows import flatten
from .sweeps import COUNTS, record_length


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, gyroscopic: bool) -> SimpleNamespace:
    """Return the kernels of the nested sub-step."""
    f, add_turns = loops(real, dim, gyroscopic), orientation_adjoint(real, dim)
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        h: real, before: real, bodies: ints, NJ: ti.i32, M: ti.i32, n: ti.i32, count: ti.i32,
        active: reals, first: reals, row: reals, target: reals, limit: reals, bounce: reals, im: reals,
        spin_change: reals,
        moment: reals, time: reals, fraction: reals, twist: reals, v: reals, w: reals, q: reals, inertia: reals,
        order: ints, held: reals,
        record: reals, speed: reals, trace: reals, phase_target: reals, delta_v: reals, result: reals, impulse: reals,
        new: reals, shift: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.solve_phases(
                h, before, row, 0, target, 0, limit, 0, bounce, 0, im, 0, spin_change, 0, moment, 0, time, 0, fraction,
                0,
                twist, 0, v, 0, w, 0, q, 0, inertia, 0, active, 0, first, 0, bodies, NJ, M, n, count, order, 0, held, 0,
                record, 0, speed, 0, trace, 0, phase_target, 0, delta_v, 0, result, 0, impulse, 0, new, 0, shift, 0,
            )  # fmt: skip

    @kernel
    def adjoint(
        h: real, before: real, bodies: ints, NJ: ti.i32, M: ti.i32, n: ti.i32, count: ti.i32,
        active: reals, first: reals, row: reals, limit: reals, bounce: reals, im: reals, time: reals, fraction: reals,
        w: reals, q: reals, inertia: reals, order: ints, held: reals, record: reals, speed: reals, trace: reals,
        phase_target: reals, delta_v: reals, result: reals, impulse: reals, adj_theta: reals, adj_record: reals,
        adj_speed: reals, adj_phase_target: reals, adj_delta_v: reals, adj_impulse: reals,
        adj_new: reals, adj_shift: reals, adj_row: reals, adj_target: reals, adj_limit: reals, adj_bounce: reals,
        adj_im: reals, adj_spin_change: reals, adj_moment: reals, adj_time: reals, adj_fraction: reals,
        adj_twist: reals,
        adj_v: reals, adj_w: reals, adj_q: reals, adj_inertia: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj(
                h, before, row, 0, limit, 0, bounce, 0, im, 0, time, 0, fraction, 0,
                w, 0, q, 0, inertia, 0, active, 0, first, 0,
                bodies, NJ, M, n, count, order, 0, held, 0, record, 0, speed, 0, trace, 0,
                phase_target, 0, delta_v, 0, result, 0,
                impulse, 0, adj_record, 0, adj_speed, 0, adj_phase_target, 0, adj_delta_v, 0, adj_impulse, 0,
                adj_new, 0, adj_shift, 0, adj_row, 0, adj_target, 0, adj_limit, 0, adj_bounce, 0, adj_im, 0,
                adj_spin_change, 0, adj_moment, 0, adj_time, 0, adj_fraction, 0, adj_twist, 0, adj_v, 0, adj_w, 0,
                adj_theta, 0, adj_inertia, 0,
            )  # fmt: skip
            add_turns(q, 0, n, adj_theta, 0, adj_q, 0)

    return SimpleNamespace(forward=forward, adjoint=adjoint)


class Solve(Function):
    """New twist [n, D], shift of poses [n, D] and impulses [PHASES, N]; saved: also the impulses after each sweep.

    `active` [M] is the state of contacts, `first` [n] the first impact that reaches each body (time_of_impact.py).
    Inputs: row [N, W], of which only the directions are read, target [N], limit [M], bounce [M], inverse mass [n],
    spin_change and moment [N, 2 S], time [M], fraction [n], twist [n, D], velocity [n, dim] and angular_velocity [n, S]
    before the forces, orientation [n, R] and inertia [n, S].
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, active: Tensor, first: Tensor, *inputs: Tensor) -> tuple[Any, ...]:
        row, twist = inputs[0], inputs[9]
        (n, D), N, real = twist.shape, len(row.data), twist.dtype
        ctx.counts = model.row_bodies, model.joint_rows, model.contacts, n, model.sweeps
        order = np.zeros(model.contacts + COUNTS, np.int32)
        shapes = [(model.contacts,), (N, record_length(model.dim)), (n + 1, D), (PHASES * model.sweeps, N)]
        shapes += [(2, N), (n + 1, D), (PHASES, n, D)]
        work = [order, *(np.zeros(shape, real) for shape in shapes)]
        impulse, new, shift = np.zeros((PHASES, N), real), *np.empty((2, n, D), real)
        _kernels(model).forward(
            *_times(model), *ctx.counts, *flatten(active, first, *inputs, *work, impulse, new, shift)
        )  # fmt: skip
        ctx.model = model
        ctx.save_for_backward(active, first, *inputs, *work, impulse)
        return new, shift, impulse

    @staticmethod
    def backward(ctx: Context, adj_new: Tensor, adj_shift: Tensor, adj_impulse: Tensor) -> tuple[Any, ...]:
        active, first, *saved = ctx.saved_tensors
        inputs, work = saved[:14], saved[14:]
        row, _, limit, bounce, im, _, _, time, fraction, _, _, w, q, inertia = inputs
        order, held, record, speed, *rest = work
        scratch = [record.data.copy(), speed.data.copy()]
        adj_work = [np.empty(work[index].shape, adj_new.dtype) for index in (2, 3, 5, 6)]
        found = zeros_like(*inputs)
        _kernels(ctx.model).adjoint(
            *_times(ctx.model), *ctx.counts,
            *flatten(active, first, row, limit, bounce, im, time, fraction, w, q, inertia, order, held, *scratch),
            *flatten(*rest, np.zeros((ctx.model.bodies, ctx.model.spins), adj_new.dtype), *adj_work),
            *flatten(adj_impulse.data.copy(), adj_new, adj_shift, *found),
        )  # fmt: skip
        return None, None, None, *found


def _times(model: RigidBodies) -> tuple[float, float]:
    """Return the time step, and the time from its start to the forces."""
    return model.dt, model.dt - model.span


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.integrator == EULER)
