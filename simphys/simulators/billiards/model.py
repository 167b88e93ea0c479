"""A table of balls: the model (number of balls, cushions, time step), its parameters and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simphys.autograd import Tensor
from simphys.simulator import Arrays, Bodies, Model, Record, Shape
from simphys.simulator.model_checks import require_counts
from simphys.simulator.physical import require_positive

from .markers import BallMarkers

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

    def param_shapes(self) -> Mapping[str, Shape]:
        n, corner = self.balls, (2 if self.cushions else 0,)
        single: dict[str, Shape] = dict.fromkeys(("restitution", "cushion_restitution", "deceleration"), ())
        return {"radius": (n,), "mass": (n,), **single, "lower": corner, "upper": corner}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"position": (self.balls, 2), "velocity": (self.balls, 2)}

    def describe_bodies(self, params: Arrays) -> Bodies:
        """Discs, all of them free, with the radii of these parameters."""
        return Bodies(pinned=np.zeros(self.balls, dtype=bool), own=self.balls, radius=np.array(params["radius"], float))

    def describe_markers(self) -> BallMarkers:
        return BallMarkers(self.balls, 2)


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless every radius and every mass is positive and finite."""
    require_positive("billiards", params, "radius", "mass")
