"""The nested step and rollouts of every kind compute the same values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout
from simphys.simulators.smoke import Params, Smoke, State

from .fluids import KINDS, NAMES, fluid, fresh, leaves, unpacked

STEPS = 5
Case = tuple[Smoke, Params, State]
Result = dict[str, np.ndarray]


def weights(shape: tuple[int, ...], seed: int) -> Tensor:
    return tensor(np.random.default_rng(seed).standard_normal(shape))


def evaluate(case: Case, *, all_states: bool = True, **options: Any) -> Result:
    """Return the states over time, and the gradient of a random sum over all of them or over the last one."""
    model, params, state = case
    params, state = fresh(leaves(params, state))
    result = rollout(model, params, state, steps=STEPS, **options)
    total: Tensor = tensor(0.0)
    for seed, name in enumerate(state.names()):
        final = getattr(result.final, name)
        total = total + (weights(final.shape, seed) * final).sum()
        if all_states:
            states = getattr(result, name)
            total = total + (weights(states.shape, 3 + seed) * states).sum()
    total.backward()
    values = result.states.arrays()
    for name, x in zip(NAMES, leaves(params, state), strict=True):
        values[f"gradient by {name}"] = np.zeros(x.shape) if x.grad is None else x.grad.data
    return values


def assert_same(found: Result, expected: Result, relative: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        atol = relative * float(np.abs(value).max(initial=0))
        np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("all_states", [False, True], ids=["final", "all states"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_ways_give_the_same_states_and_gradients(kind: str, all_states: bool) -> None:
    case = fluid(kind)
    nested = evaluate(case, all_states=all_states, mode="nested")
    if all_states and kind == "channel":
        assert all(value.any() for value in nested.values())
    assert_same(evaluate(case, all_states=all_states), nested, 1e-11)


@pytest.mark.gpu
def test_fused_and_nested_agree_on_any_device() -> None:
    case = fluid("walls")
    relative = 1e-11 if runtime.real_dtype() == np.float64 else 1e-3
    assert_same(evaluate(case), evaluate(case, mode="nested"), relative)


@pytest.mark.parametrize("batched", [NAMES, ("velocity", "viscosity"), ("smoke", "boundary_velocity", "obstacle")])
def test_a_batch_is_its_members(batched: tuple[str, ...]) -> None:
    case = fluid("channel", batch=2, batched=batched)
    assert_same(evaluate(case), evaluate(case, mode="nested"), 1e-11)


@pytest.mark.parametrize("keep", [[STEPS], [0, 2]], ids=["final", "some steps"])
def test_checkpoints_change_no_bit(keep: list[int]) -> None:
    case = fluid("walls")
    whole = rollout(*case, steps=STEPS, keep=keep).plan
    assert whole is not None
    memory = whole.predicted_bytes - 1000
    plan = rollout(*case, steps=STEPS, keep=keep, memory=memory).plan
    assert plan is not None and plan.blocks > 1
    assert_same(evaluate(case, keep=keep, memory=memory), evaluate(case, keep=keep), 0.0)


@pytest.mark.parametrize("kind", ["channel", "walls"])
def test_the_derivative_over_the_horizon_is_right(kind: str) -> None:
    model, params, state = fluid(kind)

    def final(*inputs: Tensor) -> tuple[Tensor, ...]:
        return rollout(model, *unpacked(*inputs), steps=3).final.tensors()

    gradcheck(final, leaves(params, state), mode="projected", tolerance=1e-6)
    dot_product_test(final, leaves(params, state), tolerance=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_tangents_of_the_fused_rollout_are_those_of_the_gradient(kind: str) -> None:
    model, params, state = fluid(kind, batch=2 if kind == "torus" else None)

    def all_states(*inputs: Tensor) -> tuple[Tensor, ...]:
        return rollout(model, *unpacked(*inputs), steps=3).states.tensors()

    dot_product_test(all_states, leaves(params, state), tolerance=1e-10)
