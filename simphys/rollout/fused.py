"""Fused rollout: the whole horizon as one node of the graph, run by a simulator's engine within a memory plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..autograd import Context, Function, Tensor
from ..autograd.errors import DeviceMemoryError, InputError
from ..simulator import Array, Arrays, Engine, Rewinding
from .inputs import Inputs
from .plan import Plan, make_plan
from .results import Results
from .run import Monitor, Progress, Sweep
from .running import RunningSum
from .seeds import Seeds
from .trajectory import LIMIT, Running, StateAdjoint, Trajectory

FORWARD_BYTES = 2**24
"""Bytes of states in memory at once in a sweep without reversal; at least eight states."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Inputs and options of a fused rollout."""

    inputs: Inputs
    keep: Array
    """Steps of the kept states, ascending."""
    fields: frozenset[str]
    """Fields of the kept states."""
    memory: int | None = None
    """Memory budget in bytes; None for no limit."""
    running: Running | None = None
    adjoint: StateAdjoint | None = None
    """Receives the adjoint of every state, if it is requested."""
    deterministic: bool = False
    limit: float | None = LIMIT
    """Largest magnitude of a sound state; None for no check."""
    on_progress: Progress | None = None

    @cached_property
    def running_sum(self) -> RunningSum | None:
        """Running sum, if one was requested."""
        return None if self.running is None else RunningSum(self.inputs, self.running)

    def make_engine(self, needs: Sequence[bool] = (), tangents: Arrays | None = None) -> Engine:
        """Make a new engine, for the adjoints of the inputs marked in `needs`, or for `tangents`."""
        inputs = self.inputs
        others = zip(_names_after_state(inputs), needs[len(inputs.state_shapes) :], strict=bool(needs))
        return inputs.model.engine(
            *inputs.arrays(),
            batch=inputs.members,
            needs=frozenset([name for name, need in others if need]),
            deterministic=self.deterministic,
            tangents=tangents,
        )

    def make_plan(self, needs: Sequence[bool]) -> tuple[Engine, Plan]:
        """Make an engine for the adjoints of the inputs marked in `needs`, and a plan within the memory budget.

        Errors: InputError if no plan fits.
        """
        inputs = self.inputs
        engine = self.make_engine(needs)
        state = inputs.state_bytes(1)
        fixed = 2 * inputs.state_bytes(len(self.keep), self.fields)  # kept states and their adjoints
        fixed += 2 * state  # the final state and the current adjoint
        fixed += max(2 * state, 4 * inputs.state_bytes(inputs.piece) if self.running is not None else 0)  # other copies
        others = inputs.tensors()[len(inputs.state_shapes) :]
        needed = zip(others, needs[len(inputs.state_shapes) :], strict=True)
        fixed += sum([tensor.data.nbytes for tensor, need in needed if need])  # gradients
        if self.adjoint is not None:
            fixed += inputs.state_bytes(inputs.steps + 1)
        dense = self.adjoint is not None or not self.needs_end_only
        sparse = engine.sparse_adjoints and self.running is None and self.adjoint is None

        def segment_bytes(steps: int) -> int:
            adjoint = inputs.state_bytes(steps + 1, self.fields if sparse else None) if dense else 0  # for `pull`
            return engine.segment_bytes(steps, dense=dense) + adjoint

        def plan_with_states() -> Plan:
            return make_plan(
                steps=inputs.steps,
                memory=self.memory,
                checkpoint_bytes=state,
                segment_bytes=segment_bytes,
                fixed_bytes=fixed,
            )

        if self.running is None and not engine.needs_states:
            rolling = replace(self.plan_forward(engine), strategy="stateless", predicted_bytes=fixed + segment_bytes(0))
            if rolling.rolls and not dense and (self.memory is None or rolling.predicted_bytes <= self.memory):
                return engine, rolling
            return engine, self._plan_without_states("stateless", segment_bytes, fixed) or plan_with_states()
        tape = engine.tape_bytes(inputs.steps) if self.running is None and isinstance(engine, Rewinding) else None
        rebuilt = None if tape is None else self._plan_without_states("rebuilt", segment_bytes, fixed + tape)
        if rebuilt is None:
            return engine, plan_with_states()
        try:
            stored = plan_with_states()
        except InputError:
            return engine, rebuilt
        return engine, min(stored, rebuilt, key=lambda plan: plan.recomputed_steps)

    def cut_plan(self, plan: Plan, needs: Sequence[bool], lack: DeviceMemoryError) -> tuple[Engine, Plan]:
        """Make a plan with half the memory of one that the device had no room for, or a little more.

        Errors: `lack`, if there is none.
        """
        lack.__traceback__ = lack.__cause__ = lack.__context__ = None  # whose frames hold arrays
        for part in (0.5, 0.75):
            try:
                return replace(self, memory=int(part * plan.predicted_bytes)).make_plan(needs)
            except InputError:
                pass
        raise lack

    @property
    def needs_end_only(self) -> bool:
        """True if the results need no state but the last one."""
        return self.running is None and bool(self.keep[0] == self.inputs.steps)

    def plan_forward(self, engine: Engine) -> Plan:
        """Plan a forward sweep that stores nothing for backward."""
        if engine.segments_roll and self.needs_end_only:
            return Plan(steps=self.inputs.steps, block=self.inputs.steps, checkpoints=0, predicted_bytes=0, rolls=True)
        return plan_forward(self.inputs)

    def _plan_without_states(
        self, strategy: Literal["stateless", "rebuilt"], segment_bytes: Callable[[int], int], fixed: int
    ) -> Plan | None:
        """Make the plan that stores no states, with the longest blocks that fit; None if not even one step fits."""
        block = plan_forward(self.inputs).block
        while block > 1 and self.memory is not None and fixed + segment_bytes(block) > self.memory:
            block //= 2
        predicted = fixed + segment_bytes(block)
        if self.memory is not None and predicted > self.memory:
            return None
        return Plan(steps=self.inputs.steps, block=block, checkpoints=0, predicted_bytes=predicted, strategy=strategy)


