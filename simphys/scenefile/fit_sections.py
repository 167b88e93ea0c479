"""The sections of a scene file about a fit: unknowns, optimizer, observations."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from simphys.files.selection import Part
from simphys.scenefile.section import Body, Count, Index, NonNegative, Positive, Range, Section

Numbers = list[float | list[float]]
"""A vector, or the rows of a matrix."""

Column = Index | str
"""A column of a measurement: its number from 0, or its name."""

Row = Annotated[Index | str, WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]})]
"""A row of a field by its number or, where rows have names, by its name (entry_names.py)."""


def _infinity(value: object) -> object:
    """Convert an infinity from text: JSON has none."""
    return float(value) if value in ("inf", "-inf") else value


def _infinity_as_text(value: float) -> float | str:
    return str(value) if math.isinf(value) else value


Bound = Annotated[
    float,
    Field(allow_inf_nan=True),
    BeforeValidator(_infinity),
    PlainSerializer(_infinity_as_text, when_used="json"),
]


def _known_tie(value: object) -> object:
    if isinstance(value, bool) or value == "rows":
        return value
    raise PydanticCustomError("tied", "true, false or 'rows'")


Tied = Annotated[bool | Literal["rows"], BeforeValidator(_known_tie)]


def _known_or_unknown(value: object) -> object:
    if isinstance(value, str) and value != "unknown":
        raise PydanticCustomError("noise", 'a number, or "unknown"')
    if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
        raise PydanticCustomError("noise", "greater than 0")
    return value


Noise = Annotated[Positive | Literal["unknown"], BeforeValidator(_known_or_unknown)]


class BoxSection(Section):
    """The cells of a grid from the corner `first` to the corner `last`, both included."""

    first: list[Index]
    last: list[Index]


class UnknownSection(Section):
    """A parameter field, initial state or control to identify, or a part of one.

    `entries` are indices along the first axis, or full indices such as [node, axis], or a range of rows from first to
    last, or a box of a grid from the cell `first` to the cell `last`, both included; all entries by default. Bodies,
    nodes, joints and springs that have names, and columns of a recorded control, may be named: ["ball"], [["ball", 0]].
    tied: true makes all entries one unknown; "rows" makes all rows alike, such as one velocity for all bodies.
    `start` [unit of the parameter] defaults to the scene's value. It may be a file (.npy or text) of the whole field.
    truth [unit of the parameter]: the known value, likewise, to which results are compared. `bounds` [unit of the
    parameter] hold for each entry. `scale` [unit of the parameter]: the search steps in units of it; by default the
    size of the start.
    experiments: "shared" is one unknown for all [[experiments]], "each" one for each of them.
    smooth [cells]: what is sought is smoothed over the grid by a Gaussian of this standard deviation before it is
    added to the start, so that the search sees smooth changes only; bounds hold for what is smoothed.
    """

    parameter: str
    entries: list[Row | list[Row]] | Range | BoxSection | None = None
    tied: Tied = False
    start: float | Numbers | str | None = None
    truth: float | Numbers | str | None = None
    bounds: Annotated[list[Bound], Field(min_length=2, max_length=2)] = [-math.inf, math.inf]
    scale: Positive | None = None
    transform: Literal["linear", "log"] = "linear"
    smooth: Positive | None = None
    unit: str = ""
    experiments: Literal["shared", "each"] = "shared"


class ValueSection(Section):
    """A parameter field, initial state or control that takes another value than the sections of the simulator say, or
    a part of one: fits write what they found so.

    `entries` and `tied` are as those of an unknown; so is `value` [unit of the parameter], a number, numbers, or a file
    of them.
    """

    parameter: str
    entries: list[Row | list[Row]] | Range | BoxSection | None = None
    tied: Tied = False
    value: float | Numbers | str

    def as_unknown(self) -> UnknownSection:
        """The unknown that would start here."""
        return UnknownSection(parameter=self.parameter, entries=self.entries, tied=self.tied, start=self.value)


def _in_pairs(samples: int) -> int:
    if samples < 4 or samples % 2:
        raise PydanticCustomError("samples", "an even number, 4 or more")
    return samples


class SmoothingSection(Section):
    """The loss averaged over Gaussian perturbations of the unknowns, for one that jumps or is chaotic.

    radius [1]: their standard deviation in units of each unknown's scale. `samples` evaluations make an estimate.
    accuracy [1]: of the gradient, in multiples of the confidence bound of its zeroth-order estimate; 1 takes that
    alone.
    """

    kind: Literal["randomized"] = "randomized"
    radius: Positive
    samples: Annotated[int, AfterValidator(_in_pairs)] = 32
    accuracy: Annotated[float, Field(ge=1)] = 2.0


class OptimizerSection(Section):
    """The method, its iterations (per stage), the loss's smoothing, if any, and how it comes to the whole horizon.

    horizon: "full" at once; "growing" as far as each optimum predicts; "shooting" begins with segments that have starts
    of their own, and closes the gaps between them.
    learning_rate [1]: the size of a step, in units of each unknown's scale. tolerance [1]: of the loss's relative gain,
    and of the gradient relative to that of the start.
    """

    method: Literal["least_squares", "lbfgs", "adam", "gradient_descent"] = "least_squares"
    iterations: Count = 50
    learning_rate: Positive = 0.1
    tolerance: NonNegative = 1e-10
    horizon: Literal["full", "growing", "shooting"] = "full"
    smoothing: SmoothingSection | None = None


class ChannelSection(Section):
    """One measured column and the state component that it sees; sigma is its noise in `unit`.

    sigma [unit of the column]: the standard deviation of one sample, 1 if it is not stated, or "unknown": then fits
    estimate it from their residuals. Standard errors are scaled by the residuals; sigma weighs channels against each
    other, and judges whether the misfit is noise. relative [1]: noise that grows with the value: its variance is
    sigma^2 + (relative * value)^2.

    `node` is a node's index, or the name that the scene gives it, or the indices of a point of a grid; `axis` counts
    where a field has components there.
    kind: what is seen of a node: a "component"; its "difference" from that of the node `to`, or the "sum" of both;
    the "distance" to the node `to` or to a `point` [m], by default the origin (of a velocity: the speed); the "angle"
    of that way in the plane [rad]; or a "pixel" of observations.camera, of axis 0 or 1. Besides fields of the
    state, field may be a "marker", the position of a `place` on a body or link [m], in its frame, or its
    "acceleration" less gravity, which is what an accelerometer mounted there measures, along the body's axes; or the
    "kinetic_energy", the "potential_energy" or the "energy" of all bodies together [J], which has no node; in a scene
    of several members it is that of the member `node`. The column shows gain [unit of the column / unit of the field]
    times that, plus offset [unit of the column], and is late by delay [s]; these may be unknown, as channel_gain,
    channel_offset and channel_delay. modulo [unit of the column]: the period of an angle; "angle" has one anyway.
    correlation_time [s] of the noise, which then forgets exponentially; without it, noise is independent. "unknown":
    fits estimate it from their residuals.
    """

    column: Column
    field: str
    node: Body | list[Index] = []
    axis: Index = 0
    place: list[float] | None = None
    kind: Literal["component", "difference", "sum", "distance", "angle", "pixel"] = "component"
    to: Body | None = None
    point: list[float] | None = None
    gain: float = 1.0
    offset: float = 0.0
    delay: float = 0.0
    modulo: Positive | None = None
    unit: str = ""
    sigma: Noise | None = None
    relative: NonNegative = 0.0
    correlation_time: Noise | None = None
    weights: Column | None = None


class CameraSection(Section):
    """A camera: what it sees at a position, in pixels. All of its numbers may be unknown, as camera_scale and so on.

    orthographic: pixel = scale * (turned position) + origin, with scale [px/m]; origin [px]: the pixel of the origin of
    space. pinhole: pixel = focal * (x / z, y / z) + origin, with (x, y, z) the turned vector from the camera's own
    `position` [m], and z > 0 before the camera; focal [px]; origin: the pixel straight ahead.
    rotation [rad]: an angle in the plane, or three in space, about x, then y, then z. A pinhole camera is always in
    space; what moves in the plane has z = 0.
    """

    kind: Literal["orthographic", "pinhole"] = "orthographic"
    scale: Positive | None = None
    focal: Positive | None = None
    rotation: float | list[float] | None = None
    origin: Annotated[list[float], Field(min_length=2, max_length=2)] = [0.0, 0.0]
    position: Annotated[list[float], Field(min_length=3, max_length=3)] | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """Build the numbers that may be unknown."""
        is_pinhole = self.kind == "pinhole"
        rotation = self.rotation if self.rotation is not None else [0.0] * 3 if is_pinhole else 0.0
        found: dict[str, object] = {"rotation": rotation, "origin": self.origin}
        if is_pinhole:
            found |= {"focal": self.focal, "position": self.position}
        else:
            found["scale"] = 1.0 if self.scale is None else self.scale
        return {f"camera_{name}": np.array(values, float) for name, values in found.items()}


class ValidationSection(Section):
    """Samples that the fit does not see, to test its prediction: the last `part` [1] of the recording ("time"), or as
    many in `blocks` spread over it ("blocks"), or all of one of several [[experiments]] ("recording")."""

    kind: Literal["time", "blocks", "recording"] = "time"
    part: Annotated[float, Field(gt=0, lt=1)] = 0.25
    blocks: Count = 5


class ObservationsSection(Section):
    """A measurement: its file, and either its time column [s], 0 by default, and its channels, or the `field` that it
    holds whole.

    Of a whole field the file, .h5 or .npz, has the datasets `time` [N] in s and `values` [N, *shape], in a scene of
    several members [members, N, *shape]; `sigma` [unit of the field] is the noise of each number, 1 by default.

    window [s]: the samples from one time of the file to another. begin [s]: the time of the file at which the motion
    starts, by default that of the window, or 0; what lies before it does not count. every: of these samples each n-th
    one counts. time_unit [s]: the unit of the file's times, such as 0.001 for milliseconds. trials: the column that
    numbers the trials in a file of channels. trial [1]: the number of the one that counts.
    """

    file: str
    time: Column | None = None
    window: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    begin: float | None = None
    every: Count = 1
    time_unit: Positive = 1.0
    trials: Column | None = None
    trial: float | None = None
    missing: Literal["error", "skip"] = "error"
    channels: Annotated[list[ChannelSection], Field(min_length=1)] | None = None
    field: str | None = None
    sigma: Positive | None = None
    unit: str | None = None
    camera: CameraSection | None = None
    validation: ValidationSection | None = None

    def part(self) -> Part:
        """Return which samples of the file count."""
        first, last = self.window or (-math.inf, math.inf)
        return Part((first, last), self.begin, self.every, self.time_unit)


def sensor_arrays(section: ObservationsSection | None) -> dict[str, np.ndarray]:
    """Build the numbers of channels that may be unknown, by name; none of a measured field."""
    if section is None or section.channels is None:
        return {}
    arrays = {
        f"channel_{name}": np.array([getattr(channel, name) for channel in section.channels])
        for name in ("gain", "offset", "delay")
    }
    if (camera := section.camera) is not None:
        arrays |= camera.arrays()
    return arrays


def component_index(node: int | list[int], axis: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of a component of a field: that of its node, and the axis if the field has one more."""
    at = (node,) if isinstance(node, int) else tuple(node)
    return (*at, axis) if len(at) < len(shape) else at
