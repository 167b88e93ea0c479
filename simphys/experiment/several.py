"""Several recordings of one simulator as one set-up, and their motions: as a batch where shapes agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from simphys.autograd import Context, Function, Tensor, ops
from simphys.autograd.errors import InputError
from simphys.rollout import Trajectory

from .setup import Setup

Array = np.ndarray[Any, Any]
S = TypeVar("S", bound=Setup)

LEAST_USE = 0.5
"""Part of the steps of a batch that must belong to the horizons of its members; else they run one after another."""

Trajectories = tuple[Trajectory, ...]
"""The trajectory of each experiment, in their order."""


def join_experiments(config: Any, each: Sequence[S]) -> S:
    """Make a set-up of several experiments, which share one model, and all parameters that are the same.

    It is the first of them, with its state, and without a measurement. Errors: InputError for experiments that are
    themselves batches.
    """
    first = each[0]
    if first.members is not None:
        remedy = "Give each experiment a scene of one member."
        raise InputError("experiments", "must have one member each", f"{first.members} members", remedy)
    joined = []
    for place, one in enumerate(each):
        own = {}
        for part in ("params", "state", "design"):
            record, shared = getattr(one, part), getattr(first, part)
            if record is not None and shared is not None and one is not first:
                own[part] = record.replace(**_equal_fields(record, shared))
        joined.append(replace(one, model=first.model, name=config.experiments[place].name, **own))
    return replace(joined[0], config=config, observations=None, experiments=tuple(joined), name="")


def _equal_fields(record: Any, other: Any) -> dict[str, Tensor]:
    """Find the fields that have the same values in another record, as the Tensors of that one."""
    pairs = [(name, getattr(record, name).data, getattr(other, name)) for name in record.names()]
    return {name: tensor for name, values, tensor in pairs if np.array_equal(values, tensor.data)}


def map_measurements(setup: S, change: Callable[[Any], Any]) -> S:
    """Change the measurement of a set-up, or those of all its experiments."""
    parts = tuple([map_measurements(part, change) for part in setup.experiments])
    seen = None if setup.observations is None else change(setup.observations)
    return replace(setup, observations=seen, experiments=parts)


def make_batch(experiments: Sequence[Setup]) -> dict[str, Any] | None:
    """Make parameters, state, steps and control of a batch of experiments; None if they cannot run as one.

    They cannot within a memory limit, where some are driven and others not, or if horizons differ too much.
    """
    steps = [each.steps for each in experiments]
    driven = [each.controls is not None for each in experiments]
    if experiments[0].config.runtime.limited or len(set(driven)) > 1:
        return None
    if sum(steps) < LEAST_USE * len(steps) * max(steps):
        return None
    control = None
    if all(driven):
        signals = [each.controls.signal(max(steps)) for each in experiments if each.controls is not None]
        if len({signal.shape for signal in signals}) > 1:
            return None
        control = ops.stack(signals)
    params = _stack_fields([each.params for each in experiments])
    state = experiments[0].state
    every = {name: [getattr(each.state, name) for each in experiments] for name in state.names()}
    return {
        "params": params,
        "state": state.replace(**{name: ops.stack(tensors) for name, tensors in every.items()}),
        "steps": max(steps),
        "control": control,
    }


def _stack_fields(records: Sequence[Any]) -> Any:
    """Stack the fields in which records differ along a batch axis; Tensors that all share stay."""
    own = {}
    for name in records[0].names():
        tensors = [getattr(record, name) for record in records]
        if any(each is not tensors[0] for each in tensors):
            own[name] = ops.stack(tensors)
    return records[0].replace(**own)


def split_batch(trajectory: Trajectory, experiments: Sequence[Setup]) -> Trajectories:
    """Split the trajectory of a batch into those of its members, each as far as its own horizon."""
    names = trajectory.states.names()
    rows = [unbind(getattr(trajectory.states, name)) for name in names]
    ends = [unbind(getattr(trajectory.final, name)) for name in names]
    made = []
    for place, each in enumerate(experiments):
        states = trajectory.states.replace(**{name: row[place] for name, row in zip(names, rows, strict=True)})
        last = {name: end[place] for name, end in zip(names, ends, strict=True)}
        steps = trajectory.steps
        if each.steps < trajectory.horizon:
            count = int(np.searchsorted(steps, each.steps, side="right"))
            steps = steps[:count]
            kept = {name: tensor for name in names if len((tensor := getattr(states, name)).data)}
            states = states.replace(**{name: tensor[:count] for name, tensor in kept.items()})
            last |= {name: tensor[count - 1] for name, tensor in kept.items()}
        final = trajectory.final.replace(**last)
        made.append(replace(trajectory, states=states, steps=steps, final=final, horizon=each.steps))
    return tuple(made)


class Unbind(Function):
    """The parts of an array along its first axis, as Tensors of their own"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> tuple[Array, ...]:
        return tuple([np.array(part) for part in x.data])

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> Array:
        return np.stack([each.data for each in adjoints])

    @staticmethod
    def jvp(ctx: Context, dx: Array) -> tuple[Array, ...]:
        return tuple([np.array(part) for part in dx])


def unbind(x: Tensor) -> tuple[Tensor, ...]:
    """Split a Tensor along its first axis; the backward of all parts takes the time of one."""
    parts: tuple[Tensor, ...] = Unbind.apply(x)
    return parts
