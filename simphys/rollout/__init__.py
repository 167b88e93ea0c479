"""Two ways through the same physics over a horizon: nested steps, for reading and checking, and the fused rollout."""

from __future__ import annotations

from typing import Literal

from ..autograd import ops
from ..autograd.errors import InputError
from ..mass_spring import Params, State, Topology, Trajectory
from ..mass_spring import rollout as fused_rollout
from ..mass_spring import step as nested_step

Mode = Literal["fused", "nested"]


def rollout(
    topology: Topology, params: Params, state: State, *, steps: int, mode: Mode = "fused", keep_adjoint: bool = False
) -> Trajectory:
    """The states of `steps` time steps from `state`, part of the graph.

    fused: one node for the whole horizon. nested: one node a sub-step, then the states stacked; slow, and equal to
    rounding. `keep_adjoint` (fused) also stores the gradient with respect to the state along time at backward.
    """
    if mode == "fused":
        return fused_rollout(topology, params, state, steps=steps, keep_adjoint=keep_adjoint)
    if keep_adjoint:
        raise InputError("rollout", "the adjoint along time is kept by the fused rollout", mode, "Use mode='fused'.")
    states = [state]
    for _ in range(steps):
        states.append(nested_step(topology, params, states[-1]))
    position = ops.stack([each.position for each in states])
    velocity = ops.stack([each.velocity for each in states])
    return Trajectory(position, velocity, states[-1])
