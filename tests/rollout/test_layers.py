"""Gradients of layers within a memory budget: sums over time have one order, however a horizon is cut into segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.nn.layer import Layer
from simphys.rollout import plan, rollout

from ..helpers.any_model import make_model

STEPS = 40


def apply_once(model: Any, params: Any, state: Any, control: Any) -> Any:
    return model.State(x=state.x + 0.1 * Layer.apply(model, params.weight, params.bias, state.x))


def apply_bias_again(model: Any, params: Any, state: Any, control: Any) -> Any:
    """Add up adjoints of the bias in each step, besides those of the layer."""
    y = Layer.apply(model, params.weight, params.bias, state.x)
    return model.State(x=state.x + 0.1 * (y - params.bias))


def apply_twice(model: Any, params: Any, state: Any, control: Any) -> Any:
    y = Layer.apply(model, params.weight, params.bias, state.x)
    return model.State(x=state.x + 0.1 * Layer.apply(model, params.weight, params.bias, y))


@pytest.mark.parametrize("step", [apply_once, apply_bias_again, apply_twice])
@pytest.mark.parametrize("size", [1, 3, 12, 17])
def test_within_a_budget_the_gradient_of_a_layer_is_the_same_to_the_last_bit(step: Any, size: int) -> None:
    model = make_model(step, {"weight": (size, size), "bias": (size,)}, {"x": (size,)})
    random = np.random.default_rng(size)
    arrays = [random.standard_normal(shape) for shape in ((size, size), size, size)]

    def leaves() -> tuple[Any, Any]:
        weight, bias, x = (tensor(0.3 * each, requires_grad=True) for each in arrays)
        return model.Params(weight=weight, bias=bias), model.State(x=x)

    def gradients(memory: Any) -> list[bytes]:
        params, state = leaves()
        x = rollout(model, params, state, steps=STEPS, memory=memory).states.x
        (x * tensor(np.random.default_rng(0).uniform(0.5, 1.5, x.shape))).sum().backward()
        return [each.grad.numpy().tobytes() for each in (*params.tensors(), *state.tensors())]

    budget = int(0.6 * plan(model, *leaves(), steps=STEPS).predicted_bytes)
    assert plan(model, *leaves(), steps=STEPS, memory=budget).recomputed_steps
    assert gradients(budget) == gradients("all")
