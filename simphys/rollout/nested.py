"""Rollout as a graph of steps, with a node per sub-step or per step: easy to read, and a check of the fused rollout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..autograd import Tensor, ops
from ..simulator import Array
from ..simulator.returned import require_state
from .inputs import Inputs
from .run import FIRST_CHECK, Progress, make_blow_up
from .trajectory import Running, Trajectory, find_bad_value

Step = Any
"""`step(params, state, control)`: the next state."""


def run_nested(
    inputs: Inputs, step: Step, keep: Array, running: Running | None, limit: float, on_progress: Progress | None
) -> Trajectory:
    """Compute the trajectory of the fused rollout, equal to rounding, one batch member at a time. Errors: BlowUp."""
    members = []
    for b in range(inputs.members):
        states = [_start(inputs, b)]
        for t, state in enumerate(_steps(inputs, step, b, states[0]), 1):
            states.append(state)
            if t % FIRST_CHECK == 0 or t == inputs.steps:
                _check(inputs, states, limit, member=b)
                if on_progress is not None:
                    on_progress(b * inputs.steps + t, inputs.members * inputs.steps)
        members.append(states)
    kept = _stack(inputs, [[states[t] for t in keep] for states in members])
    final = _stack(inputs, [[states[-1]] for states in members])
    only = 0 if inputs.batch is None else (slice(None), 0)
    final = final.replace(**{name: getattr(final, name)[only] for name in final.names()})
    total = None
    if running is not None:
        total = running(_stack(inputs, [states[1:] for states in members]), np.arange(1, inputs.steps + 1))
    return Trajectory(kept, keep, final, inputs.steps, total)


def _start(inputs: Inputs, member: int) -> Any:
    return _take_member(inputs.state, inputs.state_shapes, member)


def _steps(inputs: Inputs, step: Step, member: int, state: Any) -> Iterator[Any]:
    """Iterate over the states of one batch member after the initial one."""
    params = _take_member(inputs.params, inputs.param_shapes, member)
    for t in range(inputs.steps):
        control = None
        if inputs.control is not None:
            batched = inputs.control.ndim > len(inputs.model.control_shape() or ()) + 1
            control = inputs.control[(member, t) if batched else t]
        state = require_state(inputs.model, step(params, state, control))
        yield state


def _check(inputs: Inputs, states: list[Any], limit: float, *, member: int) -> None:
    """Check the last state; if it is bad, search for the first bad state and raise BlowUp."""

    def bad(state: Any) -> Any:
        return find_bad_value({name: values[None, None] for name, values in state.arrays().items()}, limit)

    if bad(states[-1]) is None:
        return
    t, found = next((t, found) for t, state in enumerate(states) if (found := bad(state)) is not None)
    raise make_blow_up(inputs, found._replace(member=member), step=t, before=states[max(t - 1, 0)].arrays())


def _take_member(record: Any, shapes: Any, member: int) -> Any:
    """Take the parameters or the state of one batch member."""
    chosen: dict[str, Tensor] = {}
    for name, shape in shapes.items():
        value = getattr(record, name)
        chosen[name] = value[member] if value.ndim > len(shape) else value
    return record.replace(**chosen)


def _stack(inputs: Inputs, members: Sequence[Sequence[Any]]) -> Any:
    """Stack the states of each batch member into one State of [rows, *shape], or [B, rows, *shape] with a batch."""
    fields: dict[str, Tensor] = {}
    for name in inputs.state.names():
        rows = [ops.stack([getattr(state, name) for state in states]) for states in members]
        fields[name] = rows[0] if inputs.batch is None else ops.stack(rows)
    return inputs.state.replace(**fields)
