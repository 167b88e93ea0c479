"""The sensor: what a channel shows of the state that it sees.

    y = gain g(x(t - delay)) + offset

with g what it sees of a state (shown.py).

A delayed channel is interpolated linearly between steps; for one that is early the motion is longer (`count_steps`):

    x(t - delay) = (1 - w) x_i + w x_{i+1},   w = (t - delay)/dt - i,   dx/ddelay = -(x_{i+1} - x_i) / dt

Before the start, w < 0, it is extrapolated by the slope of second order there: what starts at rest has rested.

    x(t - delay) = (1 - w) x_0 + w x_1 - w/2 (x_0 - 2 x_1 + x_2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor, tensor
from simphys.optimize import FailedTrial
from simphys.scenefile import ObservationsSection, sensor_arrays
from simphys.scenefile.section import DERIVED
from simphys.simulator import Record
from simphys.simulator.markers import ENERGIES

from .control import Recorded
from .observe import Observations
from .sampling import Component, take_component

Array = np.ndarray[Any, Any]

BEND = np.array([1.0, -2.0, 1.0])
"""Weights of the second difference."""
MOST_AHEAD = 1.0
"""Time that a channel may look ahead, in parts of the horizon."""
LEAST = 1e-300
"""Least square of a distance: its root has a derivative, of 0."""


@dataclass(frozen=True)
class Sensor(Record):
    """Numbers of the channels that may be unknown; C channels."""

    channel_gain: Tensor
    """Factor on what is seen [C], in the channel's unit over that of the state."""
    channel_offset: Tensor
    """Value that a channel shows of nothing [C], in its unit."""
    channel_delay: Tensor
    """Time [C] by which a channel is late [s]."""


@dataclass(frozen=True)
class Camera(Sensor):
    """The same with a camera."""

    camera_rotation: Tensor
    """Angle in the plane [rad], or angles about x, y and z [3]."""
    camera_origin: Tensor
    """Pixel [2] of the origin of space; of a pinhole camera that straight ahead."""


@dataclass(frozen=True)
class OrthographicCamera(Camera):
    """The same with an orthographic camera."""

    camera_scale: Tensor
    """Pixels per unit of length."""


@dataclass(frozen=True)
class PinholeCamera(Camera):
    """The same with a pinhole camera."""

    camera_focal: Tensor
    """Focal length [pixels]."""
    camera_position: Tensor
    """Position [3] of the pinhole, in the unit of positions."""


def build_sensor(section: ObservationsSection | None) -> Sensor | None:
    """Build the numbers of a section; None for a measured field, or without a measurement."""
    if section is None or section.channels is None:
        return None
    arrays = {name: tensor(values) for name, values in sensor_arrays(section).items()}
    for kind, name in ((OrthographicCamera, "camera_scale"), (PinholeCamera, "camera_focal")):
        if name in arrays:
            return kind(**arrays)
    return Sensor(**arrays)


def is_delayed(config: Any) -> bool:
    """Return True if a channel is late, or may turn out to be, or looks at times around that of its sample."""
    section = config.observations
    if section is None or section.channels is None:
        return False
    named = [*config.unknowns.values(), *config.values.values()]
    around = any(each.delay or each.field == "acceleration" for each in section.channels)
    return around or any(each.parameter == "channel_delay" for each in named)


def count_steps(setup: Any, sensor: Sensor | None) -> int:
    """Count the steps of a motion up to what its channels see: one that is early, with a delay below 0, looks ahead.

    Where loss terms look at the end of the horizon, the motion stays as it is. Errors: optimize.FailedTrial for a
    channel that looks ahead by more than the whole horizon.
    """
    seen, steps = setup.observations, int(setup.steps)
    of_motion = any(term.kind != "regularization" for term in setup.config.loss.terms)
    if not isinstance(seen, Observations) or sensor is None or of_motion or not is_delayed(setup.config):
        return steps
    ahead = -min(0.0, float(sensor.channel_delay.data.min()))
    if not ahead <= MOST_AHEAD * steps * setup.dt:
        raise FailedTrial(f"a channel_delay of {-ahead:g} looks ahead beyond the motion")
    needed = math.ceil((float(seen.times[-1]) + ahead) / setup.dt - 1e-9) if len(seen.times) else 0
    if needed > steps and isinstance(setup.controls, Recorded) and needed * setup.dt > setup.controls.end:
        raise FailedTrial(f"a channel_delay of {-ahead:g} looks ahead beyond the measured input")
    return max(steps, needed)


def is_plain(config: Any) -> bool:
    """Return True if all channels show components of the state as they are."""
    section = config.observations
    if section is None or section.channels is None:
        return True
    named = [*config.unknowns.values(), *config.values.values()]
    plain = [
        each.kind == "component" and each.field not in (*DERIVED, *ENERGIES) and each.gain == 1 and not each.offset
        for each in section.channels
    ]
    return (
        all(plain)
        and not any(each.modulo for each in section.channels)
        and not is_delayed(config)
        and not any(each.parameter in ("channel_gain", "channel_offset") for each in named)
    )


def shows_component(setup: Any, place: int) -> bool:
    """Return True if a channel shows a component of the state as it is, with the present values."""
    sensor, channel = setup.sensor, setup.observations.channels[place]
    numbers = [getattr(sensor, f"channel_{name}").data[place] for name in ("gain", "offset", "delay")]
    is_component = channel.kind == "component" and not channel.is_derived
    return bool(is_component and channel.modulo is None and numbers == [1.0, 0.0, 0.0])


