"""Signals of channels, from the state that they see: y = gain g(x) + offset.

g is the component itself, a distance |a - b|, an angle atan2(d_1, d_0) of d = a - b, a pixel of a camera (cameras.py),
or an energy of all bodies. Angles are compared modulo a period: y is moved by whole periods to where it is nearest to
the measured value. Vectors are those of the state, positions of places on bodies (simulator/markers.py), or what an
accelerometer measures there,

    f = R^T ((v(t + dt/2) - v(t - dt/2)) / dt - gravity)

with R the orientation of the body, and v its velocity in the frame of the room. Where velocities are relative to a
frame that a control u accelerates, such as a pivot, that of the frame is added, which each step changes by u dt.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor, ops
from simphys.simulator import Markers
from simphys.simulator.markers import Energetic, Vector

from .cameras import see_orthographic, see_pinhole
from .channels import OF_TWO, Channel, Mark
from .members import take_member
from .sensors import LEAST, Angle, DelayedPlan, DelayedSample, PinholeCamera, Sensor

Array = np.ndarray[Any, Any]


class Accumulate(Function):
    """Velocities [T + 1, A] from rest by accelerations [T, A] of all steps: v_i = dt sum_{j < i} u_j"""

    @staticmethod
    def forward(ctx: Context, u: Tensor, dt: float) -> Array:
        ctx.dt = dt
        return _accumulate(u.data, dt)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Array, None]:
        return ctx.dt * np.cumsum(adj.data[:0:-1], axis=0)[::-1], None

    @staticmethod
    def jvp(ctx: Context, du: Array, _: None) -> Array:
        return _accumulate(du, ctx.dt)


def _accumulate(u: Array, dt: float) -> Array:
    return np.concatenate([np.zeros_like(u[:1]), dt * np.cumsum(u, axis=0)])


def show(setup: Any, raw: Tensor) -> Tensor:
    """Make what the channels of a set-up show, [N, C], of the components that they need [N, R]."""
    seen, sensor = setup.observations, setup.sensor
    shown, begin = [], 0
    for place, channel in enumerate(seen.channels):
        end = begin + len(channel.needs)
        value = _see_energy(channel, setup, raw[:, begin:end]) if channel.energy else None
        if value is None:
            value = _see(channel, sensor, _list_vectors(place, setup, raw[:, begin:end]))
        value = value * sensor.channel_gain[place] + sensor.channel_offset[place]
        if channel.modulo is not None:
            turns = np.round((value.data - seen.values[:, place]) / channel.modulo)
            value = value - (channel.modulo * turns).astype(value.dtype)
        shown.append(value)
        begin = end
    return ops.stack(shown, axis=1)


def _see_energy(channel: Channel, setup: Any, raw: Tensor) -> Tensor:
    """Compute an energy [N] of all components of the state [N, R], or of that of a member."""
    model, params = setup.model, setup.params
    if channel.member is not None:
        model, params = take_member(setup, channel.member)
    state, begin = {}, 0
    for name, shape in model.state_shapes().items():
        end = begin + math.prod(shape)
        state[name] = ops.reshape(raw[:, begin:end], (raw.shape[0], *shape))
        begin = end
    markers = model.describe_markers()
    assert isinstance(markers, Energetic), "checked on loading the scene"
    return markers.energy(params, channel.field, state)


def _list_vectors(place: int, setup: Any, raw: Tensor) -> list[Vector]:
    """List the vector that channel `place` sees, and that to which it is compared; their components are [N]."""
    channel: Channel = setup.observations.channels[place]
    every = [raw[:, at] for at in range(raw.shape[1])]
    if not channel.marks:
        return [every[begin : begin + channel.dim] for begin in range(0, len(every), channel.dim)]
    markers, begin, found = setup.model.describe_markers(), 0, []
    for mark in channel.marks:
        values = every[begin : begin + len(mark.needs)]
        if channel.field == "acceleration":
            found.append(_accelerate(markers, setup, mark, values, _sample_frame(markers, setup, place)))
        else:
            found.append(_locate(markers, setup, mark, values))
        begin += len(mark.needs)
    return found


def _locate(markers: Markers, setup: Any, mark: Mark, values: Vector) -> Vector:
    """Compute the position of a marker."""
    return markers.position(setup.params, mark.node, mark.place, _by_shift(mark, values)[0.0])


def _accelerate(markers: Markers, setup: Any, mark: Mark, values: Vector, frame: dict[float, Vector]) -> Vector:
    """Compute what an accelerometer measures: its acceleration less gravity, along the axes of its body.

    frame: velocities of the frame half a step later and earlier.
    """
    state = _by_shift(mark, values)

    def velocity(shift: float) -> Vector:
        own = markers.velocity(setup.params, mark.node, mark.place, state[shift])
        return [each + of_frame for each, of_frame in zip(own, frame[shift], strict=True)]

    parts = zip(velocity(0.5), velocity(-0.5), markers.gravity(setup.params), strict=True)
    return markers.turn_into(state[0.0], [(a - b) * (1 / setup.dt) - g for a, b, g in parts])


def _sample_frame(markers: Markers, setup: Any, place: int) -> dict[float, Vector]:
    """Sample the velocity of the frame half a step later and earlier than channel `place`, of each component [N]."""
    shifts, axes = (0.5, -0.5), range(markers.dim)
    if not markers.in_moving_frame or setup.controls is None:
        return {shift: [0.0] * markers.dim for shift in shifts}
    velocity = Accumulate.apply(setup.controls.signal(setup.steps), setup.dt)
    components = tuple([(0, (axis,)) for _ in shifts for axis in axes])
    of_channel, shift = np.full(len(components), place), np.repeat(shifts, markers.dim)
    plan = DelayedPlan(setup.observations.times, setup.dt, components, of_channel, shift)
    found = DelayedSample.apply(plan, setup.sensor.channel_delay, velocity)
    every = [found[:, at] for at in range(len(components))]
    return {shift: every[k * markers.dim : (k + 1) * markers.dim] for k, shift in enumerate(shifts)}


def _by_shift(mark: Mark, values: Vector) -> dict[float, dict[str, Vector]]:
    """Sort the components that a marker needs by time, then by field."""
    found: dict[float, dict[str, Vector]] = {}
    for need, value in zip(mark.needs, values, strict=True):
        found.setdefault(need.shift, {}).setdefault(need.field, []).append(value)
    return found


def _see(channel: Channel, sensor: Sensor, vectors: list[Vector]) -> Tensor:
    """Compute what one channel sees [N], before gain and offset."""
    own, *others = vectors
    if channel.kind == "component":
        seen: Tensor = own[channel.axis]
        return seen
    if channel.kind == "pixel":
        see = see_pinhole if isinstance(sensor, PinholeCamera) else see_orthographic
        return see(sensor, own, channel.axis)
    other = others[0] if channel.point is None else channel.point
    if channel.kind in OF_TWO:
        one, two = own[channel.axis], other[channel.axis]
        pair: Tensor = one - two if channel.kind == "difference" else one + two
        return pair
    apart = ops.stack([a - b for a, b in zip(own, other, strict=True)], axis=1)
    if channel.kind == "angle":
        return Angle.apply(apart[:, 0], apart[:, 1])
    return ops.sqrt((apart * apart).sum(axis=1) + LEAST)
