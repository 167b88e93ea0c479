"""Fused rollout: the whole horizon as one node of the graph, run by a simulator's engine within a memory plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..autograd import Context, Function, Tensor
from ..autograd.errors import InputError
from ..simulator import Array, Arrays, Engine
from .inputs import Inputs
from .kept import Kept
from .plan import Plan, make_plan
from .run import Progress, Sweep, Watch
from .running import RunningSum
from .seeds import Seeds
from .trajectory import Running, StateAdjoint, Trajectory

PASSING = 2**24
"""Bytes of states in memory at once in a sweep without reversal; at least eight states."""


@dataclass
class Request:
    """Options of a rollout besides its Tensors; `plan` is filled in by the forward sweep."""

    inputs: Inputs
    keep: Array
    memory: int | None
    """Memory budget in bytes; None for no limit."""
    running: Running | None
    adjoint: StateAdjoint | None
    deterministic: bool
    limit: float | None
    """Largest magnitude of a sound state; None for no check."""
    on_progress: Progress | None
    plan: Plan | None = field(default=None)
    fields: frozenset[str] | None = field(default=None)
    """Fields of the kept states; None for all."""

    @cached_property
    def sum(self) -> RunningSum | None:
        """Running sum, if one was requested."""
        return None if self.running is None else RunningSum(self.inputs, self.running)

    def engine(self, needs: Sequence[bool] = (), tangents: Arrays | None = None) -> Engine:
        """Make a new engine, for the adjoints of the inputs marked in `needs`, or for `tangents`."""
        inputs = self.inputs
        behind = zip(_behind(inputs), needs[len(inputs.state_shapes) :], strict=bool(needs))
        return inputs.model.engine(
            *inputs.arrays(),
            batch=inputs.members,
            needs=frozenset([name for name, need in behind if need]),
            deterministic=self.deterministic,
            tangents=tangents,
        )

    def planned(self, needs: Sequence[bool]) -> tuple[Engine, Plan]:
        """Make an engine for the adjoints of the inputs marked in `needs`, and a plan within the memory budget.

        Errors: InputError if no plan fits.
        """
        inputs = self.inputs
        engine = self.engine(needs)
        state = inputs.bytes_of(1)
        fixed = 2 * inputs.bytes_of(len(self.keep), self.fields)  # kept states and their adjoints
        fixed += 2 * state  # the final state and the current adjoint
        fixed += max(2 * state, 4 * inputs.bytes_of(inputs.piece) if self.running is not None else 0)  # other copies
        behind = inputs.tensors()[len(inputs.state_shapes) :]
        wanted = zip(behind, needs[len(inputs.state_shapes) :], strict=True)
        fixed += sum([tensor.data.nbytes for tensor, need in wanted if need])  # gradients
        if self.adjoint is not None:
            fixed += inputs.bytes_of(inputs.steps + 1)
        dense = self.running is not None or self.adjoint is not None or bool(self.keep[0] != inputs.steps)

        apart = getattr(engine, "fields_apart", False) and self.running is None and self.adjoint is None

        def segment_bytes(steps: int) -> int:
            along = inputs.bytes_of(steps + 1, self.fields if apart else None) if dense else 0  # adjoint for `pull`
            return engine.segment_bytes(steps, dense=dense) + along

        def stored() -> Plan:
            return make_plan(
                steps=inputs.steps,
                memory=self.memory,
                snapshot_bytes=state,
                segment_bytes=segment_bytes,
                fixed_bytes=fixed,
            )

        if self.running is None and not getattr(engine, "needs_states", True):
            return engine, self._without_states("none", segment_bytes, fixed) or stored()
        tape = getattr(engine, "tape_bytes", _no_tape)(inputs.steps) if self.running is None else None
        rebuilt = None if tape is None else self._without_states("rebuilt", segment_bytes, fixed + tape)
        if rebuilt is None:
            return engine, stored()
        try:
            plan = stored()
        except InputError:
            return engine, rebuilt
        return engine, min(plan, rebuilt, key=lambda each: each.recomputed_steps)

    def _without_states(
        self, way: Literal["none", "rebuilt"], segment_bytes: Callable[[int], int], fixed: int
    ) -> Plan | None:
        """Make the plan that stores no states, with the longest blocks that fit; None if not even one step fits."""
        block = passing(self.inputs).block
        while block > 1 and self.memory is not None and fixed + segment_bytes(block) > self.memory:
            block //= 2
        predicted = fixed + segment_bytes(block)
        if self.memory is not None and predicted > self.memory:
            return None
        return Plan(steps=self.inputs.steps, block=block, snapshots=0, predicted_bytes=predicted, way=way)


def fused(request: Request) -> Trajectory:
    """Run the rollout as one node, and return its trajectory."""
    inputs = request.inputs
    names = inputs.state.names()
    results = Rollout.apply(request, *inputs.tensors())
    kept, final = results[: len(names)], results[len(names) : 2 * len(names)]
    return Trajectory(
        inputs.state.replace(**dict(zip(names, kept, strict=True))),
        request.keep,
        inputs.state.replace(**dict(zip(names, final, strict=True))),
        inputs.steps,
        results[-1] if request.running is not None else None,
        request.adjoint,
        request.plan,
    )


def passing(inputs: Inputs) -> Plan:
    """Plan of a forward sweep that stores nothing for backward."""
    block = min(inputs.steps, max(8, PASSING // max(inputs.bytes_of(1), 1)))
    return Plan(steps=inputs.steps, block=block, snapshots=0, predicted_bytes=0)


class Rollout(Function):
    """Function with the outputs: kept states [B, rows, *shape], final state [B, *shape], and running sum.

    There is no axis B if nothing is batched. Saved: the inputs, for their versions; the states of the last block and
    the snapshots, according to the plan.
    """

    @staticmethod
    def forward(ctx: Context, request: Request, *tensors: Tensor) -> tuple[Any, ...]:
        inputs = request.inputs
        needs = ctx.needs_input_grad[1:]
        recorded = any(needs)
        if recorded:
            engine, plan = request.planned(needs)
            request.plan = plan
            if request.sum is not None:
                request.sum.check()
        else:
            engine, plan = request.engine(), passing(inputs)
        sweep = Sweep(engine, plan, Watch(inputs, request.limit, request.on_progress), inputs.start())
        kept = Kept(inputs, request.keep, request.sum, request.fields)
        kept.start(sweep.start)
        for first, count, segment in sweep.forward(keep=recorded):
            kept.take(engine, segment, first, count)
        if recorded:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*tensors, request, sweep)
        final, sweep.current = sweep.current, {}
        return _results(kept, final)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor | None) -> tuple[Any, ...]:
        *_, request, sweep = ctx.saved_tensors  # raises if an input was changed
        inputs: Inputs = request.inputs
        apart = getattr(sweep.engine, "fields_apart", False)
        seeds = Seeds(inputs, request.keep, request.sum, request.adjoint, adjoints, apart=apart)
        try:
            starts = _reverse(sweep, seeds)
        except BaseException:
            sweep.engine.gradients()  # clears the adjoint sums
            raise
        gradients = sweep.engine.gradients()
        of_state = []
        for tensor, (name, shape) in zip(inputs.state.tensors(), inputs.state_shapes.items(), strict=True):
            of_state.append(starts[name] if tensor.ndim > len(shape) else starts[name].sum(axis=0))
        return None, *of_state, *[gradients.get(name) for name in _behind(inputs)]

    @staticmethod
    def jvp(ctx: Context, _request: None, *tangents: Array | None) -> tuple[Any, ...]:
        *_, request, recorded = ctx.saved_tensors
        inputs: Inputs = request.inputs
        given = dict(zip([*inputs.state_shapes, *_behind(inputs)], tangents, strict=True))
        engine = request.engine(tangents={n: given[n] for n in _behind(inputs) if given[n] is not None})
        whole = recorded.whole()
        again = Sweep(engine, passing(inputs), Watch(inputs, None), inputs.start()) if whole is None else None
        tangent = {}
        for name, values in inputs.start().items():
            tangent[name] = np.zeros(values.shape, inputs.dtype)
            if given[name] is not None:
                tangent[name][:] = given[name]
        kept = Kept(inputs, request.keep, request.sum, request.fields)
        kept.start(tangent)
        for first, count, segment in [whole] if again is None else again.forward(keep=False):
            along = engine.push(segment, first=first, steps=count, tangent=tangent)
            kept.take_tangents(along, engine, segment, first, count)
            tangent = {name: np.ascontiguousarray(values[:, -1]) for name, values in along.items()}
        return _results(kept, tangent)


def _no_tape(steps: int) -> None:
    """Size of the tape of an engine that cannot go backward in time."""


def _reverse(sweep: Sweep, seeds: Seeds) -> Arrays:
    """Compute the adjoint of the first state, [B, *shape]; those of parameters and controls stay in the engine."""
    last: Arrays = {}
    for first, count, segment in sweep.reverse(dense=seeds.dense):
        last = last or seeds.last(sweep.engine, segment, count)
        adjoint = seeds.of_block(last, sweep.engine, segment, first, count)
        sweep.engine.pull(segment, first=first, steps=count, adjoint=adjoint)
        seeds.keep_adjoint(adjoint, first, count)
        if adjoint is not last:
            last = {name: values[:, :1].copy() for name, values in adjoint.items()}
            del adjoint  # free it before the next one is allocated
    return {name: np.ascontiguousarray(values[:, 0]) for name, values in last.items()}


def _results(kept: Kept, final: Arrays) -> tuple[Any, ...]:
    members = slice(None) if kept.inputs.batch is not None else 0
    results = [*kept.results.values(), *[final[name][members] for name in kept.results]]
    return (*results, kept.total()) if kept.running is not None else tuple(results)


def _behind(inputs: Inputs) -> list[str]:
    """Names of a rollout's inputs after the state."""
    return [*inputs.param_shapes, *([] if inputs.control is None else ["control"])]