def run_fused(request: Request) -> Trajectory:
    """Run the rollout as one node, and return its trajectory."""
    inputs = request.inputs
    names = inputs.state.names()
    results = Rollout.apply(request, *inputs.tensors())
    kept, final = results[: len(names)], results[len(names) : 2 * len(names)]
    node: Any = final[0].grad_fn
    return Trajectory(
        states=inputs.state.replace(**dict(zip(names, kept, strict=True))),
        steps=request.keep,
        final=inputs.state.replace(**dict(zip(names, final, strict=True))),
        horizon=inputs.steps,
        running=results[-1] if request.running is not None else None,
        adjoint=request.adjoint,
        plan=None if node is None else node.plan,
    )


def plan_forward(inputs: Inputs) -> Plan:
    """Plan a forward sweep that stores nothing for backward."""
    block = min(inputs.steps, max(8, FORWARD_BYTES // max(inputs.state_bytes(1), 1)))
    return Plan(steps=inputs.steps, block=block, checkpoints=0, predicted_bytes=0)


class Rollout(Function):
    """Function with the outputs: kept states [B, rows, *shape], final state [B, *shape], and running sum.

    There is no axis B if nothing is batched. Saved: the inputs, for their versions; the states of the last block and
    the checkpoints, according to the plan.
    """

    @staticmethod
    def forward(ctx: Context, request: Request, *tensors: Tensor) -> tuple[Any, ...]:
        needs = ctx.needs_input_grad[1:]
        recorded = any(needs)
        if recorded:
            engine, plan = request.make_plan(needs)
            ctx.plan = plan
            if request.running_sum is not None:
                request.running_sum.check()
        else:
            engine = request.make_engine()
            plan = request.plan_forward(engine)
        lack = None
        try:
            sweep, results = _sweep(request, engine, plan, keep=recorded)
        except DeviceMemoryError as error:
            lack = error
        if lack is not None:
            del engine
            engine, ctx.plan = request.cut_plan(plan, needs, lack)
            sweep, results = _sweep(request, engine, ctx.plan, keep=recorded)
        if recorded:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*tensors, request, sweep)
        final, sweep.current = sweep.current, {}
        return _outputs(results, final)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor | None) -> tuple[Any, ...]:
        *_, request, sweep = ctx.saved_tensors  # raises if an input was changed
        inputs: Inputs = request.inputs
        given = inputs, request.keep, request.running_sum, request.adjoint, adjoints
        lack = None
        try:
            starts = _reverse(sweep, Seeds(*given, sparse=sweep.engine.sparse_adjoints))
        except DeviceMemoryError as error:
            lack = error
        if lack is not None:
            sweep.begin(*request.cut_plan(sweep.plan, ctx.needs_input_grad[1:], lack))
            starts = _reverse(sweep, Seeds(*given, sparse=sweep.engine.sparse_adjoints))
        gradients = sweep.engine.gradients()
        adj_state = []
        for tensor, (name, shape) in zip(inputs.state.tensors(), inputs.state_shapes.items(), strict=True):
            adj_state.append(starts[name] if tensor.ndim > len(shape) else starts[name].sum(axis=0))
        return None, *adj_state, *[gradients.get(name) for name in _names_after_state(inputs)]

    @staticmethod
    def jvp(ctx: Context, _request: None, *tangents: Array | None) -> tuple[Any, ...]:
        *_, request, recorded = ctx.saved_tensors
        inputs: Inputs = request.inputs
        others = _names_after_state(inputs)
        given = dict(zip([*inputs.state_shapes, *others], tangents, strict=True))
        engine = request.make_engine(tangents={n: given[n] for n in others if given[n] is not None})
        whole = recorded.whole_horizon()
        again = Sweep(engine, plan_forward(inputs), Monitor(inputs, None), inputs.start) if whole is None else None
        tangent = {}
        for name, values in inputs.start.items():
            tangent[name] = np.zeros(values.shape, inputs.dtype)
            if given[name] is not None:
                tangent[name][:] = given[name]
        results = Results(inputs, request.keep, request.running_sum, request.fields)
        results.set_start(tangent)
        for first, count, segment in [whole] if again is None else again.forward(keep=False):
            pushed = engine.push(segment, first=first, steps=count, tangent=tangent)
            results.add_tangents(pushed, engine, segment, first, count)
            tangent = {name: np.ascontiguousarray(values[:, -1]) for name, values in pushed.items()}
        return _outputs(results, tangent)


