"""Draws of random steps: a family of patterns, or several together, with sizes, batches, controls and gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from simphys.diagnose.check.case import Case, RandomWeights
from simphys.substep import Weights

from . import bodies, elements, grids, layers, particles, sequences
from .world import KINDS, STATE, Array, Call, Params, Rule, State, World

FAMILIES: Mapping[str, Mapping[str, Rule]] = {
    "elements": elements.RULES,
    "grids": grids.RULES,
    "particles": particles.RULES,
    "layers": layers.RULES,
    "sequences": sequences.RULES,
}
EVERYTHING = {name: rule for rules in FAMILIES.values() for name, rule in rules.items()}
TURNS = ("bodies", *FAMILIES, "all")
"""Families in turn: seed s draws of entry s % 7; of "all", rules of any of them meet in a step."""


def draw(seed: int) -> Case:
    """Draw a rollout of a random step."""
    family = TURNS[seed % len(TURNS)]
    if family == "bodies":
        return bodies.draw(seed // len(TURNS))
    random = np.random.default_rng([seed, 33])
    model = _draw_model(random, EVERYTHING if family == "all" else FAMILIES[family])
    if family in ("layers", "all"):
        model = layers.mix_vectors(model, np.random.default_rng([seed, 35]))
    steps, batch = int(random.integers(1, 8)), int(random.choice([1, 1, 2, 3]))

    make = bodies.tensor_maker(random, batch)
    params = Params(**{name: make(shape) for name, shape in model.param_shapes().items()})
    params = bodies.without_some(params, np.random.default_rng([seed, 34]))
    state = State(**{name: make(shape) for name, shape in model.state_shapes().items()})
    control = make((steps, model.controls)) if model.controls else None
    fields = [x for x in state.tensors() if x.size]
    if not any([x.requires_grad for x in fields]):  # what comes out may not depend on any parameter
        fields[0].requires_grad_()
    return Case(model, params, state, control, steps, RandomWeights(seed), "all")


def _draw_model(random: np.random.Generator, rules: Mapping[str, Rule]) -> World:
    n, dim = int(random.integers(4, 8)), int(random.integers(1, 4))
    cells = tuple([int(c) for c in random.integers(3, 7, dim)])
    narrow = int(random.integers(1, cells[-1] + 1))
    sides = [_draw_sides(random) for _ in range(dim)]
    controls = int(random.choice([0, 0, 2, n, n + 2]))
    count = int(random.integers(1, 9))
    model = World(
        calls=(),
        rules=EVERYTHING | layers.OF_VECTORS,
        dim=dim,
        ends=np.array([random.choice(n, 2, replace=False) for _ in range(count)], np.int32),
        picks=_indices(random, n, controls),
        friends=_indices(random, n, n),
        back=_indices(random, n, n),
        landing=_indices(random, count, n),
        drag=random.uniform(-1, 1, n),
        lean=random.uniform(-1, 1, (n, dim)),
        boundaries=tuple([side for pair in sides for side in pair]),
        wraps=tuple([bool(random.random() < 0.5) for _ in range(dim)]),
        open_sides=tuple([side for side in range(2 * dim) if random.random() < 0.5]),
        even=random.integers(0, 2**dim, n).astype(np.int32),
        bands=tuple([_band(random, count, count) for count in (cells[0], cells[-1])]),
        widen=_band(random, cells[-1], narrow),
        cut=_band(random, narrow, cells[-1]),
        matrices={
            "cells_of_nodes": _weights(random, int(np.prod(cells)), n),
            "nodes_of_cells": _weights(random, n, int(np.prod(cells))),
            "nodes_of_nodes": _weights(random, n, n),
        },
        cells=cells,
        box=tuple([float("inf") if random.random() < 0.5 else float(random.uniform(2.2, 3.0)) for _ in range(dim)]),
        controls=controls,
        row=int(random.choice([1, 2, 3, 5, 17])),
    )
    return _with_calls(model, random, rules)


def _with_calls(model: World, random: np.random.Generator, rules: Mapping[str, Rule]) -> World:
    """Draw the calls among the rules that fit; the first one makes do with the state and the parameters."""
    names = [name for name, rule in rules.items() if rule.fits(model)]
    first = [name for name in names if set(rules[name].takes) <= {*KINDS} and {*rules[name].takes} & {*STATE.values()}]
    chosen = [str(random.choice(first)), *[str(random.choice(names)) for _ in range(random.integers(0, 5))]]
    chosen = [name for place, name in enumerate(chosen) if chosen[:place].count(name) < rules[name].most]
    calls = [Call(name, tuple([int(c) for c in random.integers(0, 100, 8)])) for name in chosen]
    return replace(model, calls=tuple(calls))


def _draw_sides(random: np.random.Generator) -> tuple[str, str]:
    if random.random() < 0.3:
        return "periodic", "periodic"
    low, high = (str(random.choice(["zero", "free", "absorbing"])) for _ in range(2))
    return low, high


def _indices(random: np.random.Generator, count: int, limit: int) -> Array:
    """Draw indices, some of them -1; sometimes none is, so that loops need not ask."""
    if limit == 0:
        return np.full(count, -1, np.int32)
    return random.integers(-1 if random.random() < 0.7 else 0, limit, count).astype(np.int32)


def _band(random: np.random.Generator, rows: int, columns: int) -> Array:
    """Draw a matrix, nearly all zeros but for a band; rows may be empty."""
    band = sum([random.standard_normal() * np.eye(rows, columns, k=int(k)) for k in random.integers(-2, 3, 2)])
    band = band + np.zeros((rows, columns))
    if random.random() < 0.5:
        band[0], band[-1] = random.standard_normal(columns), 0.0
    return band


def _weights(random: np.random.Generator, rows: int, columns: int) -> Weights:
    each = int(random.integers(1, 4))
    return Weights(random.integers(-1, columns, (rows, each)), random.standard_normal((rows, each)))
