"""Checks of a scene of balls: inside its sections, between them, and between them and the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.scenefile.section import Key, Problem, Words, rows_of
from simphys.simulators.billiards.scene import (
    GeometrySection,
    MaterialSection,
    StateSection,
    TableSection,
    expand_per_ball,
)

from .placement import ROUNDING, find_outside, find_overlaps

Array = np.ndarray[Any, Any]


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Return all problems. An invalid section is absent, and checks that need it are skipped."""
    geometry: GeometrySection | None = sections.get("geometry")
    material: MaterialSection | None = sections.get("material")
    table: TableSection | None = sections.get("table")
    state: StateSection | None = sections.get("state")
    loss: Any = sections.get("loss")
    found = [] if table is None else list(_check_table(table))
    if geometry is None:
        return found
    n = len(geometry.position)
    for name in ("radius", "mass"):
        value = getattr(material, name, None)
        if isinstance(value, list):
            found += _check_count(("material", name), value, n)
    if state is not None and state.velocity is not None:
        found += _check_count(("state", "velocity"), state.velocity, n)
    if found or material is None or table is None:
        return found
    position, radius = np.array(geometry.position, dtype=float), expand_per_ball(material.radius, n)
    for ball, what, remedy in find_overlaps(position, radius):
        found.append(_position_problem(("geometry", "position", ball), "balls must not overlap", what, remedy))
    if table.lower is not None and table.upper is not None:
        lower, upper = np.array(table.lower), np.array(table.upper)
        for ball, what, remedy in find_outside(position, radius, lower, upper):
            found.append(_position_problem(("geometry", "position", ball), "balls start on the table", what, remedy))
        for place, term in enumerate(loss.terms if loss is not None else []):
            found += _check_reachable(("loss", "terms", place, "target"), term, radius, lower, upper)
    return found


def _position_problem(key: Key, constraint: str, what: str, remedy: str) -> Problem:
    return Problem(key=key, constraint=constraint, found=Words(what), remedy=remedy)


def _check_table(table: TableSection) -> Iterator[Problem]:
    if (table.lower is None) != (table.upper is None):
        found = Words("no " + ("lower" if table.lower is None else "upper"))
        constraint, remedy = "a table with cushions has two corners", "Give lower and upper, or neither."
        yield Problem(key=("table",), constraint=constraint, found=found, remedy=remedy)
    elif table.lower is not None and table.upper is not None and not np.less(table.lower, table.upper).all():
        constraint, remedy = f"must exceed lower = {table.lower} along both axes", "Exchange those that do not."
        yield Problem(key=("table", "upper"), constraint=constraint, found=table.upper, remedy=remedy)


def _check_count(key: Key, value: Sequence[Any], count: int) -> Iterator[Problem]:
    if len(value) != count:
        constraint = f"must have {count} elements, one for each ball"
        yield Problem(key=key, constraint=constraint, found=value, remedy=f"It has {len(value)}: give {count}.")


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
            constraint = f"unreachable target: {who} stays from {_point(low[row])} to {_point(high[row])} m"
            remedy = "Give a target on the table, at least the ball's radius from each cushion."
            yield Problem(key=key, constraint=constraint, found=term.target, remedy=remedy)
            return


def _point(place: Array) -> str:
    return f"[{', '.join([f'{each:.6g}' for each in place])}]" if len(place) > 1 else f"{place[0]:.6g}"
