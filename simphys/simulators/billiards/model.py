"""A table of balls: the model (number of balls, cushions, time step), its parameters and its state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.autograd import Tensor
from simphys.simulator import Arrays, Bodies, Model, Record, declare
from simphys.simulator.model_checks import require_counts

from .markers import BallMarkers

SIDES = ("left", "right", "lower", "upper")
"""Names of the cushions by number: lower and upper end of the first axis, then of the second axis."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    radius: Tensor = declare("balls", "m", sign="positive", section="material")
    """Radius of each ball."""
    mass: Tensor = declare("balls", "kg", sign="positive", section="material", standard=1.0)
    """Mass of each ball."""
    restitution: Tensor = declare("", "1", section="material", standard=1.0, least=0, most=1)
    """Coefficient of restitution between two balls: normal speed after impact over that before, 0 to 1."""
    cushion_restitution: Tensor = declare("", "1", section="table.restitution", standard=1.0, least=0, most=1)
    """Coefficient of restitution between a ball and a cushion, 0 to 1."""
    deceleration: Tensor = declare("", "m/s^2", section="table", standard=0.0, least=0)
    """Deceleration of a rolling ball by the cloth until it rests, friction coefficient times gravity; not negative."""
    lower: Tensor = declare("2", "m", section="table", only_if="cushions")
    """Coordinates of the left and the lower cushion; without cushions the table is open."""
    upper: Tensor = declare("2", "m", section="table", only_if="cushions")
    """Coordinates of the right and the upper cushion."""


@dataclass(frozen=True)
class State(Record):
    """Positions and velocities of the balls."""

    position: Tensor = declare("balls, 2", "m", section="geometry")
    """Positions of the centres."""
    velocity: Tensor = declare("balls, 2", "m/s", section="state", standard=0.0)
    """Velocities of the centres."""


@dataclass(frozen=True)
class Billiards(Model):
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

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_counts(self, balls=1, max_impacts=1)

    @property
    def sides(self) -> int:
        """Number of cushions."""
        return len(SIDES) if self.cushions else 0

    @property
    def partners(self) -> int:
        """Number of possible collision partners of a ball: the balls, then the cushions in the order of SIDES."""
        return self.balls + self.sides

    def name_of(self, partner: int) -> str:
        """Return the partner's name for messages: a ball or a cushion."""
        return f"ball {partner}" if partner < self.balls else f"the {SIDES[partner - self.balls]} cushion"

    def describe_bodies(self, params: Arrays) -> Bodies:
        """Discs, all of them free, with the radii of these parameters."""
        return Bodies(pinned=np.zeros(self.balls, dtype=bool), own=self.balls, radius=np.array(params["radius"], float))

    def describe_markers(self) -> BallMarkers:
        return BallMarkers(self.balls, 2)
