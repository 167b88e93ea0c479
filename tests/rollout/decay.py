"""Amounts that decay at a common rate, in plain NumPy: states of any size, with steps that cost next to nothing.

amount' = (1 - dt rate) amount
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import MissingJvp, Tensor, tensor
from simphys.simulator import Array, Arrays, Engine, Model, Record, Rows, Shape


@dataclass(frozen=True)
class Params(Record):
    rate: Tensor
    """[]"""


@dataclass(frozen=True)
class State(Record):
    amount: Tensor
    """[n]"""


@dataclass(frozen=True)
class Decay(Model):
    n: int
    dt: float = 0.01
    Params = Params
    State = State

    def param_shapes(self) -> dict[str, Shape]:
        return {"rate": ()}

    def state_shapes(self) -> dict[str, Shape]:
        return {"amount": (self.n,)}

    def control_shape(self) -> Shape | None:
        return None

    def step(self, params: Any, state: Any, control: Tensor | None = None) -> State:
        return State(state.amount * (1 - self.dt * params.rate))

    def engine(self, params: Arrays, control: Array | None, **options: Any) -> DecayEngine:
        return DecayEngine(self, params, options["batch"])

    def advice(self, params: Arrays, state: Arrays) -> str:
        return "Let it decay."


class DecayEngine(Engine):
    """Fused loops; a segment is an array [B, rows, n]."""

    def __init__(self, model: Decay, params: Arrays, batch: int) -> None:
        self.model, self.batch = model, batch
        self.factor = 1 - model.dt * params["rate"].reshape(-1, 1)
        self.shared = params["rate"].ndim == 0
        self.sum = np.zeros(batch)

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        return 8 * self.batch * self.model.n * (steps + 1 + dense)  # a product in `pull`

    def segment(self, steps: int) -> Array:
        return np.empty((self.batch, steps + 1, self.model.n))

    def load(self, segment: Array, state: Arrays) -> None:
        segment[:, 0] = state["amount"]

    def advance(self, segment: Array, *, first: int, start: int, steps: int) -> None:
        for j in range(start, start + steps):
            np.multiply(segment[:, j], self.factor, out=segment[:, j + 1])

    def read(self, segment: Array, rows: Rows, names: Collection[str] | None = None) -> Arrays:
        return {"amount": np.array(segment[:, rows])}

    def pull(self, segment: Array, *, first: int, steps: int, adjoint: Arrays) -> None:
        given = adjoint["amount"]
        dense = given.shape[1] > 1
        for j in reversed(range(steps)):
            for member in range(self.batch):
                self.sum[member] -= self.model.dt * (given[member, (j + 1) * dense] @ segment[member, j])
            if dense:
                given[:, j] += self.factor * given[:, j + 1]
            else:
                given[:, 0] *= self.factor

    def gradients(self) -> Arrays:
        total, self.sum = self.sum, np.zeros(self.batch)
        return {"rate": total.sum() if self.shared else total}

    def push(self, segment: Array, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        raise MissingJvp("decay has no tangent")


def system(n: int, *, batch: int | None = None) -> tuple[Decay, Params, State]:
    """Make a model with its parameters and state; in a batch, all members share the rate."""
    amount = np.linspace(1, 2, n) if batch is None else np.linspace(1, 2, batch * n).reshape(batch, n)
    return Decay(n), Params(tensor(0.3, requires_grad=True)), State(tensor(amount, requires_grad=True))
