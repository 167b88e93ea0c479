"""A model with index sets, grids and tables of all kinds, and steps of sub-steps that are applied to what there is.

A rule is a declared sub-step with the kinds of the arrays that it takes and gives. A step applies rules to arrays of
these kinds, chosen among the fields of the state, the parameters, and what rules before it gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Tensor
from simphys.rollout.engine import engine_of
from simphys.simulator import Model, Record, Shape
from simphys.substep import Weights

Array = np.ndarray[Any, Any]


class Rule(NamedTuple):
    """A sub-step, or a few that belong together."""

    takes: tuple[str, ...]
    """Kinds of the arrays."""
    gives: tuple[str, ...]
    apply: Callable[..., Any]
    """Function of the model and the arrays."""
    fits: Callable[[Any], bool] = lambda model: True
    """True for a model that has what the rule needs."""
    most: int = 100
    """Number of times that a step applies it at most: some rules take long to compile."""


class Call(NamedTuple):
    """A line of a random step: a rule, and random numbers that choose its arrays."""

    rule: str
    choices: tuple[int, ...]


KINDS: Mapping[str, Callable[[Any], Shape]] = {
    "points": lambda model: (model.nodes, model.dim),
    "numbers": lambda model: (model.nodes,),
    "springs": lambda model: (len(model.ends),),
    "vector": lambda model: (model.dim,),
    "number": lambda model: (),
    "cells": lambda model: model.cells,
    "arrows": lambda model: (*model.cells, model.dim),
    "fields": lambda model: (model.dim, *model.cells),
    "narrow": lambda model: model.narrow,
    "of sides": lambda model: (2 * model.dim,),
    "row": lambda model: (model.row,),
    "matrix": lambda model: (model.row, model.row),
    "table": lambda model: (2, 3),
    "floor": lambda model: (2,),
}
"""Shapes of the kinds of arrays that the state and the parameters have."""
STATE = {
    "x": "points",
    "v": "points",
    "a": "numbers",
    "u": "cells",
    "w": "arrows",
    "f": "fields",
    "r": "row",
    "z": "table",
}
PARAMS = {
    "weight": "numbers",
    "stiffness": "springs",
    "tilt": "vector",
    "factor": "number",
    "conductivity": "cells",
    "outside": "of sides",
    "part": "narrow",
    "matrix": "matrix",
    "bias": "row",
    "cover": "table",
    "wall": "floor",
}
"""Kind of each field."""


@dataclass(frozen=True)
class Params(Record):
    weight: Tensor
    stiffness: Tensor
    tilt: Tensor
    factor: Tensor
    conductivity: Tensor
    outside: Tensor
    part: Tensor
    matrix: Tensor
    bias: Tensor
    cover: Tensor
    wall: Tensor


@dataclass(frozen=True)
class State(Record):
    x: Tensor
    v: Tensor
    a: Tensor
    u: Tensor
    w: Tensor
    f: Tensor
    r: Tensor
    z: Tensor


@dataclass(frozen=True)
class World(Model):
    """A random step of `calls`. Fields of kinds that no call takes or gives are empty."""

    calls: tuple[Call, ...]
    rules: Mapping[str, Rule]
    dim: int
    ends: Array
    picks: Array
    """Entry of the control for each node, or -1."""
    friends: Array
    """Another node for each node, or -1."""
    back: Array
    """Likewise."""
    landing: Array
    """Node that each edge loads, or -1."""
    drag: Array
    """A number of each node."""
    lean: Array
    """A vector of each node."""
    boundaries: tuple[str, ...]
    wraps: tuple[bool, ...]
    open_sides: tuple[int, ...]
    even: Array
    bands: tuple[Array, ...]
    widen: Array
    cut: Array
    matrices: Mapping[str, Weights]
    cells: tuple[int, ...]
    box: tuple[float, ...]
    controls: int
    row: int = 3
    dt: float = 0.1
    spacing: float = 0.7
    cutoff: float = 1.1
    skin: float = 0.2
    limit: int = 12
    walls: int = 2

    Params = Params
    State = State

    @cached_property
    def nodes(self) -> int:
        return len(self.picks)

    @property
    def neighbours(self) -> int:
        return self.nodes

    @property
    def narrow(self) -> tuple[int, ...]:
        """Grid of fewer cells along the last axis."""
        return (*self.cells[:-1], self.widen.shape[1])

    @property
    def first_band(self) -> Array:
        return self.bands[0]

    @property
    def last_band(self) -> Array:
        return self.bands[-1]

    @property
    def cells_of_nodes(self) -> Weights:
        return self.matrices["cells_of_nodes"]

    @property
    def nodes_of_cells(self) -> Weights:
        return self.matrices["nodes_of_cells"]

    @property
    def nodes_of_nodes(self) -> Weights:
        return self.matrices["nodes_of_nodes"]

    @cached_property
    def used(self) -> frozenset[str]:
        """Kinds of arrays that the calls take or give."""
        rules = [self.rules[call.rule] for call in self.calls]
        return frozenset([kind for rule in rules for kind in (*rule.takes, *rule.gives)])

    def _shapes(self, kinds: Mapping[str, str]) -> Mapping[str, Shape]:
        return {name: KINDS[kind](self) if kind in self.used else (0,) for name, kind in kinds.items()}

    def param_shapes(self) -> Mapping[str, Shape]:
        return self._shapes(PARAMS)

    def state_shapes(self) -> Mapping[str, Shape]:
        return self._shapes(STATE)

    def control_shape(self) -> Shape | None:
        return (self.controls,) if self.controls else None


def step(model: World, params: Params, state: State, control: Tensor | None = None) -> State:
    """Apply the calls to arrays chosen among those there are, and let each field change by one of its kind."""
    pools: dict[str, list[Any]] = {}
    for record, kinds in ((state, STATE), (params, PARAMS)):
        for name, kind in kinds.items():
            if kind in model.used:
                pools.setdefault(kind, []).append(getattr(record, name))
    if control is not None:
        pools["control"] = [control]
    for name, choices in model.calls:
        rule = model.rules[name]
        if all([kind in pools for kind in rule.takes]):
            given = [pools[kind][-1 - c % len(pools[kind])] for kind, c in zip(rule.takes, choices, strict=False)]
            found = rule.apply(model, *given)
            for kind, made in zip(rule.gives, found if len(rule.gives) > 1 else (found,), strict=True):
                pools.setdefault(kind, []).append(made)
    changed, last = {}, model.calls[-1].choices
    for place, (name, kind) in enumerate(STATE.items()):
        old = getattr(state, name)
        if kind in model.used:
            by = pools[kind][-1 - last[place % 4] % min(2 + place % 2, len(pools[kind]))]
            changed[name] = _change(old, by, model.dt if place % 2 else -model.dt, way=last[place % 4 + 4] % 8)
        else:
            changed[name] = old
    return State(**changed)


def _change(old: Any, by: Any, share: float, *, way: int) -> Any:
    """Return a new value of a field: mostly near the old one, sometimes it or another value as they are."""
    match way:
        case 0:
            return old
        case 1:
            return by
        case 2:
            return (by - old) / 2
        case 3:
            return -by
        case _:
            return old + share * by


World.bind(step=step, engine=engine_of(step))
