"""Rules of whole arrays: sums, dense layers, concatenation and its parts, operations on the host."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from simphys.nn.layer import Layer
from simphys.substep import concatenate, dense, operation, part, per_element, total

from .formulas import carry, merge, squash, weigh
from .world import Array, Call, Rule, World

Energy = total(weigh, over="nodes", own={"m": "a", "v": "v"}, shared={"g": "tilt"}, results={"energy": ()})
Momentum = total(carry, over="nodes", own={"v": "v", "m": "a"}, results={"momentum": "v"})
Force = total(carry, over="nodes", own={"v": "v"}, shared={"m": "c"}, results={"force": "v"})
Squash = dense(squash, weight="weight", bias="bias", given="x", result="y")
Rows = per_element(merge, over="rows", own={"p": "x", "q": "y"}, shared={"s": "c"})
Join = concatenate("a", ("x", "v"), result="joined")
JoinCells = concatenate("u", "k", result="joined")
JoinAll = concatenate("r", "c", "x", result="joined")


@functools.cache
def _part(begin: int, shape: tuple[int, ...], over: str) -> Any:
    return part("joined", begin=begin, shape=shape, over=over, result="piece")


def _rejoin(model: Any, a: Any, x: Any, v: Any) -> Any:
    """Take points from another place than that at which they were put."""
    joined, n = Join.apply(model, a, x, v), model.nodes
    return _part(n // 2, (n, model.dim), "nodes").apply(model, joined)


def _rejoin_all(model: Any, r: Any, c: Any, x: Any) -> Any:
    return _part(1, (model.row,), "rows").apply(model, JoinAll.apply(model, r, c, x))


def _flatten(model: Any, u: Any, k: Any) -> Any:
    return _part(1, (model.nodes,), "nodes").apply(model, JoinCells.apply(model, u, k))


def _signals(model: Any, control: Any) -> Any:
    return _part(model.controls - model.nodes, (model.nodes,), "nodes").apply(model, control)


def share(model: Any, size: Array, weight: Array) -> Any:
    """Return shares of a weighted sum, and the sum."""
    total = np.vdot(weight, size)
    return size * total, total


def adj_share(model: Any, size: Array, weight: Array, adj_part: Array, adj_sum: Array) -> Any:
    w = np.vdot(size, adj_part) + adj_sum
    return adj_part * np.vdot(weight, size) + w * weight, w * size


def jvp_share(model: Any, size: Array, weight: Array, dsize: Array, dweight: Array) -> Any:
    moved = np.vdot(dweight, size) + np.vdot(weight, dsize)
    return dsize * np.vdot(weight, size) + size * moved, moved


def solve(model: Any, matrix: Array, given: Array) -> Array:
    """Return y with (1 + W W^T) y = x."""
    return np.linalg.solve(np.eye(len(given)) + matrix @ matrix.T, given)


def adj_solve(model: Any, matrix: Array, y: Array, adj_y: Array) -> Any:
    g = np.linalg.solve(np.eye(len(y)) + matrix @ matrix.T, adj_y)
    return -(np.outer(g, y) + np.outer(y, g)) @ matrix, g


def jvp_solve(model: Any, matrix: Array, y: Array, dmatrix: Array, dgiven: Array) -> Array:
    moved = (dmatrix @ matrix.T + matrix @ dmatrix.T) @ y
    return np.linalg.solve(np.eye(len(y)) + matrix @ matrix.T, dgiven - moved)


def smear(model: Any, u: Array) -> Array:
    return np.cumsum(u, axis=0)


def adj_smear(model: Any, adj_smeared: Array) -> Any:
    return np.flip(np.cumsum(np.flip(adj_smeared, 0), axis=0), 0)


def jvp_smear(model: Any, du: Array) -> Array:
    return np.cumsum(du, axis=0)


Share = operation(share, adjoint=adj_share, tangent=jvp_share, results={"part": "size", "sum": lambda model: ()})
Solve = operation(solve, adjoint=adj_solve, tangent=jvp_solve, results={"y": "given"})
Smear = operation(smear, adjoint=adj_smear, tangent=jvp_smear, results={"smeared": "u"}, is_cheap=True)
SmearPoints = operation(
    smear, adjoint=adj_smear, tangent=jvp_smear, results={"smeared": "u"}, name="SmearPoints", work_arrays=1
)

RULES = {
    "energy": Rule(("numbers", "points", "vector"), ("number",), Energy.apply),
    "momentum": Rule(("points", "numbers"), ("vector",), Momentum.apply),
    "force": Rule(("points", "number"), ("vector",), Force.apply),
    "layer": Rule(("matrix", "row", "row"), ("row",), Layer.apply),
    "layer of another": Rule(("matrix", "row", "row"), ("row",), Squash.apply),
    "rows": Rule(("row", "row", "number"), ("row",), Rows.apply),
    "rejoin": Rule(("numbers", "points", "points"), ("points",), _rejoin),
    "rejoin all": Rule(("row", "number", "points"), ("row",), _rejoin_all),
    "flatten": Rule(("cells", "cells"), ("numbers",), _flatten, lambda model: 2 * np.prod(model.cells) > model.nodes),
    "signals": Rule(("control",), ("numbers",), _signals, lambda model: model.controls >= model.nodes),
    "share": Rule(("numbers", "numbers"), ("numbers", "number"), Share.apply),
    "solve": Rule(("matrix", "row"), ("row",), Solve.apply),
    "smear": Rule(("cells",), ("cells",), Smear.apply),
    "smear points": Rule(("points",), ("points",), SmearPoints.apply),
    "add rows": Rule(("row", "row"), ("row",), lambda model, r, s: r - 0.5 * s),
}

OF_VECTORS = {
    "energy in a row": Rule(("numbers", "points", "row"), ("number",), Energy.apply),
    "layer of vectors": Rule(("matrix", "vector", "vector"), ("vector",), Layer.apply),
    "layer with a vector": Rule(("matrix", "vector", "row"), ("row",), Squash.apply),
}
"""Rules of a world whose rows are as long as its vectors: they take arrays as vectors and number by number."""


def mix_vectors(model: World, random: np.random.Generator) -> World:
    """Let some steps take one array as a vector and as a row; the other steps remain as they are."""
    if random.random() < 0.5:
        return model
    calls = list(model.calls)
    for name in random.choice([*OF_VECTORS], 2, replace=False):
        calls.insert(int(random.integers(len(calls))), Call(str(name), tuple(random.integers(0, 100, 8).tolist())))
    return replace(model, calls=tuple(calls), row=model.dim)
