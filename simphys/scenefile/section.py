"""Base of the sections of a scene file: their class, number types, arrays by name, and problems.

Each simulator declares sections of its own with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from simphys.simulator.markers import Markers, mark_nodes

Key = tuple[str | int, ...]
"""Path of a value in a scene: table keys and list indices, outermost first."""

EACH = "*"
"""Wildcard in a key: every element of a list, or every value of a table."""

DERIVED = ("marker", "acceleration")
"""Names of what channels see of a place on a body, besides fields of the state."""

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
LARGEST = 2**31 - 1
"""Largest index and count: kernels count in 32 bits."""
Index = Annotated[int, Field(ge=0, le=LARGEST)]
Count = Annotated[int, Field(ge=1, le=LARGEST)]
NAME = WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]})
"""Mark of a number in place of which a scene file may give a name."""
Body = Annotated[Index, NAME]
"""A body by its number or, in a scene file, by its name: loading puts the number in its place."""


@dataclass(frozen=True)
class Length:
    """Mark of a list with an element for each of a size, as in `Annotated[list[float], Length("dim")]`.

    `scene_of` says which keys give sizes, or `Config.find_sizes` computes them; "dim" is the number of axes.
    """

    size: str


@dataclass(frozen=True)
class IndexOf:
    """Mark of the number of a thing, from 0 on, of which a size says how many there are."""

    size: str


@dataclass(frozen=True)
class Distinct:
    """Mark of a list of numbers that differ from each other, as the ends of a spring do."""


@dataclass(frozen=True)
class NotZero:
    """Mark of a list that is a direction: its numbers are not all 0."""


@dataclass(frozen=True)
class SideOf:
    """Mark of the side of a grid, as "x-", with this number of axes."""

    size: str = "dim"


class Section(BaseModel):
    """A table of a scene file. Unknown keys, NaN, infinities and silent conversions ('5' for 5) are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def key_type(section: type[BaseModel], name: str) -> Any:
    """Return the type of a key with its limits and marks, the outer ones of which pydantic takes out of annotations."""
    field = section.model_fields[name]
    found: Any = field.annotation
    for mark in field.metadata:
        found = Annotated[found, mark]
    return found


class Simulator(Section):
    """The simulator of a scene by its name; each simulator adds its own options."""

    name: str


class Range(Section):
    """Consecutive indices, `first` and `last` included."""

    first: Index
    last: Index


Indices = list[Index] | Range
"""Indices one by one, or a range of them."""
Bodies = list[Body] | Range
"""Bodies one by one, or a range of their numbers."""


def rows_of(indices: Indices) -> np.ndarray | slice:
    """Return the index that selects these rows of an array."""
    return slice(indices.first, indices.last + 1) if isinstance(indices, Range) else np.array(indices, dtype=np.int64)


class Words(str):
    """A found value described in words; errors print it without quotes."""


NOTHING = Words("nothing")


@dataclass(frozen=True)
class Problem:
    """One problem of a scene, by its key; the line in the file is found later."""

    key: Key
    constraint: str
    found: object
    remedy: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Fields:
    """A simulator's arrays by name, at full size."""

    params: dict[str, np.ndarray]
    state: dict[str, np.ndarray]
    design: dict[str, np.ndarray] = field(default_factory=dict)
    """Numbers from which some parameters follow."""
    designed: frozenset[str] = frozenset()
    """Names of the parameters that follow from the design; they are not unknown themselves."""
    nodes: int | None = None
    """Number of the scene's own bodies, if the state is that of bodies, [n, dim]; any others follow them."""
    channels: int | None = None
    """Number of values that drive a step: the model's control_shape() is [channels]. None if it takes no control."""
    batched: frozenset[str] = frozenset()
    """Names of the fields with a leading axis of members: experiments in one medium that run at once."""

    markers: Markers | None = None
    """Places that cameras and accelerometers follow; None: the bodies themselves, if there are any."""
    driven: int | None = None
    """Number of members with controls of their own; None if they share one."""

    @property
    def members(self) -> int | None:
        """Number of members; None for a single experiment."""
        every = {**self.params, **self.state}
        return next((len(every[name]) for name in sorted(self.batched)), self.driven)

    def seen_shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of what channels may see by this name, a field of the moving state or of markers; or None.

        Members have no markers.
        """
        if name in self.state:
            return self.moving_shape(name)
        markers = self.places()
        return (markers.nodes, markers.dim) if name in DERIVED and markers is not None else None

    def places(self) -> Markers | None:
        """Return the markers, if there are any."""
        return None if self.members is not None else self.marked_bodies()

    def marked_bodies(self) -> Markers | None:
        """Return the markers of the bodies, or of those of one member."""
        shapes = {name: values.shape[name in self.batched :] for name, values in self.state.items()}
        return self.markers or mark_nodes(shapes)

    def moving_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a field of the moving state, with a leading axis of members if there are any."""
        shape = self.state[name].shape
        return shape if self.members is None or name in self.batched else (self.members, *shape)
