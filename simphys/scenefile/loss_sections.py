"""The section of a scene file about the loss: misfits to a measurement, and terms about the motion."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from simphys.scenefile.fit_sections import Bound, Numbers
from simphys.scenefile.section import Bodies, Count, Index, NonNegative, Positive, Section


class FinalStateSection(Section):
    """weight * mean over nodes of |state at the end - target|^2.

    target [unit of the field]; target_offset [unit of the field] counts from the start. With `axis` only this component
    counts, and targets are numbers. A target may be a file: .npy, text, or a picture (.png), whose black and white are
    the two numbers of target_range [unit of the field]. weight [1/(unit of the field)^2].
    """

    kind: Literal["final_state"]
    field: str = "position"
    nodes: Bodies | None = None
    axis: Index | None = None
    target: float | Numbers | str | None = None
    target_range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    target_offset: float | list[float] | None = None
    weight: NonNegative = 1.0


class FinalMeanSection(Section):
    """weight * |mean over nodes of the state at the end - target|^2: their mean position, regardless of their shape.

    With `axis` only this component counts, and the target [unit of the field] is a number. weight [1/(unit of the
    field)^2].
    """

    kind: Literal["final_mean"]
    field: str = "position"
    nodes: Bodies | None = None
    axis: Index | None = None
    target: float | list[float]
    weight: NonNegative = 1.0


class FinalDensitySection(Section):
    """weight * mean over cells of (density at the end - target)^2, [kg/m^2 or kg/m^3]: a shape, filled by any bodies.

    The bodies' mass is shared out to a grid of its own, by quadratic B-splines: `cells` along each axis with edges of
    `spacing` [m], from `origin` [m] on, 0 by default. file: the target of each cell, as text, the last axis in rows.
    weight [1/(unit of the density)^2].
    """

    kind: Literal["final_density"]
    cells: Annotated[list[Count], Field(min_length=1, max_length=3)]
    spacing: Positive
    origin: list[float] | None = None
    file: str
    weight: NonNegative = 1.0


class RunningSumSection(Section):
    """weight * sum over steps of dt * mean over nodes of |state - target|^2; with `axis` only this component counts.

    The target [unit of the field] may be a file, as that of final_state, and so is target_range [unit of the field].
    weight [1/(s (unit of the field)^2)].
    """

    kind: Literal["running_sum"]
    field: str = "position"
    nodes: Bodies | None = None
    axis: Index | None = None
    target: float | Numbers | str
    target_range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    weight: NonNegative = 1.0


class RegularizationSection(Section):
    """weight * |(theta - towards) / scale|^2 for one unknown.

    towards [unit of the parameter]: its start by default. weight [1].
    """

    kind: Literal["regularization"]
    unknown: str
    towards: float | Numbers | None = None
    weight: NonNegative = 1.0


class LossSection(Section):
    """The misfits to the observations, and further terms.

    kind: "squares"; or a loss that outliers do not rule: "huber", linear beyond delta; "soft_l1", which turns linear
    there; "cauchy", logarithmic beyond. delta [1]: in sigmas. "student_t": noise of so many degrees of `freedom` [1].

    lowpass [Hz]: the fit goes through stages, in each of which misfits to a measured field are low-pass filtered along
    time up to about such a frequency, low ones first; 0 or inf as the last one is without a filter.
    """

    kind: Literal["squares", "huber", "soft_l1", "cauchy", "student_t"] = "squares"
    delta: Positive | None = None
    freedom: Positive = 4.0
    lowpass: Annotated[list[Bound], Field(min_length=1)] | None = None
    terms: list[
        Annotated[
            FinalStateSection | FinalMeanSection | FinalDensitySection | RunningSumSection | RegularizationSection,
            Field(discriminator="kind"),
        ]
    ] = []
