"""Tanks that drain through a hole, level' = level - dt sqrt(hole) sqrt(level): where a gradient breaks in every way.

A level below zero has no square root; an empty tank, and a closed hole, have one without a derivative. The fused loops
have no tangent.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import MissingJvp, Tensor, ops
from simphys.simulator import Array, Arrays, Engine, Model, Record, Rows, Shape


@dataclass(frozen=True)
class Params(Record):
    hole: Tensor
    """[]"""


@dataclass(frozen=True)
class State(Record):
    level: Tensor
    """[n]"""


@dataclass(frozen=True)
class Tanks(Model):
    n: int = 2
    dt: float = 0.1
    Params = Params
    State = State

    def param_shapes(self) -> dict[str, Shape]:
        return {"hole": ()}

    def state_shapes(self) -> dict[str, Shape]:
        return {"level": (self.n,)}

    def control_shape(self) -> Shape | None:
        return None

    def step(self, params: Any, state: Any, control: Tensor | None = None) -> Any:
        return state.replace(level=state.level - self.dt * ops.sqrt(params.hole) * ops.sqrt(state.level))

    def engine(self, params: Arrays, control: Array | None, **options: Any) -> TankEngine:
        return TankEngine(self, params)

    def advice(self, params: Arrays, state: Arrays) -> str:
        return "Fill the tanks."


class TankEngine(Engine):
    """The fused loops of a single member; a segment is the levels [1, rows, n]."""

    def __init__(self, model: Tanks, params: Arrays) -> None:
        self.model, self.hole = model, params["hole"]
        self.sum = np.zeros(())

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        return 8 * (steps + 1) * self.model.n

    def segment(self, steps: int) -> Array:
        return np.zeros((1, steps + 1, self.model.n))

    def load(self, segment: Any, state: Arrays) -> None:
        segment[:, 0] = state["level"]

    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        for j in range(start, start + steps):
            segment[:, j + 1] = segment[:, j] - self.model.dt * np.sqrt(self.hole) * np.sqrt(segment[:, j])

    def read(self, segment: Any, rows: Rows, names: Collection[str] | None = None) -> Arrays:
        return {"level": np.array(segment[:, rows])}

    def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
        dense, dt = adjoint["level"].shape[1] > 1, self.model.dt
        for j in reversed(range(steps)):
            new, old = (j + 1, j) if dense else (0, 0)
            adj, level = adjoint["level"][:, new].copy(), segment[:, j]
            self.sum = self.sum - (adj * dt * np.sqrt(level) / (2 * np.sqrt(self.hole))).sum()
            seed = adjoint["level"][:, old].copy() if dense else 0.0
            adjoint["level"][:, old] = seed + adj * (1 - dt * np.sqrt(self.hole) / (2 * np.sqrt(level)))

    def gradients(self) -> Arrays:
        found, self.sum = {"hole": np.asarray(self.sum)}, np.zeros(())
        return found

    def push(self, segment: Any, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        raise MissingJvp("tanks have no tangent")
