"""Adjoints of the old and the new state share memory only if the new one is read before the old one is written."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.rollout import rollout
from simphys.substep import element, faces

from ..helpers.any_model import make_model
from ..helpers.rounding import assert_equal_but_for_rounding


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


def step(model: Any, params: Any, state: Any, control: None = None) -> Any:
    """Let the old and the new first quantity flow into the second one, so that both adjoints are needed at once."""
    first = Flow.apply(model, state.first, params.rate)
    second = Flow.apply(model, first, params.rate) + Flow.apply(model, state.first, params.rate)
    return model.State(first, second + state.second)


CELLS = (7, 5)
MODEL = make_model(step, {"rate": CELLS}, {"first": CELLS, "second": CELLS}, cells=CELLS)


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
        inputs = [tensor(random.uniform(0.5, 1.5, CELLS), requires_grad=True) for _ in range(3)]
        states = rollout(MODEL, MODEL.Params(inputs[0]), MODEL.State(*inputs[1:]), steps=3, mode=mode, keep=keep).states
        ((states.first**2).sum() + (states.second**2).sum()).backward()
        found.append([x.grad.data for x in inputs if x.grad is not None])
        assert len(found[-1]) == 3
    for nested, fused in zip(*found, strict=True):
        assert_equal_but_for_rounding(fused, nested, ulps=500)
