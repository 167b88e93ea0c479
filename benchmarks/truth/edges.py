"""Motions with kinks, at which derivatives from both sides, and so adjoint and finite differences, must differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.rollout import rollout
from simphys.simulator.events import Event, select_one_sided
from simphys.simulators import billiards, rigid

from ..measuring import markdown
from .cases import ALONG, COMPLIANT, DOWNHILL, FALL, HEIGHT, MU, SPEED, SPIN, Case, E, G, Place, R, Values, at
from .motion import Motion, Row, motion

SECOND: Place = ("position", (1, 1))
"""Transverse position of the second ball."""
RISE: Place = ("velocity", (1, 1))
"""Transverse speed of the second ball."""


@dataclass(frozen=True)
class Edge:
    """Derivatives and events of a motion with a kink."""

    by: str
    below: float
    """Derivative from below, by a finite difference."""
    above: float
    adjoint: float
    told: tuple[Event, ...]
    """One-sided events of the motion."""
    beside: tuple[Event, ...]
    """One-sided events of the motions slightly to either side."""


def edge(by: str, moving: Motion, values: dict[str, Any], end: Place, place: Place) -> Edge:
    """Differentiate over a millionth to either side; `beside` is a thousandth of a unit away."""
    width, apart = 1e-6, 1.234e-3

    def moved(change: float) -> dict[str, Any]:
        other = {name: array.copy() for name, array in values.items()}
        other[place[0]][place[1]] += change
        return other

    middle = moving.end(values, end)
    below = (middle - moving.end(moved(-width), end)) / width
    above = (moving.end(moved(width), end) - middle) / width
    slopes = moving.gradient(values, end)[1]
    beside = [select_one_sided(told(moving, moved(change))) for change in (-apart, apart)]
    found = select_one_sided(told(moving, values))
    return Edge(by, below, above, float(slopes[place[0]][place[1]]), found, (*beside[0], *beside[1]))


def told(moving: Motion, values: Values) -> tuple[Event, ...]:
    """Find all events of a motion."""
    params, state = moving.records(values)
    states = rollout(moving.model, params, state, steps=moving.steps).states.arrays()
    return moving.model.events(params.arrays(), states, None)


def scene(name: str, *overrides: str) -> Motion:
    """Make the motion of a scene with some values replaced."""
    return motion(Case("", "", name, ALONG, {}, lambda values, T: 0.0, overrides), False)[0]


def touching() -> Edge:
    """Make a ball that just touches another one in passing, found by bisection."""
    moving = scene("two_balls", "bodies.1.position=[0.8,0.2]")
    near, far = 0.19, 0.21
    while (middle := (near + far) / 2) not in (near, far):
        if moving.end(moving.changed({SECOND: middle}), RISE):
            near = middle
        else:
            far = middle
    return edge("aside", moving, moving.changed({SECOND: near}), RISE, SECOND)


def lying() -> Edge:
    """Make a ball exactly at a compliant floor, without any load."""
    moving = scene("dropped_ball", *COMPLIANT, "environment.gravity=[0.0,0.0]", "time.duration=5e-3")
    return edge("height", moving, moving.changed({HEIGHT: R}), FALL, HEIGHT)


def sticking() -> Edge:
    """Make an oblique bounce with just enough friction to stick."""
    moving = scene("oblique_bounce")
    v_x, v_y, w, e = [at(moving.values, place) for place in (SPEED, FALL, SPIN, E)]
    mu = abs(v_x + R * w) / 3 / ((1 + e) * -v_y)
    return edge("mu", moving, moving.changed({MU: mu}), SPIN, MU)


def downhill(name: str, *overrides: str) -> Edge:
    """Make a body on the steepest slope that friction can hold."""
    moving = scene(name, "time.duration=0.05", *overrides)
    mu = at(moving.values, MU)
    values = moving.changed({DOWNHILL: mu * G, SPEED: 0.0})
    return edge("slope", moving, values, SPEED, DOWNHILL)


def between() -> Edge:
    """Make a ball of the rigid simulator that hits two others at once."""
    shapes = ((rigid.Sphere(0.1),),) * 3
    model = rigid.RigidBodies(2, 0.01, shapes, apart=((1, 2),))
    values = {name: np.zeros(shape) for name, shape in {**model.param_shapes(), **model.state_shapes()}.items()}
    values |= {"mass": np.full(3, 0.5), "inertia": np.full((3, 1), 2.5e-3), "restitution": np.full(3, 0.8)}
    values |= {"position": np.array([[0, 0], [0.4, 0.1], [0.4, -0.1]]), "velocity": np.eye(3, 2) * [2, 0]}
    moving = of_values(model, rigid.Params, rigid.State, values, 30)
    return edge("aside", moving, values, RISE, ("position", (0, 1)))


def balls(position: Any, **changed: Any) -> tuple[Motion, dict[str, Any]]:
    """Make billiards, by default without cushions, in which the first ball moves at 1 m/s along x."""
    n = len(position)
    given = {"mass": np.full(n, 0.2), "restitution": 0.95, "cushion_restitution": 1.0, "deceleration": 0.1, **changed}
    sizes = {"radius": np.full(n, 0.05), "lower": np.zeros(0), "upper": np.zeros(0)}
    start = {"position": position, "velocity": np.eye(n, 2) * [1.0, 0.0]}
    values = {name: np.array(value, float) for name, value in (sizes | start | given).items()}
    model = billiards.Billiards(n, 0.1, cushions=values["lower"].size > 0)
    return of_values(model, billiards.Params, billiards.State, values, 8), values


def of_values(model: Any, params: Any, state: Any, values: dict[str, Any], steps: int) -> Motion:
    """Make a motion from arrays."""
    first, second = [kind(**{name: tensor(values[name]) for name in kind.names()}) for kind in (params, state)]
    return Motion(model, first, second, steps)


def edges() -> dict[str, Callable[[], Edge]]:
    """List all edges by name."""
    kinks: dict[str, Callable[[], Edge]] = {
        "a ball that just touches another": touching,
        "billiards: a ball that just touches another": lambda: of_balls([[0.0, 0.0], [0.3, 0.1]], SECOND),
        "a ball exactly at a compliant floor": lying,
        "a bounce at the edge of the cone": sticking,
        "a runner on a slope of mu": lambda: downhill("rolling_disc", "bodies.0.inertia=1e13"),
        "a block on a slope of mu": lambda: downhill("sliding_block"),
        "billiards: a ball that meets two at once": lambda: of_balls(
            [[0.0, 0.0], [0.5, 0.05], [0.5, -0.05]], ("position", (0, 1))
        ),
        "rigid: a ball that meets two at once": between,
    }
    return kinks


def of_balls(position: Any, place: Place) -> Edge:
    """Make billiard balls on a cloth without deceleration."""
    moving, values = balls(position, deceleration=0.0)
    return edge("aside", moving, values, RISE, place)


def of_billiards() -> list[Row]:
    """Make rows of two smooth cases: a ball back from a cushion on a decelerating cloth, and an oblique impact."""

    def back(values: Values, T: float) -> Any:
        x, v, a, e = at(values, ALONG), at(values, SPEED), values["deceleration"][()], values["cushion_restitution"][()]
        way = values["upper"][0] - values["radius"][0] - x
        u = np.sqrt(v * v - 2 * a * way)
        left = T - 2 * way / (v + u)
        return x + way - e * u * left + a * left * left / 2

    def across(values: Values, T: float) -> Any:
        d, w = np.diff(values["position"], axis=0)[0], -values["velocity"][0]
        reach = values["radius"].sum()
        t = (-(d @ w) - np.sqrt((d @ w) ** 2 - (w @ w) * (d @ d - reach**2))) / (w @ w)
        n = (d + w * t) / reach
        return -(1 + values["restitution"][()]) / 2 * (n @ w) * n[1]

    table = {"lower": [-1.0, -1.0], "upper": [0.5, 1.0], "cushion_restitution": 0.8}
    cases = (
        ("cushion, x", balls([[0.0, 0.0]], **table), ALONG, {"speed": SPEED, "e": ("cushion_restitution", ())}, back),
        (
            "oblique impact, speed across",
            balls([[0.0, 0.0], [0.3, 0.06]], deceleration=0.0),
            RISE,
            {"x": ALONG, "y": HEIGHT, "e": ("restitution", ())},
            across,
        ),
    )
    return [
        Row(what, "billiards", name, moving.found(values, end, by, closed, 0.8))
        for what, (moving, values), end, places, closed in cases
        for name, by in places.items()
    ]


def table(found: Mapping[str, Edge]) -> str:
    """Format the edges as a Markdown table."""
    head = ["motion", "by", "from below", "from above", "adjoint", "what the report says, in which steps"]
    lines = []
    for what, one in found.items():
        numbers = [f"{number:.4g}" for number in (one.below, one.above, one.adjoint)]
        lines.append([what, one.by, *numbers, _said(one.told) or "nothing"])
    return markdown(head, lines)


def _said(found: tuple[Event, ...]) -> str:
    steps: dict[str, list[int]] = {}
    for event in found:
        steps.setdefault(f"{event.kind}: {event.one_sided}", []).append(event.step)
    return "; ".join([f"step {_span(which)}, {text}" for text, which in steps.items()])


def _span(steps: list[int]) -> str:
    return str(steps[0]) if len(set(steps)) == 1 else f"{steps[0]} to {steps[-1]}"
