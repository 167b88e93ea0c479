"""A scene of balls on a table: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.model_sections import fill_record, scene_of
from simphys.scenefile.section import Fields, Key, NonNegative, Positive, Problem, Section, Simulator, Words, rows_of
from simphys.scenefile.sections import Config
from simphys.simulator import Array

from .markers import BallMarkers
from .model import Billiards, Params, State
from .placement import ROUNDING, check_start, find_outside, find_overlaps

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


@scene_of(Billiards, balls="geometry.position")
class BilliardsConfig(Config):
    """A scene of balls on a table."""

    simulator: BilliardsSimulator
    geometry: GeometrySection
    material: MaterialSection
    table: TableSection = TableSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        geometry, material, table, loss = map(sections.get, ("geometry", "material", "table", "loss"))
        wrong = [] if table is None else list(_check_table(table))
        yield from wrong
        if wrong or geometry is None or material is None or table is None:
            return
        n = len(geometry.position)
        if np.size(material.radius) not in (1, n):  # which is told
            return
        position, radius = np.array(geometry.position, float), np.full(n, material.radius, float)
        for ball, what, remedy in find_overlaps(position, radius):
            yield Problem(("geometry", "position", ball), "balls must not overlap", Words(what), remedy)
        if table.lower is None:
            return
        lower, upper = np.array(table.lower), np.array(table.upper)
        for ball, what, remedy in find_outside(position, radius, lower, upper):
            yield Problem(("geometry", "position", ball), "balls start on the table", Words(what), remedy)
        for place, term in enumerate(loss.terms if loss is not None else []):
            yield from _check_reachable(("loss", "terms", place, "target"), term, radius, lower, upper)

    def build_fields(self) -> Fields:
        n, table = len(self.geometry.position), self.table
        corners = {"lower": np.array(table.lower or [], float), "upper": np.array(table.upper or [], float)}
        params, state = fill_record(self, Params) | corners, fill_record(self, State)
        return Fields(params=params, state=state, nodes=n, markers=BallMarkers(n, 2))

    def build_model(self) -> Billiards:
        return Billiards(len(self.geometry.position), self.time.dt, cushions=self.table.lower is not None)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        """Accept any time step, but no balls that overlap or lie off the table."""
        check_start(params.arrays(), state.arrays())


def _check_table(table: TableSection) -> Iterator[Problem]:
    if (table.lower is None) != (table.upper is None):
        found = Words("no " + ("lower" if table.lower is None else "upper"))
        yield Problem(("table",), "a table with cushions has two corners", found, "Give lower and upper, or neither.")
    elif table.lower is not None and table.upper is not None and not np.less(table.lower, table.upper).all():
        constraint, remedy = f"must exceed lower = {table.lower} along both axes", "Exchange those that do not."
        yield Problem(("table", "upper"), constraint, table.upper, remedy)


def _check_reachable(key: Key, term: Any, radius: Array, lower: Array, upper: Array) -> Iterator[Problem]:
    """Check that the balls of a loss term can reach its target; other checks report other mistakes in the term.

    Targets in files are not checked.
    """
    if getattr(term, "field", None) != "position" or isinstance(term.target, str | None):
        return
    try:
        balls = np.arange(len(radius))[slice(None) if term.nodes is None else rows_of(term.nodes)]
        target, size = np.asarray(term.target, dtype=float), radius[balls]
        axes = slice(None) if term.axis is None else slice(term.axis, term.axis + 1)
        low, high = lower[axes] + size[:, None], upper[axes] - size[:, None]
        if term.kind == "final_mean":
            low, high = low.mean(axis=0, keepdims=True), high.mean(axis=0, keepdims=True)
        target = np.broadcast_to(target if term.axis is None else target.reshape(-1, 1), low.shape)
    except (ValueError, IndexError):
        return
    slack = ROUNDING * (upper[axes] - lower[axes])
    for row in range(len(low)):
        if (target[row] < low[row] - slack).any() or (target[row] > high[row] + slack).any():
            who = "the mean of these balls" if term.kind == "final_mean" else f"the centre of ball {balls[row]}"
            constraint = f"unreachable target: {who} stays from {_point(low[row])} to {_point(high[row])}"
            remedy = "Give a target on the table, at least the ball's radius from each cushion."
            yield Problem(key, constraint, term.target, remedy)
            return


def _point(place: Array) -> str:
    return f"[{', '.join([f'{each:.6g}' for each in place])}]" if len(place) > 1 else f"{place[0]:.6g}"
