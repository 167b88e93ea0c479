"""The whole horizon as one node of the graph, over a simulator's engine, within the memory of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..autograd import Context, Function, Tensor, enable_grad, grad
from ..simulator import Array, Arrays, Engine
from .inputs import Inputs, along_bytes
from .plan import Plan, make_plan
from .run import Progress, Sweep, Watch, rows_in
from .trajectory import Running, StateAdjoint, Trajectory


@dataclass
class Request:
    """What a rollout is asked for, besides its Tensors; `plan` is what was made of it."""

    inputs: Inputs
    keep: Array
    memory: int | None
    """Bytes; None for no limit."""
    running: Running | None
    adjoint: StateAdjoint | None
    deterministic: bool
    limit: float
    on_progress: Progress | None
    plan: Plan | None = field(default=None)


def fused(request: Request) -> Trajectory:
    """One node: the kept states, the final one, and the running sum."""
    inputs = request.inputs
    names = inputs.state.names()
    results = Rollout.apply(request, *inputs.tensors())
    kept, final = results[: len(names)], results[len(names) : 2 * len(names)]
    return Trajectory(
        inputs.state.replace(**dict(zip(names, kept, strict=True))),
        request.keep,
        inputs.state.replace(**dict(zip(names, final, strict=True))),
        results[-1] if request.running is not None else None,
        request.adjoint,
        request.plan,
    )


def plan_of(request: Request, engine: Engine) -> Plan:
    """How to keep within the memory that was asked for. Errors: InputError where nothing fits."""
    inputs = request.inputs
    shapes = list(inputs.model.state_shapes().values())
    itemsize = inputs.state.tensors()[0].data.itemsize
    state = along_bytes(shapes, 1, inputs.members, itemsize)
    kept = along_bytes(shapes, len(request.keep), inputs.members, itemsize)
    adjoint = along_bytes(shapes, inputs.steps + 1, inputs.members, itemsize) if request.adjoint is not None else 0
    dense = request.running is not None or request.adjoint is not None or len(request.keep) > 1
    return make_plan(
        steps=inputs.steps,
        memory=request.memory,
        snapshot_bytes=state,
        segment_bytes=lambda steps: engine.segment_bytes(steps, dense=dense),
        fixed_bytes=2 * kept + adjoint + 4 * state,  # kept states and their adjoints; states and adjoints in passing
    )


class Rollout(Function):
    """Kept states [B, rows, *shape], final states [B, *shape] (without B where nothing is batched), and running sum.

    Saved: the inputs, for their versions; states of the last block and snapshots, as the plan says.
    """

    @staticmethod
    def forward(ctx: Context, request: Request, *tensors: Tensor) -> tuple[Any, ...]:
        inputs = request.inputs
        ctx.request = request
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        needs = _needed(ctx, inputs)
        params = inputs.params.arrays()
        control = None if inputs.control is None else inputs.control.data
        engine = inputs.model.engine(
            params, control, batch=inputs.members, needs=frozenset(needs), deterministic=request.deterministic
        )
        request.plan = plan = plan_of(request, engine)
        watch = Watch(inputs.model, params, request.limit, inputs.steps, request.on_progress)
        sweep = Sweep(engine, plan, watch, inputs.start())
        kept = _Kept(request)
        for first, count, segment in sweep.forward(keep=any(ctx.needs_input_grad)):
            kept.take(engine, segment, first, count)
        ctx.sweep, ctx.needs = sweep, needs
        squeeze = (lambda a: a) if inputs.batch is not None else (lambda a: a[0])
        results = [squeeze(array) for array in kept.states.values()]
        results += [squeeze(array) for array in sweep.current.values()]
        return (*results, np.asarray(kept.total)) if request.running is not None else tuple(results)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor | None) -> tuple[Any, ...]:
        request: Request = ctx.request
        _ = ctx.saved_tensors  # raises where an input was changed
        inputs, sweep = request.inputs, ctx.sweep
        seeds = _Seeds(request, adjoints)
        running: Arrays = {}
        for first, count, segment in sweep.reverse():
            running = running or seeds.last(sweep.engine, segment, count)
            adjoint = seeds.of_block(running, sweep.engine, segment, first, count)
            sweep.engine.pull(segment, first=first, steps=count, adjoint=adjoint)
            seeds.keep_adjoint(adjoint, first, count)
            running = {name: values[:, :1] for name, values in adjoint.items()}
        gradients = sweep.engine.gradients()
        shapes = inputs.model.state_shapes()
        starts = []
        for name, tensor in zip(shapes, inputs.state.tensors(), strict=True):
            first_adjoint = running[name][:, 0]
            shared = tensor.ndim == len(shapes[name])
            starts.append(first_adjoint.sum(axis=0) if shared else first_adjoint.copy())
        return (
            None,
            *starts,
            *[gradients.get(name) for name in inputs.model.param_shapes()],
            *([] if inputs.control is None else [gradients.get("control")]),
        )

    @staticmethod
    def jvp(ctx: Context, _request: None, *tangents: Array | None) -> tuple[Any, ...]:
        request: Request = ctx.request
        _ = ctx.saved_tensors
        inputs, sweep = request.inputs, ctx.sweep
        names = inputs.model.state_shapes()
        of_state = dict(zip(names, tangents, strict=False))
        behind = (*inputs.model.param_shapes(), *([] if inputs.control is None else ["control"]))
        given = {n: d for n, d in zip(behind, tangents[len(names) :], strict=True) if d is not None}
        engine = inputs.model.engine(
            inputs.params.arrays(),
            None if inputs.control is None else inputs.control.data,
            batch=inputs.members,
            needs=frozenset(),
            deterministic=request.deterministic,
            tangents=given,
        )
        start = inputs.start()
        tangent = {
            n: np.zeros_like(start[n]) if d is None else np.array(np.broadcast_to(d, start[n].shape), start[n].dtype)
            for n, d in of_state.items()
        }
        kept = _Kept(request, tangents=True)
        for first, count, segment in Sweep(engine, sweep.plan, sweep.watch, start).forward(keep=False):
            along = engine.push(segment, first=first, steps=count, tangent=tangent)
            kept.take_tangents(along, segment, engine, first, count)
            tangent = {name: values[:, -1] for name, values in along.items()}
        squeeze = (lambda a: a) if inputs.batch is not None else (lambda a: a[0])
        results = [squeeze(array) for array in (*kept.states.values(), *tangent.values())]
        return (*results, np.asarray(kept.total)) if request.running is not None else tuple(results)


def _needed(ctx: Context, inputs: Inputs) -> list[str]:
    """The parameters, and "control", whose adjoints are wanted."""
    names = [*inputs.model.state_shapes(), *inputs.model.param_shapes(), "control"]
    needs = ctx.needs_input_grad[1:]
    return [name for name, need in zip(names, needs, strict=False) if need and name not in inputs.model.state_shapes()]


class _Kept:
    """The states that the trajectory holds, and the running sum, gathered block by block."""

    def __init__(self, request: Request, *, tangents: bool = False) -> None:
        inputs = request.inputs
        self.request = request
        self.states = {
            name: np.empty((inputs.members, len(request.keep), *tensor.shape[tensor.ndim - len(shape) :]), tensor.dtype)
            for (name, shape), tensor in zip(inputs.model.state_shapes().items(), inputs.state.tensors(), strict=True)
        }
        self.total: Any = np.zeros((), inputs.state.tensors()[0].dtype)
        if request.keep[0] == 0 and not tangents:
            for name, values in inputs.start().items():
                self.states[name][:, 0] = values

    def take(self, engine: Engine, segment: Any, first: int, count: int) -> None:
        """What a block of states [first, first + count] has of it."""
        places, rows = rows_in(self.request.keep, first, first + count)
        if rows:
            for name, values in engine.read(segment, _slice(rows)).items():
                self.states[name][:, places] = values
        if self.request.running is not None:
            states = block_states(self.request.inputs, engine.read(segment, slice(1, count + 1)))
            self.total = self.total + self.request.running(states, np.arange(first + 1, first + count + 1)).data

    def take_tangents(self, along: Arrays, segment: Any, engine: Engine, first: int, count: int) -> None:
        """The same of the tangents [B, count + 1, *shape] of a block."""
        if first == 0 and self.request.keep[0] == 0:
            for name, values in along.items():
                self.states[name][:, 0] = values[:, 0]
        places, rows = rows_in(self.request.keep, first, first + count)
        for name, values in along.items():
            self.states[name][:, places] = values[:, rows]
        if self.request.running is not None:
            derivatives = running_adjoint(self.request, engine, segment, first, slice(1, count + 1), 1.0)
            for name, values in derivatives.items():
                self.total = self.total + np.vdot(values, along[name][:, 1:])


class _Seeds:
    """The loss's derivatives by kept states, final state and running sum, handed to the blocks that they belong to.

    A block takes those of its states but the last, whose adjoint comes from behind. So each sum is formed inside
    `pull`, in the same order whatever the blocks are, and gradients do not depend on the plan in any bit.
    """

    def __init__(self, request: Request, adjoints: tuple[Tensor | None, ...]) -> None:
        inputs = request.inputs
        names = list(inputs.model.state_shapes())
        batched = inputs.batch is not None
        arrays = [None if a is None else (a.data if batched else a.data[None]) for a in adjoints[: 2 * len(names)]]
        self.request = request
        self.kept = {n: a for n, a in zip(names, arrays, strict=False) if a is not None}
        self.final = dict(zip(names, arrays[len(names) :], strict=True))
        running = adjoints[-1] if request.running is not None else None
        self.running = None if running is None else running.item()
        only_last = bool(request.keep[0] == inputs.steps)
        self.dense = self.running is not None or request.adjoint is not None or (bool(self.kept) and not only_last)

    def last(self, engine: Engine, segment: Any, count: int) -> Arrays:
        """The adjoint of the last state, [B, 1, *shape], which is row `count` of its block."""
        inputs, steps = self.request.inputs, self.request.inputs.steps
        adjoint = {}
        for name, values in inputs.start().items():
            given = self.final[name]
            adjoint[name] = np.zeros_like(values)[:, None] if given is None else given[:, None].copy()
            if name in self.kept and self.request.keep[-1] == steps:
                adjoint[name] += self.kept[name][:, -1:]
        if self.running is not None:
            self._add_running(
                adjoint, engine, segment, first=steps - count, rows=slice(count, count + 1), at=slice(0, 1)
            )
        if self.request.adjoint is not None:
            self._write(adjoint, slice(steps, steps + 1))
        return adjoint

    def of_block(self, last: Arrays, engine: Engine, segment: Any, first: int, count: int) -> Arrays:
        """What `pull` of a block takes: `last` [B, 1, *shape] is the adjoint of its last state."""
        if not self.dense:
            return last
        places, rows = rows_in(self.request.keep, first - 1, first + count - 1)
        adjoint = {}
        for name, values in last.items():
            adjoint[name] = np.zeros((len(values), count + 1, *values.shape[2:]), values.dtype)
            adjoint[name][:, -1:] = values
            if name in self.kept and rows:
                adjoint[name][:, [row - 1 for row in rows]] = self.kept[name][:, places]
        if self.running is not None:
            begin = 1 if first == 0 else 0
            if count > begin:
                rows_with = slice(begin, count)
                self._add_running(adjoint, engine, segment, first=first, rows=rows_with, at=rows_with)
        return adjoint

    def keep_adjoint(self, adjoint: Arrays, first: int, count: int) -> None:
        """Hand the adjoints of a block's states, but the last, to who asked for them along time."""
        if self.request.adjoint is not None:
            self._write({name: values[:, :count] for name, values in adjoint.items()}, slice(first, first + count))

    def _add_running(
        self, adjoint: Arrays, engine: Engine, segment: Any, *, first: int, rows: slice, at: slice
    ) -> None:
        """Add the running sum's derivatives by the states in `rows` of the segment to the rows `at` of an adjoint."""
        assert self.running is not None
        for name, values in running_adjoint(self.request, engine, segment, first, rows, self.running).items():
            adjoint[name][:, at] += values

    def _write(self, adjoint: Arrays, rows: slice) -> None:
        holder, inputs = self.request.adjoint, self.request.inputs
        for name, values in adjoint.items():
            if name not in vars(holder):
                shape = (inputs.steps + 1, *values.shape[2:])
                setattr(holder, name, np.zeros((inputs.batch, *shape) if inputs.batch else shape, values.dtype))
            target = vars(holder)[name]
            if inputs.batch is None:
                target[rows] = values[0]
            else:
                target[:, rows] = values


def block_states(inputs: Inputs, states: Arrays) -> Any:
    """States along time as a State of Tensors, without the batch axis where nothing is batched."""
    return inputs.state.replace(
        **{n: Tensor(np.ascontiguousarray(a if inputs.batch is not None else a[0]).copy()) for n, a in states.items()}
    )


def running_adjoint(request: Request, engine: Engine, segment: Any, first: int, rows: slice, seed: float) -> Arrays:
    """seed * d(running sum)/d(states in `rows` of a segment that begins with step `first`), [B, rows, *shape]."""
    assert request.running is not None
    states = block_states(request.inputs, engine.read(segment, rows))
    leaves = [tensor.requires_grad_() for tensor in states.tensors()]
    with enable_grad():
        value = request.running(states, np.arange(first + rows.start, first + rows.stop))
    if not value.requires_grad:
        return {}
    found = grad(value, leaves, [np.full(value.shape, seed)], allow_unused=True)
    arrays = {name: g.data for name, g in zip(states.names(), found, strict=True) if g is not None}
    return arrays if request.inputs.batch is not None else {name: a[None] for name, a in arrays.items()}


def _slice(rows: list[int]) -> slice | list[int]:
    """Rows as a slice where they are consecutive."""
    return slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else rows
