"""A scene of balls on a table: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import Fields, Key, Problem, Simulator, Words, rows_of
from simphys.scenefile.sections import Config
from simphys.simulator import Array

from .markers import BallMarkers
from .model import Billiards, Params, State
from .placement import ROUNDING, check_start, find_outside, find_overlaps


class BilliardsSimulator(Simulator):
    """Balls that roll and collide. It has no options: motion and impacts are exact in time."""

    name: Literal["billiards"]


@scene_of(Billiards, balls="geometry.position")
class BilliardsConfig(Config):
    """A scene of balls on a table."""

    simulator: BilliardsSimulator

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        if (table := sections.get("table")) is None:
            return
        if (table.lower is None) != (table.upper is None):
            found = Words("no " + ("lower" if table.lower is None else "upper"))
            remedy = "Give lower and upper, or neither."
            yield Problem(("table",), "a table with cushions has two corners", found, remedy)
        elif table.lower is not None and not np.less(table.lower, table.upper).all():
            constraint, remedy = f"must exceed lower = {table.lower} along both axes", "Exchange those that do not."
            yield Problem(("table", "upper"), constraint, table.upper, remedy)

    def find_problems_with(self, model: Billiards) -> Iterator[Problem]:
        position, params = self.fields.state["position"], self.fields.params
        radius, lower, upper = params["radius"], params["lower"], params["upper"]
        for ball, what, remedy in find_overlaps(position, radius):
            yield Problem(("geometry", "position", ball), "balls must not overlap", Words(what), remedy)
        if not model.cushions:
            return
        for ball, what, remedy in find_outside(position, radius, lower, upper):
            yield Problem(("geometry", "position", ball), "balls start on the table", Words(what), remedy)
        for place, term in enumerate(self.loss.terms):
            yield from _check_reachable(("loss", "terms", place, "target"), term, radius, lower, upper)

    def build_fields(self) -> Fields:
        state = fill_record(self, State)
        n = len(state["position"])
        return Fields(params=fill_record(self, Params), state=state, nodes=n, markers=BallMarkers(n, 2))

    def build_model(self) -> Billiards:
        return fill_model(self, Billiards, cushions=bool(self.fields.params["lower"].size))

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        """Accept any time step, but no balls that overlap or lie off the table."""
        check_start(params.arrays(), state.arrays())


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
