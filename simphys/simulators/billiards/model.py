"""A table of balls: the model (number of balls, cushions, time step), its parameters and its state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays, Record, Shape
from simphys.simulator.events import Event
from simphys.simulator.physical import require_positive

if TYPE_CHECKING:
    from .engine import BilliardsEngine

SIDES = ("left", "right", "lower", "upper")
"""Names of the cushions by number: lower and upper end of the first axis, then of the second axis."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    radius: Tensor
    """Radius of each ball [m], [n]."""
    mass: Tensor
    """Mass of each ball [kg], [n]."""
    restitution: Tensor
    """Coefficient of restitution between two balls: normal speed after impact over that before, 0 to 1 [1], []."""
    cushion_restitution: Tensor
    """Coefficient of restitution between a ball and a cushion [1], []."""
    deceleration: Tensor
    """Deceleration of a rolling ball by the cloth, friction coefficient times gravity; not negative [m/s^2], []."""
    lower: Tensor
    """Coordinates of the left and the lower cushion [m], [2]; [0] on an open table."""
    upper: Tensor
    """Coordinates of the right and the upper cushion [m], [2]; [0] on an open table."""


@dataclass(frozen=True)
class State(Record):
    """Positions and velocities of the balls."""

    position: Tensor
    """Positions of the centres [m], [n, 2]."""
    velocity: Tensor
    """Velocities of the centres [m/s], [n, 2]."""


@dataclass(frozen=True)
class Billiards:
    """Balls on a level table seen from above: discs that roll straight, slowed by the cloth, until they collide.

    Balls carry no spin and impacts are frictionless: an impact changes the normal component of the velocity only.
    """

    balls: int
    """Number of balls, n."""
    dt: float
    """Time step [s]. It only spaces the stored states: motion and impacts are exact in time."""
    cushions: bool = True
    """True if the table has cushions; on an open table balls roll on until they rest, if ever."""
    max_impacts: int = 100
    """Maximum number of impacts in a step. Balls that push each other, or are trapped between others, would collide
    infinitely often in finite time; this model does not cover such motion."""

    Params = Params
    State = State

    def __post_init__(self) -> None:
        for name in ("balls", "max_impacts"):
            if getattr(self, name) < 1:
                raise InputError(f"Billiards.{name}", "must be at least 1", getattr(self, name), "Give a count.")
        if not 0 < self.dt < math.inf:
            raise InputError("Billiards.dt", "must be positive and finite", self.dt, "Give a time step [s].")

    @property
    def partners(self) -> int:
        """Number of possible collision partners of a ball: the balls, then the cushions in the order of SIDES."""
        return self.balls + (len(SIDES) if self.cushions else 0)

    def name_of(self, partner: int) -> str:
        """Return the partner's name for messages: a ball or a cushion."""
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
        """Advance by the nested step; the graph has one node for each flight, time of impact, and impact."""
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
        """Return the engine. One thread computes a batch member, so results never depend on `deterministic`."""
        from .engine import BilliardsEngine

        check_params(params)
        return BilliardsEngine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def events(self, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
        """Return the impacts of balls and cushions, the balls coming to rest, and near misses (kind "graze")."""
        from .events import events

        return events(self, params, states)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Name the balls whose impacts never end, if a step from this state exceeds the limit."""
        from .events import explain_endless_impacts

        return explain_endless_impacts(self, params, state)


BALL_US = 0.03
"""Serial cost [us] of a ball's flight through a step."""
PAIR_US = 0.004
"""Serial cost [us] of checking whether two balls collide in a step."""


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless every radius and every mass is positive and finite."""
    require_positive("billiards", params, {"radius": "m", "mass": "kg"})
