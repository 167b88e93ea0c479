"""Driven, damped pendulums in plain NumPy: the smallest simulator that implements the whole contract.

Each of n pendulums: rate' = rate + dt (-k sin(angle) - c rate + torque), angle' = angle + dt rate'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops, tensor
from simphys.simulator import Array, Arrays, Model, Record, Shape
from simphys.simulator.array_engine import ArrayEngine


@dataclass(frozen=True)
class Params(Record):
    stiffness: Tensor
    """[n]"""
    damping: Tensor
    """[]"""


@dataclass(frozen=True)
class State(Record):
    angle: Tensor
    """[n]"""
    rate: Tensor
    """[n]"""


@dataclass(frozen=True)
class Pendulums(Model):
    n: int = 3
    dt: float = 0.05
    Params = Params
    State = State

    def param_shapes(self) -> dict[str, Shape]:
        return {"stiffness": (self.n,), "damping": ()}

    def state_shapes(self) -> dict[str, Shape]:
        return {"angle": (self.n,), "rate": (self.n,)}

    def control_shape(self) -> Shape | None:
        return (self.n,)

    def step(self, params: Any, state: Any, control: Tensor | None = None) -> State:
        push = -params.stiffness * ops.sin(state.angle) - params.damping * state.rate
        rate = state.rate + self.dt * (push if control is None else push + control)
        return State(state.angle + self.dt * rate, rate)

    def engine(self, params: Arrays, control: Array | None, **options: Any) -> PendulumEngine:
        return PendulumEngine(self, params, control, **options)

    def advice(self, params: Arrays, state: Arrays) -> str:
        return "Lower the damping."


class PendulumEngine(ArrayEngine):
    """Fused loops."""

    advanced = 0
    """Number of steps computed by all engines, for tests."""

    def __init__(self, model: Pendulums, params: Arrays, control: Array | None, **options: Any) -> None:
        super().__init__(model, params, control, **options)
        self.k, self.c = self.params["stiffness"], self.params["damping"][:, None]

    def _torque(self, t: int) -> Array | float:
        return 0.0 if self.control is None else self.control[:, t]

    def segment(self, steps: int) -> Arrays:
        return {name: np.full_like(values, np.nan) for name, values in super().segment(steps).items()}

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        return super().segment_bytes(steps + 3, dense=dense)  # `pull` allocates three more states

    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        for j in range(start, start + steps):
            angle, rate = segment["angle"][:, j], segment["rate"][:, j]
            PendulumEngine.advanced += 1
            push = -self.k * np.sin(angle) - self.c * rate + self._torque(first + j)
            segment["rate"][:, j + 1] = rate + self.model.dt * push
            segment["angle"][:, j + 1] = angle + self.model.dt * segment["rate"][:, j + 1]

    def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
        dt, dense = self.model.dt, adjoint["angle"].shape[1] > 1
        for j in reversed(range(steps)):
            new, old = (j + 1, j) if dense else (0, 0)
            angle, rate = segment["angle"][:, j], segment["rate"][:, j]
            adj_angle = adjoint["angle"][:, new].copy()
            adj_rate = adjoint["rate"][:, new] + dt * adj_angle
            self.sums["stiffness"] -= dt * adj_rate * np.sin(angle)
            self.sums["damping"] -= dt * (adj_rate * rate).sum(axis=1)
            if self.control is not None:
                self.sums["control"][:, first + j] += dt * adj_rate
            seed = (adjoint["angle"][:, old].copy(), adjoint["rate"][:, old].copy()) if dense else (0.0, 0.0)
            adjoint["angle"][:, old] = seed[0] + (adj_angle - dt * self.k * np.cos(angle) * adj_rate)
            adjoint["rate"][:, old] = seed[1] + adj_rate * (1 - dt * self.c)

    def push(self, segment: Any, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        dt = self.model.dt
        along = super().segment(steps)
        self.load(along, tangent)
        dk, dc, torque = self.tangents["stiffness"], self.tangents["damping"][:, None], self.tangents.get("control")
        for j in range(steps):
            angle, rate = segment["angle"][:, j], segment["rate"][:, j]
            da, dr = along["angle"][:, j], along["rate"][:, j]
            push = -dk * np.sin(angle) - self.k * np.cos(angle) * da - dc * rate - self.c * dr
            along["rate"][:, j + 1] = dr + dt * (push + (0.0 if torque is None else torque[:, first + j]))
            along["angle"][:, j + 1] = da + dt * along["rate"][:, j + 1]
        return along


def system(
    *, n: int = 3, steps: int = 20, batch: int | None = None, shared: tuple[str, ...] = (), control: bool = True
) -> tuple[Pendulums, Params, State, Tensor | None]:
    """Make a model with random parameters, state and control as leaves; those in `shared` have no batch axis."""
    random = np.random.default_rng(1)

    def leaf(name: str, *shape: int, low: float = -1.0) -> Tensor:
        lead = () if batch is None or name in shared else (batch,)
        return tensor(random.uniform(low, 1.5, (*lead, *shape)), requires_grad=True)

    params = Params(leaf("stiffness", n, low=0.5), leaf("damping", low=0.1))
    state = State(leaf("angle", n), leaf("rate", n))
    return Pendulums(n), params, state, leaf("control", steps, n) if control else None
