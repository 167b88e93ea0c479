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

from simphys.autograd import Context, Function, Tensor
from simphys.autograd.errors import InputError

Array = np.ndarray[Any, Any]
Component = tuple[int, tuple[int, ...]]
"""Component of a channel: the number of a field, and an index in it."""


@dataclass(frozen=True)
class SamplePlan:
    """Rows of a trajectory around each time, and the component of each channel."""

    before: Array
    """Row of the step before each time, [N]."""
    after: Array
    """Row of the step after it, [N]."""
    weight: Array
    """Position of each time in its interval, 0..1, [N]."""
    components: tuple[Component, ...]


def plan(
    times: Array, components: Sequence[Component], *, dt: float, steps: int, kept: Array | None = None
) -> SamplePlan:
    """Plan the sampling of a rollout of `steps` steps of `dt` [s] at `times` [s].

    `kept` are the steps that the rows of the trajectory are, ascending, with those of `steps_around` among them; all
    by default. Errors: InputError for a time beyond the last step.
    """
    before, weight = _intervals(times, dt=dt, steps=steps)
    if kept is None:
        return SamplePlan(before, before + 1, weight, tuple(components))
    rows = [_find_rows(kept, step) for step in (before, before + 1)]
    return SamplePlan(rows[0], rows[1], weight, tuple(components))


def steps_around(times: Array, *, dt: float, steps: int) -> Array:
    """The steps whose states are needed to sample at `times`, ascending. Errors: those of `plan`."""
    before, _ = _intervals(times, dt=dt, steps=steps)
    return np.union1d(before, before + 1)


def _find_rows(kept: Array, steps: Array) -> Array:
    """Find the row of each step in a trajectory of the steps `kept`. Errors: InputError for a step without a row."""
    rows = np.searchsorted(kept, steps)
    if not np.array_equal(kept[np.minimum(rows, len(kept) - 1)], steps):
        raise InputError(
            "trajectory",
            "must hold the states around all times of the measurement",
            f"{len(kept)} states, from step {kept[0]} to {kept[-1]}",
            "Simulate the whole horizon of the scene, and keep all steps.",
        )
    return rows


def _intervals(times: Array, *, dt: float, steps: int) -> tuple[Array, Array]:
    """The step before each time, and the position of the time in the interval that begins there."""
    position = times / dt
    if len(times) and position[-1] > steps * (1 + 1e-9):  # the rounding of stamps that the horizon forgives, too
        raise InputError(
            "time",
            "the simulation must reach the last observation",
            f"{steps} steps of {dt:g} for an observation at {times[-1]:g}",
            "Raise time.duration, or leave it out.",
        )
    before = np.minimum(position.astype(np.int64), steps - 1)
    return before, position - before


def take_component(states: Array, index: tuple[int, ...]) -> Array:
    """The view of one component of a field along time [T, ...], [T]."""
    place: Any = (slice(None), *index)
    return states[place]


class Sample(Function):
    """Values [N, C] of the planned components at the planned times, from fields along time [rows, ...]."""

    @staticmethod
    def forward(ctx: Context, plan: SamplePlan, *fields: Tensor) -> Array:
        ctx.plan, ctx.like = plan, [(field.shape, field.dtype) for field in fields]
        return interpolate(plan, [take_component(fields[which].data, index) for which, index in plan.components])

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        plan: SamplePlan = ctx.plan
        adj_fields: list[Array | None] = [None] * len(ctx.like)
        for column, (which, index) in enumerate(plan.components):
            target = adj_fields[which]
            if target is None:
                target = adj_fields[which] = np.zeros(*ctx.like[which])
            # Several samples may lie in one interval.
            series = take_component(target, index)
            np.add.at(series, plan.before, (1 - plan.weight) * adj.data[:, column])
            np.add.at(series, plan.after, plan.weight * adj.data[:, column])
        return None, *adj_fields

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Array) -> Array:
        return interpolate(ctx.plan, [take_component(tangents[which], index) for which, index in ctx.plan.components])


def interpolate(plan: SamplePlan, series: Sequence[Array]) -> Array:
    """Values [N, C] at the planned times, from the component of each channel along time, [rows]."""
    values = np.empty((len(plan.weight), len(series)), series[0].dtype)
    for column, each in enumerate(series):
        values[:, column] = (1 - plan.weight) * each[plan.before] + plan.weight * each[plan.after]
    return values


@dataclass(frozen=True)
class FieldPlan:
    """Rows of a trajectory around each time of a measured field."""

    before: Array
    """Row of the step before each time, [N], ascending."""
    after: Array
    """Row of the step after it, [N]; the same row where the time is that of a step."""
    weight: Array
    """Position of each time in its interval, 0 at the step before it, [N]."""
    axis: int
    """Axis of the rows in the field along time."""


def field_plan(times: Array, axis: int, *, dt: float, steps: int, kept: Array | None = None) -> FieldPlan:
    """Plan the sampling of a whole field at `times` [s]; arguments and errors are those of `plan`."""
    before, after, weight = _around(times, dt=dt, steps=steps)
    if kept is not None:
        before, after = _find_rows(kept, before), _find_rows(kept, after)
    return FieldPlan(before, after, weight, axis)


def steps_of_field(times: Array, *, dt: float, steps: int) -> Array:
    """The steps whose states a `field_plan` needs, ascending; of times at steps only these. Errors: those of `plan`."""
    before, after, _ = _around(times, dt=dt, steps=steps)
    return np.union1d(before, after)


def _around(times: Array, *, dt: float, steps: int) -> tuple[Array, Array, Array]:
    """The steps before and after each time, and where in between it is; what rounding puts beside a step is at it."""
    before, weight = _intervals(times, dt=dt, steps=steps)
    at_next = weight > 1 - 1e-9
    before = before + at_next
    weight = np.where(at_next | (weight < 1e-9), 0.0, weight)
    return before, before + (weight > 0), weight


class SampleField(Function):
    """A field at the planned times, from the field along time: rows become samples, other axes stay."""

    @staticmethod
    def forward(ctx: Context, plan: FieldPlan, field: Tensor) -> Array:
        ctx.plan, ctx.like = plan, (field.shape, field.dtype)
        return field_at_times(plan, field.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        plan: FieldPlan = ctx.plan
        adj_field = np.zeros(*ctx.like)
        weight = _along_axis(plan.weight, plan.axis, adj.data)
        _add_rows(adj_field, plan.before, (1 - weight) * adj.data, plan.axis)
        if plan.weight.any():
            _add_rows(adj_field, plan.after, weight * adj.data, plan.axis)
        return None, adj_field

    @staticmethod
    def jvp(ctx: Context, _: None, dfield: Array) -> Array:
        return field_at_times(ctx.plan, dfield)


def field_at_times(plan: FieldPlan, along: Array) -> Array:
    """The field along time as it is at the planned times."""
    values = np.take(along, plan.before, plan.axis)
    if not plan.weight.any():
        return values
    weight = _along_axis(plan.weight, plan.axis, along)
    return (1 - weight) * values + weight * np.take(along, plan.after, plan.axis)


def _along_axis(values: Array, axis: int, like: Array) -> Array:
    """Numbers [N] that go with an axis of an array, in its precision."""
    shape = [1] * like.ndim
    shape[axis] = len(values)
    return values.astype(like.dtype).reshape(shape)


def _add_rows(to: Array, rows: Array, values: Array, axis: int) -> None:
    """Add to rows of an array along an axis; several values in succession may belong to one row."""
    if not len(rows):
        return
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    place: Any = (slice(None),) * axis + (rows[first],)
    to[place] += np.add.reduceat(values, first, axis)
