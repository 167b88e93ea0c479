"""What a table of balls is: how many, cushions or none, the parameters and the state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..autograd import Tensor
from ..autograd.errors import InputError
from ..events import Event
from ..physical import require_positive
from ..simulator import Array, Arrays, Record, Shape

if TYPE_CHECKING:
    from .engine import BilliardsEngine

SIDES = ("left", "right", "lower", "upper")
"""The cushions, by number: of the first axis at its lower and upper end, then of the second axis."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    radius: Tensor
    """Of each ball [m], [n]."""
    mass: Tensor
    """Of each ball [kg], [n]."""
    restitution: Tensor
    """Speed at which two balls part over that at which they met, along their centres' line, 0 to 1 [1], []."""
    cushion_restitution: Tensor
    """The same of a ball and a cushion [1], []."""
    deceleration: Tensor
    """By which the cloth slows a rolling ball, friction coefficient times gravity; not negative [m/s^2], []."""
    lower: Tensor
    """Where the left and the lower cushion are [m], [2]; [0] on an open table."""
    upper: Tensor
    """Where the right and the upper cushion are [m], [2]; [0] on an open table."""


@dataclass(frozen=True)
class State(Record):
    """Where the balls are and how they move."""

    position: Tensor
    """Of the centres [m], [n, 2]."""
    velocity: Tensor
    """[m/s], [n, 2]."""


@dataclass(frozen=True)
class Billiards:
    """Balls on a level table, seen from above: discs that roll straight, slowed by the cloth, until they meet.

    They carry no spin: impacts are frictionless, so that a ball leaves a cushion as it came but for its restitution.
    """

    balls: int
    """How many, n."""
    dt: float
    """Time step [s]: between states, no more. Motion and impacts are exact in time, whatever it is."""
    cushions: bool = True
    """Whether the table has cushions; else balls roll on for ever, or to where they rest."""
    impacts: int = 100
    """The most impacts in a step. Balls that push each other, or are trapped between others, would have no end of them
    in finite time: that is no motion of this model."""

    Params = Params
    State = State

    def __post_init__(self) -> None:
        for name in ("balls", "impacts"):
            if getattr(self, name) < 1:
                raise InputError(f"Billiards.{name}", "must be at least 1", getattr(self, name), "Give a count.")
        if not 0 < self.dt < math.inf:
            raise InputError("Billiards.dt", "must be positive and finite", self.dt, "Give a time step [s].")

    @property
    def partners(self) -> int:
        """How many a ball may meet: the balls, then the cushions by their number in SIDES."""
        return self.balls + (len(SIDES) if self.cushions else 0)

    def name_of(self, partner: int) -> str:
        """A ball or a cushion in words."""
        return f"ball {partner}" if partner < self.balls else f"the {SIDES[partner - self.balls]} cushion"

    def param_shapes(self) -> Mapping[str, Shape]:
        n, corner = self.balls, (2 if self.cushions else 0,)
        single: dict[str, Shape] = dict.fromkeys(("restitution", "cushion_restitution", "deceleration"), ())
        return {"radius": (n,), "mass": (n,), **single, "lower": corner, "upper": corner}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"position": (self.balls, 2), "velocity": (self.balls, 2)}

    def control_shape(self) -> Shape | None:
        return None

    def step(self, params: Params, state: State, control: Tensor | None = None) -> State:
        """The nested step: a node of the graph for each flight, time of an impact, and impact."""
        from .step import step

        return step(self, params, state)

    def engine(
        self,
        params: Arrays,
        control: Array | None,
        *,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None = None,
    ) -> BilliardsEngine:
        """The fused loops. A member is one thread's, so that they are deterministic, asked to be or not."""
        from .engine import BilliardsEngine

        check_params(params)
        return BilliardsEngine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def events(self, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
        """Impacts of two balls, of a ball and a cushion, balls that come to rest, and near misses ("graze")."""
        from .events import events

        return events(self, params, states)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Who has no end of impacts, where that is why."""
        from .events import endless

        return endless(self, params, state)


BALL_US = 0.03
"""Serial cost [us] of a ball's flight through a step."""
PAIR_US = 0.004
"""Serial cost [us] of looking whether two balls meet in a step."""


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless every radius and every mass is positive and finite."""
    require_positive("billiards", params, {"radius": "m", "mass": "kg"})