def _sweep(request: Request, engine: Engine, plan: Plan, *, keep: bool) -> tuple[Sweep, Results]:
    """Run forward; with `keep`, store what the reverse sweep needs."""
    inputs = request.inputs
    monitor = Monitor(inputs, request.limit, request.on_progress)
    sweep = Sweep(engine, plan, monitor, inputs.start)
    reuse = keep and request.memory is None  # as are the states for backward
    results = Results(inputs, request.keep, request.running_sum, request.fields, reuse=reuse)
    results.set_start(sweep.start)
    for first, count, segment in sweep.forward(keep=keep):
        results.add_block(engine, segment, first, count)
    return sweep, results


def _reverse(sweep: Sweep, seeds: Seeds) -> Arrays:
    """Compute the adjoint of the first state, [B, *shape]; those of parameters and controls stay in the engine."""
    last: Arrays = {}
    try:
        for first, count, segment in sweep.reverse(dense=seeds.dense):
            last = last or seeds.seed_last(sweep.engine, segment, count)
            adjoint = seeds.seed_block(last, sweep.engine, segment, first, count)
            sweep.engine.pull(segment, first=first, steps=count, adjoint=adjoint)
            seeds.store_adjoint(adjoint, first, count)
            if adjoint is not last:
                last = {name: values[:, :1].copy() for name, values in adjoint.items()}
                del adjoint  # free it before the next one is allocated
    except BaseException:
        sweep.engine.gradients()  # clears the adjoint sums
        raise
    return {name: np.ascontiguousarray(values[:, 0]) for name, values in last.items()}


def _outputs(results: Results, final: Arrays) -> tuple[Any, ...]:
    members = slice(None) if results.inputs.batch is not None else 0
    outputs = [*results.arrays.values(), *[final[name][members] for name in results.arrays]]
    return (*outputs, results.running_total()) if results.running is not None else tuple(outputs)


def _names_after_state(inputs: Inputs) -> list[str]:
    """Names of a rollout's inputs after the state."""
    return [*inputs.param_shapes, *([] if inputs.control is None else ["control"])]
