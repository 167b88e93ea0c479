"""Rules over pairs, neighbours, points between cells, and splines between particles and nodes of a grid."""

from __future__ import annotations

from typing import Any

from simphys.substep import neighbours, pairs, read_at, spread_from

from . import bodies
from .formulas import crowd, push, repel
from .world import Rule

BOTH = {("a", "b"): "charge"}
Repel = pairs(repel, between={"d": "x", "u": "v"}, both=BOTH, shared={"k": "c"}, onto="force", over="nodes")
Push = neighbours(
    push,
    distance={"d": "x"},
    between={"u": "v"},
    both=BOTH,
    shared={"k": "c"},
    constant={"rc": "cutoff"},
    onto="force",
    over="nodes",
)
Crowd = neighbours(
    crowd, distance={"d": "x"}, both=BOTH, constant={"rc": "cutoff"}, onto="load", over="nodes", even=True, result=()
)
Read = read_at("value", field="field", position="points", over="nodes")
Spread = spread_from("density", strength="strength", position="points", over="nodes", even="even")


def _near(model: Any, x: Any) -> Any:
    """Return positions of which some are within a cut-off."""
    return bodies.Place.apply(model, x)


def _puff(model: Any, x: Any, a: Any, v: Any) -> Any:
    return bodies.Puff.apply(model, _near(model, x), a, v)


def _breathe(model: Any, x: Any, cloud: Any, k: Any) -> Any:
    return 0.3 * bodies.Breathe.apply(model, _near(model, x), cloud, k)


RULES = {
    "repel": Rule(("points", "points", "numbers", "number"), ("points",), Repel.apply),
    "push": Rule(
        ("points", "points", "numbers", "number"),
        ("points",),
        lambda model, x, v, a, k: Push.apply(model, _near(model, x), v, a, k, model.cutoff),
    ),
    "crowd": Rule(
        ("points", "numbers"), ("numbers",), lambda model, x, a: Crowd.apply(model, _near(model, x), a, model.cutoff)
    ),
    "puff": Rule(("points", "numbers", "points"), ("arrows",), _puff),
    "breathe": Rule(("points", "arrows", "number"), ("points",), _breathe),
    "read": Rule(
        ("cells", "points"),
        ("numbers",),
        lambda model, u, x: Read.apply(model, u, _near(model, x)),
    ),
    "spread from": Rule(
        ("numbers", "points"),
        ("cells",),
        lambda model, q, x: Spread.apply(model, q, _near(model, x)),
    ),
    "place": Rule(("points",), ("points",), _near),
}
