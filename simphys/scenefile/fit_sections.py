"""The sections of a scene file about a fit: unknowns, optimizer, observations."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from simphys.scenefile.section import Count, Index, NonNegative, Positive, Range, Section

Numbers = list[float | list[float]]
"""A vector, or the rows of a matrix."""

Column = Index | str
"""A column of a measurement: its number from 0, or its name."""


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


class BoxSection(Section):
    """The cells of a grid from the corner `first` to the corner `last`, both included."""

    first: list[Index]
    last: list[Index]


class UnknownSection(Section):
    """A parameter field, initial state or control to identify, or a part of one.

    `entries` are indices along the first axis, or full indices such as [node, axis], or a range of rows from first to
    last, or a box of a grid from the cell `first` to the cell `last`, both included; all entries by default.
    tied: true makes all entries one unknown; "rows" makes all rows alike, such as one velocity for all bodies.
    `start` is in the parameter's own unit and defaults to the scene's value; so are `bounds` and `scale`. It may be a
    file (.npy or text) of the whole field. truth: the known value, likewise, to which results are compared.
    smooth [cells]: what is sought is smoothed over the grid by a Gaussian of this standard deviation before it is
    added to the start, so that the search sees smooth changes only; bounds hold for what is smoothed.
    """

    parameter: str
    entries: list[Index | list[Index]] | Range | BoxSection | None = None
    tied: Tied = False
    start: float | Numbers | str | None = None
    truth: float | Numbers | str | None = None
    bounds: Annotated[list[Bound], Field(min_length=2, max_length=2)] = [-math.inf, math.inf]
    scale: Positive | None = None
    transform: Literal["linear", "log"] = "linear"
    smooth: Positive | None = None
    unit: str = ""


def _in_pairs(samples: int) -> int:
    if samples < 4 or samples % 2:
        raise PydanticCustomError("samples", "an even number, 4 or more")
    return samples


class SmoothingSection(Section):
    """The loss averaged over Gaussian perturbations of the unknowns, for one that jumps or is chaotic.

    radius: their standard deviation in units of each unknown's scale. `samples` evaluations make an estimate.
    accuracy: of the gradient, in multiples of the confidence bound of its zeroth-order estimate; 1 takes that alone.
    """

    kind: Literal["randomized"] = "randomized"
    radius: Positive
    samples: Annotated[int, AfterValidator(_in_pairs)] = 32
    accuracy: Annotated[float, Field(ge=1)] = 2.0


class OptimizerSection(Section):
    """The method, its iterations (per stage), the loss's smoothing, if any, and whether the horizon grows."""

    method: Literal["least_squares", "lbfgs", "adam", "gradient_descent"] = "least_squares"
    iterations: Count = 50
    learning_rate: Positive = 0.1
    tolerance: NonNegative = 1e-10
    horizon: Literal["full", "growing"] = "full"
    smoothing: SmoothingSection | None = None


class ChannelSection(Section):
    """One measured column and the state component that it sees; sigma is its noise in `unit`.

    `node` is a node's index, or the indices of a point of a grid; `axis` counts where a field has components there.
    """

    column: Column
    field: str
    node: Index | list[Index]
    axis: Index = 0
    unit: str = ""
    sigma: Positive = 1.0
    weights: Column | None = None


class ObservationsSection(Section):
    """A measurement: its file, and either its time column [s], 0 by default, and its channels, or the `field` that it
    holds whole.

    Of a whole field the file, .h5 or .npz, has the datasets `time` [N] in s and `values` [N, *shape], in a scene of
    several members [members, N, *shape]; `sigma` is the noise of each number in `unit`, 1 by default.
    """

    file: str
    time: Column | None = None
    missing: Literal["error", "skip"] = "error"
    channels: Annotated[list[ChannelSection], Field(min_length=1)] | None = None
    field: str | None = None
    sigma: Positive | None = None
    unit: str | None = None


def component_index(node: int | list[int], axis: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of a component of a field: that of its node, and the axis if the field has one more."""
    at = (node,) if isinstance(node, int) else tuple(node)
    return (*at, axis) if len(at) < len(shape) else at
