"""Adjoints of the old and the new state share memory only if the new one is read before the old one is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.rollout import engine_of, rollout
from simphys.simulator import Model, Record, Shape
from simphys.substep import element, faces

from ..helpers.rounding import assert_equal_but_for_rounding


@dataclass(frozen=True)
class Params(Record):
    rate: Tensor
    """Exchange between cells, [*cells]."""


@dataclass(frozen=True)
class State(Record):
    first: Tensor
    """A quantity of each cell, [*cells]."""
    second: Tensor
    """Another one, [*cells]."""


@element
def flow(d, a, b):
    return a * b * d


@flow.adjoint
def adj_flow(d, a, b, adj):
    return a * b * adj, b * d * adj, a * d * adj


@flow.tangent
def jvp_flow(d, a, b, dd, da, db):
    return a * b * dd + (da * b + a * db) * d


Flow = faces(flow, onto="inflow", between={"d": "quantity"}, both={("a", "b"): "rate"})


@dataclass(frozen=True)
class Exchange(Model):
    cells: Shape = (7, 5)
    dt: float = 0.1

    Params = Params
    State = State

    def param_shapes(self) -> Mapping[str, Shape]:
        return {"rate": self.cells}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"first": self.cells, "second": self.cells}


def step(model: Exchange, params: Params, state: State, control: Tensor | None = None) -> State:
    """Let the old and the new first quantity flow into the second one, so that both adjoints are needed at once."""
    first = Flow.apply(model, state.first, params.rate)
    second = Flow.apply(model, first, params.rate) + Flow.apply(model, state.first, params.rate)
    return State(first, second + state.second)


Exchange.bind(step=step, engine=engine_of(step))


@pytest.mark.parametrize("large", [False, True], ids=["a loop over time", "a launch each step"])
@pytest.mark.parametrize("keep", ["all", "final"])
def test_gradients_are_those_of_nested_steps(
    keep: Literal["all", "final"], large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(runtime, "parallel", lambda work_us: True)
    found: list[list[Any]] = []
    modes: tuple[Literal["nested", "fused"], ...] = ("nested", "fused")
    for mode in modes:
        random = np.random.default_rng(5)
        inputs = [tensor(random.uniform(0.5, 1.5, (7, 5)), requires_grad=True) for _ in range(3)]
        states = rollout(Exchange(), Params(inputs[0]), State(*inputs[1:]), steps=3, mode=mode, keep=keep).states
        ((states.first**2).sum() + (states.second**2).sum()).backward()
        found.append([x.grad.data for x in inputs if x.grad is not None])
        assert len(found[-1]) == 3
    for nested, fused in zip(*found, strict=True):
        assert_equal_but_for_rounding(fused, nested, ulps=500)
