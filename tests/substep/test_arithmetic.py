"""Sums and multiples of values in a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.rollout import rollout
from simphys.rollout.engine import plan

from ..helpers.any_model import make_model

SHAPE = (2, 3, 2, 3)


def step(model: Any, params: Any, state: Any, control: None = None) -> Any:
    return model.State(0.5 * state.arrows + params.push)


@pytest.mark.parametrize("long", [plan.LONG, 0], ids=["one launch", "several launches"])
def test_arrays_of_four_axes_are_taken_as_numbers(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no sub-step has seen their elements, which are matrices at most."""
    monkeypatch.setattr(plan, "LONG", long)
    push, begin = (tensor(np.random.default_rng(k).normal(size=SHAPE), requires_grad=True) for k in (0, 1))
    model = make_model(step, {"push": SHAPE}, {"arrows": SHAPE})
    final = rollout(model, model.Params(push), model.State(begin), steps=2).final.arrows
    np.testing.assert_allclose(final.data, 0.25 * begin.data + 1.5 * push.data, rtol=1e-14)
    final.sum().backward()
    assert begin.grad is not None and push.grad is not None
    np.testing.assert_array_equal(begin.grad.data, np.full(SHAPE, 0.25))
    np.testing.assert_array_equal(push.grad.data, np.full(SHAPE, 1.5))
