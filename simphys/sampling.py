"""From a trajectory at uniform steps to predictions at the times of a measurement, and back.

Linear interpolation between the steps i and i + 1 around a time t, with w = t/dt - i:

    y(t) = (1 - w) x_i + w x_{i+1},        adj_x_i += (1 - w) adj_y,   adj_x_{i+1} += w adj_y

It errs by at most dt^2/8 times the largest acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .autograd import Context, Function, Tensor
from .autograd.errors import InputError

Array = np.ndarray[Any, Any]
Component = tuple[int, tuple[int, ...]]
"""What a channel sees: the number of a field, and an index in it."""


@dataclass(frozen=True)
class SamplePlan:
    """Which step interval each time falls in, and which component of which field each channel sees."""

    index: Array
    """Step before each time, [N]."""
    weight: Array
    """Position of each time in its interval, 0..1, [N]."""
    components: tuple[Component, ...]


def plan(times: Array, components: Sequence[Component], *, dt: float, steps: int) -> SamplePlan:
    """How to sample a rollout of `steps` steps of `dt` [s] at `times` [s].

    Errors: InputError for a time beyond the last step.
    """
    position = times / dt
    if len(times) and position[-1] > steps * (1 + 1e-9):  # the rounding of stamps that the horizon forgives, too
        raise InputError(
            "time",
            "the simulation must reach the last observation",
            f"{steps} steps of {dt:g} s for an observation at {times[-1]:g} s",
            "Raise time.duration, or leave it out.",
        )
    index = np.minimum(position.astype(np.int64), steps - 1)
    return SamplePlan(index, position - index, tuple(components))


def along(states: Array, index: tuple[int, ...]) -> Array:
    """The view of one component of a field along time [T, ...], [T]."""
    place: Any = (slice(None), *index)
    return states[place]


class Sample(Function):
    """Values [N, C] of the planned components at the planned times, from fields [steps + 1, ...]."""

    @staticmethod
    def forward(ctx: Context, plan: SamplePlan, *fields: Tensor) -> Array:
        ctx.plan, ctx.like = plan, [(field.shape, field.dtype) for field in fields]
        return _interpolate(plan, [field.data for field in fields])

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        plan: SamplePlan = ctx.plan
        adj_fields: list[Array | None] = [None] * len(ctx.like)
        for column, (which, index) in enumerate(plan.components):
            target = adj_fields[which]
            if target is None:
                target = adj_fields[which] = np.zeros(*ctx.like[which])
            # Several samples may lie in one interval.
            series = along(target, index)
            np.add.at(series, plan.index, (1 - plan.weight) * adj.data[:, column])
            np.add.at(series, plan.index + 1, plan.weight * adj.data[:, column])
        return None, *adj_fields

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Array | None) -> Array:
        return _interpolate(
            ctx.plan, [np.zeros(*like) if d is None else d for d, like in zip(tangents, ctx.like, strict=True)]
        )


def _interpolate(plan: SamplePlan, fields: Sequence[Array]) -> Array:
    values = np.empty((len(plan.index), len(plan.components)), fields[0].dtype)
    for column, (which, index) in enumerate(plan.components):
        series = along(fields[which], index)
        values[:, column] = (1 - plan.weight) * series[plan.index] + plan.weight * series[plan.index + 1]
    return values
