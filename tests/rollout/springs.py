"""Undamped springs in plain NumPy: linear, so that adjoints need no states, and reversible in time.

rate' = rate - dt k angle, angle' = angle + dt rate'. The engine implements all of `simphys.simulator.Engine`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulator import Array, Arrays, Model, Record, Rewinding, Shape
from simphys.simulator.array_engine import ArrayEngine


@dataclass(frozen=True)
class Params(Record):
    stiffness: Tensor
    """[n]"""


@dataclass(frozen=True)
class State(Record):
    angle: Tensor
    """[n]"""
    rate: Tensor
    """[n]"""


@dataclass(frozen=True)
class Springs(Model):
    n: int = 3
    dt: float = 0.05
    Params = Params
    State = State

    def param_shapes(self) -> dict[str, Shape]:
        return {"stiffness": (self.n,)}

    def state_shapes(self) -> dict[str, Shape]:
        return {"angle": (self.n,), "rate": (self.n,)}

    def control_shape(self) -> None:
        return None

    def step(self, params: Any, state: Any, control: Tensor | None = None) -> State:
        rate = state.rate - self.dt * params.stiffness * state.angle
        return State(state.angle + self.dt * rate, rate)

    def engine(self, params: Arrays, control: Array | None, **options: Any) -> SpringEngine:
        return SpringEngine(self, params, control, **options)

    def advice(self, params: Arrays, state: Arrays) -> str:
        return "Take softer springs."


class SpringEngine(Rewinding, ArrayEngine):
    """Fused loops."""

    advanced = 0
    """Number of steps computed forward by all engines, for tests."""
    rebuilt = 0
    """Number of steps recomputed backward by all engines, for tests."""
    sparse_adjoints = True

    model: Springs

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.k = self.params["stiffness"]

    @property
    def needs_states(self) -> bool:
        return "stiffness" in self.needs

    def segment(self, steps: int) -> Arrays:
        return {name: np.full_like(values, np.nan) for name, values in super().segment(steps).items()}

    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        for j in range(start, start + steps):
            SpringEngine.advanced += 1
            segment["rate"][:, j + 1] = segment["rate"][:, j] - self.model.dt * self.k * segment["angle"][:, j]
            segment["angle"][:, j + 1] = segment["angle"][:, j] + self.model.dt * segment["rate"][:, j + 1]

    def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
        dt = self.model.dt
        running = {name: values[:, -1].copy() for name, values in adjoint.items()}
        for j in reversed(range(steps)):
            running["rate"] = running["rate"] + dt * running["angle"]
            if self.needs_states:
                self.sums["stiffness"] -= dt * running["rate"] * segment["angle"][:, j]
            running["angle"] = running["angle"] - dt * self.k * running["rate"]
            for name, values in adjoint.items():
                if values.shape[1] > 1:
                    running[name] = running[name] + values[:, j]
                    values[:, j] = running[name]
        for name, values in adjoint.items():
            values[:, 0] = running[name]

    def push(self, segment: Any, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        along = super().segment(steps)
        self.load(along, tangent)
        for j in range(steps):
            pull = self.tangents["stiffness"] * segment["angle"][:, j] + self.k * along["angle"][:, j]
            along["rate"][:, j + 1] = along["rate"][:, j] - self.model.dt * pull
            along["angle"][:, j + 1] = along["angle"][:, j] + self.model.dt * along["rate"][:, j + 1]
        return along

    def tape_bytes(self, steps: int) -> int | None:
        return 8 * self.batch * 2 * self.model.n  # the last state

    def tape(self, steps: int) -> Arrays:
        return {"steps": np.array(steps)}

    def record(self, tape: Arrays, segment: Arrays, *, first: int, steps: int) -> None:
        if first + steps == tape["steps"]:
            tape.update({name: values[:, steps].copy() for name, values in segment.items()})

    def rebuild(self, tape: Arrays, segment: Arrays, *, first: int, steps: int) -> None:
        last = first + steps == tape["steps"]
        behind = {name: tape[name] if last else values[:, 0].copy() for name, values in segment.items()}
        for name, values in segment.items():
            values[:, steps] = behind[name]
        for j in reversed(range(steps)):
            SpringEngine.rebuilt += 1
            segment["angle"][:, j] = segment["angle"][:, j + 1] - self.model.dt * segment["rate"][:, j + 1]
            segment["rate"][:, j] = segment["rate"][:, j + 1] + self.model.dt * self.k * segment["angle"][:, j]


def system(*, n: int = 3, batch: int | None = None, stiff: bool = False) -> tuple[Springs, Params, State]:
    """Make a model with a random state as leaves; with `stiff`, the stiffness is a leaf, too."""
    random = np.random.default_rng(1)
    lead = () if batch is None else (batch,)
    stiffness = tensor(random.uniform(0.5, 1.5, n), requires_grad=stiff)
    angle, rate = (tensor(random.normal(size=(*lead, n)), requires_grad=True) for _ in range(2))
    return Springs(n), Params(stiffness), State(angle, rate)
