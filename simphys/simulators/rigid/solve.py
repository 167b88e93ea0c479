"""Solve for the impulses of all rows: the phases of a step (phases.py) as a Function."""

import functools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, record, runtime
from simphys.autograd.kernels.runtime import ti

from . import arrays, phases_tangent
from .arrays import flat
from .model import RigidBodies
from .nested import zeros_like
from .phases import PHASES, loops
from .sweeps import COUNTS, record_length


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Return the kernels of the nested sub-step."""
    f, tangents = loops(real, dim), phases_tangent.loops(real, dim)
    types = arrays.types(real)
    system_type = types.system
    reals, ints = types.reals, types.ints
    motion, change = types.part(arrays.Motion, "v w"), types.part(arrays.Change, "twist new shift")
    shared = {
        "change": change,
        "rows": record(arrays.Rows, reals),
        "impact": types.part(arrays.Impact, "fraction"),
    }
    kept = {
        "stage": motion,
        "contacts": types.part(arrays.Contacts, "time active first"),
        "solver": record(arrays.Solver, reals, order=ints),
    }
    member, saved = record(arrays.Member, **shared, **kept), record(arrays.Member, **{**shared, **kept, "change": None})
    adj_member = record(
        arrays.Member,
        **shared,
        stage=motion,
        contacts=types.part(arrays.Contacts, "time"),
        solver=types.part(arrays.Solver, "impulse record speed phase_target delta_v"),
    )

    dmember = record(
        arrays.Member,
        **shared,
        stage=motion,
        contacts=types.part(arrays.Contacts, "time"),
        solver=types.part(arrays.Solver, "impulse record speed phase_target delta_v"),
    )

    @kernel
    def forward(h: real, system: system_type, given: member):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.solve_phases(h, system, given)

    @kernel
    def adjoint(h: real, system: system_type, given: saved, adj_given: adj_member):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj(h, system, given, adj_given)

    @kernel
    def tangent(h: real, system: system_type, given: member, dgiven: dmember):
        ti.loop_config(serialize=True)
        for _ in range(1):
            tangents.jvp(h, system, given, dgiven)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Solve(Function):
    """New twist [n, D], shift of poses [n, D] and impulses [PHASES, N]; saved: also the impulses after each sweep.

    `active` [M] is the state of contacts, `first` [n] the first impact that reaches each body (time_of_impact.py).
    Inputs: row [N, W], of which only the directions are read, target [N], limit [M], bounce [M], inverse mass [n],
    spin_change and moment [N, 2 S], time [M], fraction [n], twist [n, D], velocity [n, dim] and angular_velocity [n, S]
    before the forces.
    """

    @staticmethod
    def forward(ctx: Context, model: RigidBodies, active: Tensor, first: Tensor, *inputs: Tensor) -> tuple[Any, ...]:
        (n, D), N, real = inputs[9].shape, len(inputs[0].data), inputs[0].dtype
        solver = arrays.Solver(
            impulse=np.zeros((PHASES, N), real),
            order=np.zeros(model.contacts + COUNTS, np.int32),
            held=np.zeros(model.contacts, real),
            record=np.zeros((N, record_length(model.dim)), real),
            speed=np.zeros((n + 1, D), real),
            trace=np.zeros((PHASES * model.sweeps, N), real),
            phase_target=np.zeros((2, N), real),
            delta_v=np.zeros((n + 1, D), real),
            result=np.zeros((PHASES, n, D), real),
        )
        new, shift = np.empty((2, n, D), real)
        member = _member(inputs, solver, states=(active, first), results=(new, shift))
        _kernels(model).forward(*_constants(model), flat(member))
        ctx.model = model
        ctx.save_for_backward(active, first, *inputs, *solver)
        return new, shift, solver.impulse

    @staticmethod
    def backward(ctx: Context, adj_new: Tensor, adj_shift: Tensor, adj_impulse: Tensor) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, first, *saved = ctx.saved_tensors
        inputs, solver = saved[:12], arrays.Solver(*saved[12:])
        scratch = solver._replace(record=solver.record.data.copy(), speed=solver.speed.data.copy())
        member = _member(inputs, scratch, states=(active, first))._replace(change=None)
        empty = [
            np.empty_like(each.data) for each in (solver.record, solver.speed, solver.phase_target, solver.delta_v)
        ]
        names = ("record", "speed", "phase_target", "delta_v")
        adj_solver = arrays.Solver(impulse=adj_impulse.data.copy(), **dict(zip(names, empty, strict=True)))
        found = zeros_like(*inputs)
        adj_member = _member(found, adj_solver, results=(adj_new, adj_shift))
        _kernels(model).adjoint(*_constants(model), flat(member), flat(adj_member))
        return None, None, None, *found

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, ___: None, *tangents: Any) -> tuple[Any, ...]:
        model: RigidBodies = ctx.model
        active, first, *saved = ctx.saved_tensors
        inputs, real = saved[:12], tangents[0].dtype
        scratch = arrays.Solver(*[each.data.copy() for each in saved[12:]])
        names = ("impulse", "record", "speed", "phase_target", "delta_v")
        dsolver = arrays.Solver(**{name: np.zeros(getattr(scratch, name).shape, real) for name in names})
        dnew, dshift, *unused = np.zeros((4, model.bodies, model.dim + model.spins), real)
        member = _member(inputs, scratch, states=(active, first), results=unused)
        _kernels(model).tangent(
            *_constants(model), flat(member), flat(_member(tangents, dsolver, results=(dnew, dshift)))
        )
        return dnew, dshift, dsolver.impulse


def _member(inputs: Sequence[Any], solver: arrays.Solver, *, states: Any = (None, None), results: Any = ()) -> Any:
    """Make the record of a member, of the inputs or their adjoints; `states` are those of contacts, and first."""
    *rows, time, fraction, twist, v, w = inputs
    active, first = states
    return arrays.Member(
        stage=arrays.Motion(v=v, w=w),
        change=arrays.Change(None, twist, *results),
        contacts=arrays.Contacts(time=time, active=active, first=first),
        rows=arrays.Rows(*rows),
        impact=arrays.Impact(fraction=fraction),
        solver=solver,
    )


def _constants(model: RigidBodies) -> tuple[Any, ...]:
    """Return the time step and the rows."""
    counts = model.bodies, model.joint_rows, model.contacts, model.sweeps
    return model.dt, flat(arrays.System(model.free, model.row_bodies, *counts))


def _kernels(model: RigidBodies) -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
