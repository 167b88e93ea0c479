"""Layers in a step, and what they take: sums over time have one order, and arrays may have other uses, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.nn.layer import Layer
from simphys.rollout import plan, rollout
from simphys.substep import concatenate, element, part, per_element

from ..helpers.any_model import assert_fused_is_nested, make_model

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


@element
def project(v, g):
    return v.dot(g)


@project.adjoint
def adj_project(v, g, adj):
    return adj * g, adj * v


Project = per_element(project, over="nodes", own={"v": "v"}, shared={"g": "g"}, results={"height": ()})


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("use", ["bias", "input", "difference"])
def test_an_array_of_a_layer_may_be_a_vector_of_another_sub_step(use: str, size: int) -> None:
    """It was read beyond its end: a vector lay where numbers were expected."""

    def step(model: Any, params: Any, state: Any, control: Any) -> Any:
        height = Project.apply(model, state.v, params.g)
        given = params.g if use == "input" else params.bias - params.g if use == "difference" else state.x
        y = Layer.apply(model, params.weight, params.g if use == "bias" else params.bias, given)
        return model.State(v=state.v, height=state.height + 0.1 * height, x=state.x + 0.1 * y)

    params = {"g": (size,), "bias": (size,), "weight": (size, size)}
    model = make_model(step, params, {"v": (4, size), "height": (4,), "x": (size,)})
    random = np.random.default_rng(size)
    shapes = {**model.param_shapes(), **model.state_shapes()}
    assert_fused_is_nested(model, {name: 0.5 * random.standard_normal(shape) for name, shape in shapes.items()})


JoinAll = concatenate("v", "x", result="joined")
JoinPairs = concatenate(("v", "w"), result="pairs")
Head = part("joined", begin=1, shape=(3,), over="x", result="head")


def test_an_array_may_be_concatenated_by_its_numbers_and_by_its_elements() -> None:
    """Of two arrays that lay one after the other in a tuple, the first was taken number by number: past the end."""

    def step(model: Any, params: Any, state: Any, control: Any) -> Any:
        by_numbers = Head.apply(model, JoinAll.apply(model, state.v, state.x))
        by_elements = Head.apply(model, JoinPairs.apply(model, state.v, state.w))
        return model.State(v=0.9 * state.v, w=state.w, x=0.5 * by_numbers - by_elements)

    model = make_model(step, {}, {"v": (4, 2), "w": (4, 2), "x": (3,)})
    random = np.random.default_rng(0)
    assert_fused_is_nested(model, {name: random.standard_normal(s) for name, s in model.state_shapes().items()})
