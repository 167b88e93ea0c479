"""What the sections of a scene file are made from: their base class, number types, and what they
hand to the loader: arrays by name, and problems.

It stands apart from `simphys.scenefile` because each simulator declares sections of its own and `config` imports them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

Key = tuple[str | int, ...]
"""Where a value stands in a scene: table keys and list indices, outermost first."""

EACH = "*"
"""In a key that stands for several: every element of a list, or every value of a table."""

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Index = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A table of a scene file. Unknown keys, NaN, infinities and silent conversions ('5' for 5) are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Simulator(Section):
    """Which simulator a scene is for; each simulator adds its own options."""

    name: str


class Range(Section):
    """Consecutive indices, `first` and `last` included."""

    first: Index
    last: Index


Indices = list[Index] | Range
"""Indices one by one, or a range of them."""


def rows_of(indices: Indices) -> np.ndarray | slice:
    """What picks these rows of an array."""
    return slice(indices.first, indices.last + 1) if isinstance(indices, Range) else np.array(indices, dtype=np.int64)


class Words(str):
    """What was found, where it is told in words rather than by a value: it is not put in quotes."""


NOTHING = Words("nothing")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong in a scene, before it is known where in the file its key stands."""

    key: Key
    constraint: str
    found: object
    remedy: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Fields:
    """A simulator's arrays by name, in full length."""

    params: dict[str, np.ndarray]
    state: dict[str, np.ndarray]
    design: dict[str, np.ndarray] = field(default_factory=dict)
    """Numbers that some parameters follow from."""
    designed: frozenset[str] = frozenset()
    """These parameters: they are not unknown themselves."""
    nodes: int | None = None
    """Where the state is that of bodies, [n, dim]: how many are the scene's own; any others follow them."""
    channels: int | None = None
    """How many numbers drive a step: the model's control_shape() is [channels]. None where it takes no control."""
    batched: frozenset[str] = frozenset()
    """The fields that have an axis of members in front: experiments in one medium that run at once."""

    driven: int | None = None
    """How many members the scene's control drives each in its own way; None where all are driven alike."""

    @property
    def members(self) -> int | None:
        """How many experiments run at once; None where the scene is one."""
        every = {**self.params, **self.state}
        return next((len(every[name]) for name in sorted(self.batched)), self.driven)

    def moving_shape(self, name: str) -> tuple[int, ...]:
        """The shape of a field of the state as it moves: with the members in front, if there are any."""
        shape = self.state[name].shape
        return shape if self.members is None or name in self.batched else (self.members, *shape)
