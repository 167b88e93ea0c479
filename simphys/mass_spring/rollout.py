"""`Rollout`: the whole horizon as one node of the graph; the fused step is a rollout of one step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Context, Function, Tensor
from ..autograd.errors import InputError
from .model import Params, State, StateAdjoint, Topology, Trajectory


def rollout(topology: Topology, params: Params, state: State, *, steps: int, keep_adjoint: bool = False) -> Trajectory:
    """Advance `state` by `steps` steps as one node of the graph.

    With `keep_adjoint`, backward also stores the gradient with respect to the state along time.
    Errors: InputError for fewer than one step.
    """
    if steps < 1:
        raise InputError("rollout", "steps is at least 1", steps, "Ask for one step or more.")
    adjoint = StateAdjoint() if keep_adjoint else None
    position, velocity, last_position, last_velocity = Rollout.apply(
        topology, steps, adjoint, *state.tensors(), *params.tensors()
    )
    return Trajectory(position, velocity, State(last_position, last_velocity), adjoint)


def step(topology: Topology, params: Params, state: State) -> State:
    """The fused step: the same as `step.step`, as one node of the graph."""
    return rollout(topology, params, state, steps=1).final


class Rollout(Function):
    """Position and velocity at all steps [steps + 1, n, dim], and at the last [n, dim].

    Saved: the parameters, and in the engine the states of all stages.
    """

    @staticmethod
    def forward(
        ctx: Context, topology: Topology, steps: int, adjoint: StateAdjoint | None, *inputs: Tensor
    ) -> tuple[Any, ...]:
        ctx.steps, ctx.adjoint = steps, adjoint
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs)
        ctx.needs = frozenset(
            [name for name, need in zip(Params.names(), ctx.needs_input_grad[5:], strict=True) if need]
        )
        ctx.make = topology.engine
        given = Params(*inputs[2:]).arrays()
        ctx.engine = topology.engine(given, None, batch=1, needs=ctx.needs, deterministic=False)
        ctx.segment = ctx.engine.segment(steps)
        start = {name: value.data[None] for name, value in zip(State.names(), inputs[:2], strict=True)}
        ctx.engine.load(ctx.segment, start)
        ctx.engine.advance(ctx.segment, first=0, start=0, steps=steps)
        states = ctx.engine.read(ctx.segment, slice(None))
        return *[value[0] for value in states.values()], *[value[0, -1] for value in states.values()]

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor | None) -> tuple[Any, ...]:
        start = ctx.saved_tensors[0]
        along, last = adjoints[:2], adjoints[2:]
        dense = ctx.adjoint is not None or any(value is not None for value in along)
        seeds = {name: np.zeros((1, ctx.steps * dense + 1, *start.shape), start.dtype) for name in State.names()}
        for seed, each, final in zip(seeds.values(), along, last, strict=True):
            if each is not None:
                seed[0] = each.data
            if final is not None:
                seed[0, -1] += final.data
        ctx.engine.pull(ctx.segment, first=0, steps=ctx.steps, adjoint=seeds)
        if ctx.adjoint is not None:
            ctx.adjoint.position, ctx.adjoint.velocity = seeds["position"][0], seeds["velocity"][0]
        gradients = ctx.engine.gradients()
        return (
            *[None] * 3,
            *[seed[0, 0] for seed in seeds.values()],
            *[gradients.get(name) for name in Params.names()],
        )

    @staticmethod
    def jvp(ctx: Context, _topology: None, _steps: None, _adjoint: None, *tangents: Any) -> tuple[Any, ...]:
        inputs = ctx.saved_tensors
        start = {
            name: np.zeros((1, *value.shape), value.dtype) if change is None else change[None]
            for name, value, change in zip(State.names(), inputs[:2], tangents[:2], strict=True)
        }
        of_params = {name: d for name, d in zip(Params.names(), tangents[2:], strict=True) if d is not None}
        given = Params(*inputs[2:]).arrays()
        engine = ctx.make(given, None, batch=1, needs=ctx.needs, deterministic=False, tangents=of_params)
        changes = engine.push(ctx.segment, first=0, steps=ctx.steps, tangent=start).values()
        return *[value[0] for value in changes], *[value[0, -1] for value in changes]
