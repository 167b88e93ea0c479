"""Rules over nodes and edges: per_element with parameters of all sources, edges, collect."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from simphys.substep import collect, edges, per_element

from . import bodies
from .formulas import blend, conduct, merge, nudge, outer, rotate, squash, swap, swell
from .world import Rule

SOURCES: dict[str, dict[str, tuple[str, Any]]] = {
    "q": {
        "own": ("points", "points"),
        "shared": ("vector", "tilt"),
        "gathered": ("points", ("others", "friends")),
        "of_model": ("", "lean"),
    },
    "s": {
        "own": ("numbers", "numbers"),
        "shared": ("number", "factor"),
        "gathered": ("control", ("control", "picks")),
        "of_model": ("", "drag"),
    },
}
"""Sources of two parameters: the kind of the array, and its name in a declaration."""


def _blends() -> dict[str, Rule]:
    """Declare `blend` with every choice of sources among those to which gradients flow."""
    found = {}
    for p, q, s in itertools.product(("own", "gathered"), SOURCES["q"], SOURCES["s"]):
        if "of_model" in (q, s) or p == q == "gathered":
            continue
        given: dict[str, Any] = {p: {"p": "x" if p == "own" else ("x", "friends")}}
        for name, source in (("q", q), ("s", s)):
            given.setdefault(source, {})[name] = SOURCES[name][source][1]
        made = per_element(blend, over="nodes", **given)
        takes = ("points", SOURCES["q"][q][0], SOURCES["s"][s][0])
        found[f"blend {p} {q} {s}"] = Rule(takes, ("points",), made.apply)
    return found


def _nudges() -> dict[str, Rule]:
    """Declare `nudge`, whose number or vector is a constant: a number, an array, or one of the model."""
    own = {"p": "x", "q": "v"}
    by_number = per_element(nudge, over="nodes", own=own, constant={"h": "h"})
    of_model = per_element(nudge, over="nodes", own=own, of_model={"h": "drag"})
    vectors = per_element(nudge, over="nodes", own=own, of_model={"h": "lean"})
    takes = ("points", "points")
    return {
        "nudge by a number": Rule(takes, ("points",), lambda model, x, v: by_number.apply(model, x, v, model.dt)),
        "nudge by numbers": Rule(takes, ("points",), lambda model, x, v: by_number.apply(model, x, v, model.drag)),
        "nudge by numbers of the model": Rule(takes, ("points",), of_model.apply),
        "nudge by vectors of the model": Rule(takes, ("points",), vectors.apply),
    }


@functools.cache
def _outer(dim: int) -> Any:
    return per_element(outer, over="nodes", own={"p": "x", "q": "v"}, results={"spin": (dim, dim)})


Rotate = per_element(rotate, over="nodes", own={"m": "spin", "p": "x"}, results={"turned": "p"})
RotateOther = per_element(
    rotate, over="nodes", own={"p": "x"}, gathered={"m": ("spin", "friends")}, results={"turned": "p"}
)
Twice = per_element(merge, over="nodes", own={"s": "a"}, gathered={"p": ("b", "friends"), "q": ("b", "back")})
Squash = per_element(squash, over="nodes", own={"p": "x"})
SquashSprings = per_element(squash, over="edges", own={"p": "k"})
Swap = per_element(swap, over="nodes", own={"p": "a", "q": "b"}, shared={"k": "c"}, results={"c": "p", "d": "q"})
Swell = per_element(swell, over="nodes", own={"p": "x", "q": "v"}, shared={"k": "c"}, results={"c": "p", "d": "q"})
Whole = per_element(merge, own={"p": "a", "q": "b", "s": "c"})
Table = per_element(merge, over="entries", own={"p": "a", "q": "b"}, shared={"s": "c"})
Entries = per_element(nudge, over="entries", own={"p": "a", "q": "b"}, constant={"h": "h"})
Load = collect("load", parts={"k": "landing"}, over="edges", onto="nodes")
Loads = collect("loads", parts={"x": "friends", "v": "back"}, over="nodes", onto="nodes")
Bond = edges(conduct, between={"d": "x"}, shared={"k": "c"}, onto="bond")

RULES = {
    **_blends(),
    **_nudges(),
    "matrices": Rule(("points", "points"), ("spins",), lambda model, x, v: _outer(model.dim).apply(model, x, v)),
    "rotate": Rule(("spins", "points"), ("points",), Rotate.apply),
    "rotate by others": Rule(("points", "spins"), ("points",), lambda model, x, m: RotateOther.apply(model, m, x)),
    "gather twice": Rule(("numbers", "numbers"), ("numbers",), lambda model, a, b: Twice.apply(model, b, a)),
    "squash": Rule(("points",), ("points",), Squash.apply),
    "squash springs": Rule(("springs",), ("springs",), SquashSprings.apply),
    "swap": Rule(("numbers", "numbers", "number"), ("numbers", "numbers"), Swap.apply),
    "swell": Rule(("points", "points", "number"), ("points", "points"), Swell.apply),
    "whole": Rule(("number", "number", "number"), ("number",), Whole.apply),
    "table": Rule(("table", "table", "number"), ("table",), Table.apply),
    "entries": Rule(("table", "table"), ("table",), lambda model, a, b: Entries.apply(model, a, b, model.dt)),
    "entries of cells": Rule(("cells", "cells"), ("cells",), lambda model, a, b: Entries.apply(model, a, b, 0.3)),
    "load": Rule(("springs",), ("numbers",), Load.apply),
    "loads": Rule(("points", "points"), ("points",), Loads.apply),
    "bond": Rule(("points", "number"), ("points",), Bond.apply),
    "pull": Rule(("points", "points", "springs"), ("points",), bodies.Pull.apply),
    "flow": Rule(("numbers", "springs", "number"), ("numbers",), bodies.Flow.apply),
    "add": Rule(("points", "points"), ("points",), lambda model, x, v: x + v),
    "subtract": Rule(("numbers", "numbers"), ("numbers",), lambda model, a, b: a - 0.5 * b),
}
