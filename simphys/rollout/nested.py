"""The horizon as a graph of steps: one node for each sub-step, or one for each step. To read, and to check against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd import Tensor, ops
from ..simulator import Array
from .inputs import Inputs
from .trajectory import Running, Trajectory

Step = Any
"""`step(params, state, control)`: the next state."""


def nested(inputs: Inputs, step: Step, keep: Array, running: Running | None) -> Trajectory:
    """The trajectory of the fused rollout, equal to rounding; a batch is computed member by member."""
    members = [_states(inputs, step, b) for b in range(inputs.members)]
    kept = _joined(inputs, [[states[t] for t in keep] for states in members])
    final = _joined(inputs, [[states[-1]] for states in members])
    only = 0 if inputs.batch is None else (slice(None), 0)
    final = final.replace(**{name: getattr(final, name)[only] for name in final.names()})
    total = None
    if running is not None:
        total = running(_joined(inputs, [states[1:] for states in members]), np.arange(1, inputs.steps + 1))
    return Trajectory(kept, keep, final, total)


def _states(inputs: Inputs, step: Step, member: int) -> list[Any]:
    """The states of one member at all steps."""
    model = inputs.model
    params = _member(inputs.params, model.param_shapes(), member)
    states = [_member(inputs.state, model.state_shapes(), member)]
    for t in range(inputs.steps):
        control = None
        if inputs.control is not None:
            batched = inputs.control.ndim > len(model.control_shape() or ()) + 1
            control = inputs.control[(member, t) if batched else t]
        states.append(step(params, states[-1], control))
    return states


def _member(record: Any, shapes: Any, member: int) -> Any:
    """The parameters or the state of one member."""
    chosen: dict[str, Tensor] = {}
    for name, shape in shapes.items():
        value = getattr(record, name)
        chosen[name] = value[member] if value.ndim > len(shape) else value
    return record.replace(**chosen)


def _joined(inputs: Inputs, members: Sequence[Sequence[Any]]) -> Any:
    """One State of [rows, *shape], or [B, rows, *shape], from the states of each member."""
    fields: dict[str, Tensor] = {}
    for name in inputs.state.names():
        rows = [ops.stack([getattr(state, name) for state in states]) for states in members]
        fields[name] = rows[0] if inputs.batch is None else ops.stack(rows)
    return inputs.state.replace(**fields)
