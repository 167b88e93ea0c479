"""Legs of a step: the flights between its impacts, for the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.autograd import no_grad
from simphys.simulator import Array

from .model import Billiards, Params, State
from .roll import Impacts, arguments

CUSHION = 2
"""Number of the kind of impacts with a cushion, the second that roll.py declares."""


@dataclass(frozen=True)
class Leg:
    """Motion of the balls between two impacts."""

    position: Array
    """Positions at its start, [n, 2]."""
    velocity: Array
    time: float
    """Duration [s]."""
    collision: tuple[int, int] | None
    """Ball and partner that collide at its end; None if it ends with the step."""

    def at(self, deceleration: float, time: float) -> tuple[Array, Array]:
        """Return position and velocity at a time from the start of the leg."""
        speed = np.linalg.norm(self.velocity, axis=1)
        rest = speed / deceleration if deceleration > 0 else np.full(len(speed), np.inf)
        span = np.minimum(time, rest)
        lost = np.divide(span, rest, out=np.zeros(len(speed)), where=rest > 0)
        return self.position + (span * (1 - lost / 2))[:, None] * self.velocity, (1 - lost)[:, None] * self.velocity


def trace_legs(model: Billiards, params: Params, state: State, time: float | None = None) -> list[Leg]:
    """List the legs of a step from this state: at most one more than the limit of impacts.

    `time` is that of the step [s], by default the model's.
    """
    with no_grad():
        found = Impacts.apply(*arguments(model, params, state, model.dt if time is None else time))
    x, v, times, kinds, balls, others = [each.data for each in found]
    last = int(np.flatnonzero(kinds == 0)[0]) if (kinds == 0).any() else len(kinds) - 1
    n, legs = model.balls, []
    for row in range(last + 1):
        place = slice(row * n, (row + 1) * n)
        partner = int(others[row]) + (n if kinds[row] == CUSHION else 0)
        collision = (int(balls[row]), partner) if kinds[row] else None
        start = x[place].astype(np.float64), v[place].astype(np.float64)
        legs.append(Leg(*start, float(times[row]), collision))
    return legs


def describe_endless_impacts(model: Billiards, params: Params, legs: list[Leg]) -> tuple[str, str, str] | None:
    """Describe impacts of a step that do not end: the constraint, what was found, and a remedy; None if they end."""
    if len(legs) <= model.max_impacts or legs[-1].collision is None:
        return None
    ball, partner = legs[-1].collision
    restitution = params.restitution if partner < model.balls else params.cushion_restitution
    time = sum([leg.time for leg in legs])
    return (
        f"at most {model.max_impacts} impacts within a time step",
        f"more within its first {time:.3g}, the last of them of ball {ball} and {model.name_of(partner)}, whose "
        f"restitution is {float(restitution):g}",
        "Balls that lose all speed between others, or are pushed by others, collide without end, and this model has no "
        "lasting contact: give more restitution or more distance, a shorter time step if many balls are fast, or "
        "another start.",
    )
