"""Sums and multiples of values in a recorded step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.rollout import engine_of, rollout
from simphys.rollout.engine import plan
from simphys.simulator import Model, Record

SHAPE = (2, 3, 2, 3)


@dataclass(frozen=True)
class Params(Record):
    push: Tensor


@dataclass(frozen=True)
class State(Record):
    arrows: Tensor


@dataclass(frozen=True)
class Cube(Model):
    """Vectors of the cells of a cube."""

    dt: float = 0.1
    Params, State = Params, State

    def param_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"push": SHAPE}

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"arrows": SHAPE}


def step(model: Cube, params: Params, state: State, control: Tensor | None = None) -> State:
    return State(0.5 * state.arrows + params.push)


Cube.bind(step=step, engine=engine_of(step))


@pytest.mark.parametrize("long", [plan.LONG, 0], ids=["one launch", "several launches"])
def test_arrays_of_four_axes_are_taken_as_numbers(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no sub-step has seen their elements, which are matrices at most."""
    monkeypatch.setattr(plan, "LONG", long)
    push, begin = (tensor(np.random.default_rng(k).normal(size=SHAPE), requires_grad=True) for k in (0, 1))
    final = rollout(Cube(), Params(push), State(begin), steps=2).final.arrows
    np.testing.assert_allclose(final.data, 0.25 * begin.data + 1.5 * push.data, rtol=1e-14)
    final.sum().backward()
    assert begin.grad is not None and push.grad is not None
    np.testing.assert_array_equal(begin.grad.data, np.full(SHAPE, 0.25))
    np.testing.assert_array_equal(push.grad.data, np.full(SHAPE, 1.5))