def list_components(seen: Observations) -> list[tuple[str, tuple[int, ...]]]:
    """List the field and the index of each component that a channel needs, channel by channel."""
    return [(need.field, need.index) for channel in seen.channels for need in channel.needs]


@dataclass(frozen=True)
class DelayedPlan:
    """Uniform steps around times that depend on delays."""

    times: Array
    dt: float
    components: tuple[Component, ...]
    """Number of a field, and index in it, of each series."""
    channels: Array
    """Channel of each series."""
    shift: Array = field(default_factory=lambda: np.zeros(1))
    """Time at which each series is needed, counted from that of the sample [time steps]."""

    def around(self, delay: Array, rows: int) -> tuple[Array, Array]:
        """Step before each time and position in its interval, for each series, [R, N]."""
        position = (self.times - delay[self.channels][:, None]) / self.dt + self.shift[:, None]
        before = np.clip(np.floor(position), 0, rows - 2).astype(np.int64)
        return before, position - before


class DelayedSample(Function):
    """Values [N, R] of series of fields along time [rows, ...], row i at the time i dt, at times that are delayed"""

    @staticmethod
    def forward(ctx: Context, plan: DelayedPlan, delay: Tensor, *fields: Tensor) -> Array:
        ctx.plan, ctx.like = plan, [(field.shape, field.dtype) for field in fields]
        ctx.channels = delay.size
        series = [take_component(fields[which].data, index) for which, index in plan.components]
        ctx.before, ctx.part = plan.around(delay.data, len(series[0]))  # a field that no channel sees has one row
        ctx.slope = _slopes(ctx.before, ctx.part, series)
        return _between(ctx.before, ctx.part, series)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        plan: DelayedPlan = ctx.plan
        adj_fields: list[Array | None] = [None] * len(ctx.like)
        adj_delay = np.zeros(ctx.channels, adj.dtype)
        for place, (which, index) in enumerate(plan.components):
            target = adj_fields[which]
            if target is None:
                target = adj_fields[which] = np.zeros(*ctx.like[which])
            along, adj_place = take_component(target, index), adj.data[:, place]
            np.add.at(along, ctx.before[place], (1 - ctx.part[place]) * adj_place)
            np.add.at(along, ctx.before[place] + 1, ctx.part[place] * adj_place)
            if _can_bend(along):
                along[: len(BEND)] += np.vdot(_bend_part(ctx.part[place]), adj_place) * BEND
            adj_delay[plan.channels[place]] -= float(ctx.slope[:, place] @ adj_place) / plan.dt
        return None, adj_delay, *adj_fields

    @staticmethod
    def jvp(ctx: Context, _: None, ddelay: Array, *tangents: Array) -> Array:
        plan: DelayedPlan = ctx.plan
        series = [take_component(tangents[which], index) for which, index in plan.components]
        return _between(ctx.before, ctx.part, series) - ctx.slope * ddelay[plan.channels] / plan.dt


def _between(before: Array, part: Array, series: Sequence[Array]) -> Array:
    rows = zip(series, before, part, strict=True)
    return np.stack([(1 - w) * each[i] + w * each[i + 1] + _bend_part(w) * _bend(each) for each, i, w in rows], axis=1)


def _slopes(before: Array, part: Array, series: Sequence[Array]) -> Array:
    rows = zip(series, before, part, strict=True)
    return np.stack([each[i + 1] - each[i] - 0.5 * (w < 0) * _bend(each) for each, i, w in rows], axis=1)


def _bend(series: Array) -> float:
    """Return the second difference at the start; 0 of a motion of one step."""
    return float(BEND @ series[: len(BEND)]) if _can_bend(series) else 0.0


def _can_bend(series: Array) -> bool:
    return len(series) >= len(BEND)


def _bend_part(part: Array) -> Array:
    """Return the factor of the second difference at these positions in the first interval, below 0 before the start."""
    return np.asarray(-0.5 * np.minimum(part, 0.0))


class Angle(Function):
    """The angle atan2(y, x) of vectors in the plane, [N] each: d(angle) = (x dy - y dx) / (x^2 + y^2)"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Array:
        ctx.save_for_backward(x, y)
        return np.arctan2(y.data, x.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Array, Array]:
        x, y = (each.data for each in ctx.saved_tensors)
        share = adj.data / np.maximum(x * x + y * y, LEAST)
        return -y * share, x * share

    @staticmethod
    def jvp(ctx: Context, dx: Array, dy: Array) -> Array:
        x, y = (each.data for each in ctx.saved_tensors)
        return np.asarray((x * dy - y * dx) / np.maximum(x * x + y * y, LEAST))


def sample_delayed(
    seen: Observations, components: Sequence[Component], delay: Tensor, dt: float, fields: Sequence[Tensor]
) -> Tensor:
    """Interpolate what all channels need at the measured times less their delays, [N, R]; fields have all steps."""
    channels = np.repeat(np.arange(len(seen.channels)), [len(each.needs) for each in seen.channels])
    shift = np.array([need.shift for each in seen.channels for need in each.needs])
    found: Tensor = DelayedSample.apply(DelayedPlan(seen.times, dt, tuple(components), channels, shift), delay, *fields)
    return found
