"""Sections of a scene file that describe a table of balls, and their conversion to arrays."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Fields, NonNegative, Positive, Section, Simulator
from simphys.simulators.billiards.model import Billiards

Point = Annotated[list[float], Field(min_length=2, max_length=2)]
Restitution = Annotated[float, Field(ge=0, le=1)]


class BilliardsSimulator(Simulator):
    """Balls that roll and collide. It has no options: motion and impacts are exact in time."""

    name: Literal["billiards"]


class GeometrySection(Section):
    """Initial positions of the balls' centres [m]."""

    position: Annotated[list[Point], Field(min_length=1)]


class MaterialSection(Section):
    """radius [m] and mass [kg]: one number for all balls, or a list with one for each.

    restitution [1]: coefficient of restitution between two balls, 0 to 1; 1 loses no energy.
    """

    radius: Positive | list[Positive]
    mass: Positive | list[Positive] = 1.0
    restitution: Restitution = 1.0


class TableSection(Section):
    """A rectangle of cushions from the corner `lower` to the corner `upper` [m]; without them the table is open.

    restitution [1]: between a ball and a cushion, 0 to 1. deceleration [m/s^2]: of a rolling ball by the cloth until it
    rests, friction coefficient times gravity; 0 by default.
    """

    lower: Point | None = None
    upper: Point | None = None
    restitution: Restitution = 1.0
    deceleration: NonNegative = 0.0


class StateSection(Section):
    """Initial velocity [m/s] of each ball; at rest by default."""

    velocity: list[Point] | None = None


def build_fields(config: Any) -> Fields:
    """Return every parameter field and state component in full length."""
    geometry, material, table, state = config.geometry, config.material, config.table, config.state
    position = np.array(geometry.position, dtype=float)
    n = len(position)
    velocity = np.zeros_like(position) if state.velocity is None else np.array(state.velocity, dtype=float)
    params = {
        "radius": expand_per_ball(material.radius, n),
        "mass": expand_per_ball(material.mass, n),
        "restitution": np.array(material.restitution),
        "cushion_restitution": np.array(table.restitution),
        "deceleration": np.array(table.deceleration),
        "lower": np.array(table.lower or [], dtype=float),
        "upper": np.array(table.upper or [], dtype=float),
    }
    return Fields(params=params, state={"position": position, "velocity": velocity}, nodes=n)


def expand_per_ball(value: float | list[float], n: int) -> np.ndarray[Any, Any]:
    """Return one number for each ball."""
    return np.broadcast_to(np.asarray(value, dtype=float), (n,)).copy()


def build_model(config: Any) -> Billiards:
    """Return the model of a scene that is loaded and hence free of problems."""
    return Billiards(len(config.geometry.position), config.time.dt, cushions=config.table.lower is not None)
