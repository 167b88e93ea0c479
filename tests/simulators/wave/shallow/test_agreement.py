"""Nested steps, fused steps and rollouts of every kind compute the same values and gradients."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout
from simphys.simulators.wave.shallow import Params, ShallowWater, State
from simphys.simulators.wave.shallow.engine import ShallowEngine

from .basins import BASIN, CHANNEL, NAMES, assert_close, basin, leaves, tolerance, unpacked

STEPS = 8
GRIDS = pytest.mark.parametrize(("cells", "boundaries"), [CHANNEL, BASIN], ids=["channel", "basin"])
Case = tuple[ShallowWater, Params, State]
Result = dict[str, np.ndarray]


def evaluate(case: Case, *, all_states: bool = True, **options: Any) -> Result:
    """Return the states over time, and the gradient of a random sum over all of them or over the last one."""
    model, params, state = case
    inputs = [tensor(each.data, requires_grad=True) for each in leaves(params, state)]
    params, state = unpacked(*inputs)
    result = rollout(model, params, state, steps=STEPS, **options)
    random = np.random.default_rng(0)
    seen = (result.states if all_states else result.final).tensors()
    total = sum([(states * random.standard_normal(states.shape)).sum() for states in seen], start=tensor(0.0))
    total.backward()
    values = result.states.arrays()
    for name, x in zip(NAMES, inputs, strict=True):
        assert x.grad is not None
        values[f"gradient by {name}"] = x.grad.data
    return values


def assert_same(found: Result, expected: Result, relative: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert value.any()
        assert_close(found[name], value, relative, name)


@pytest.mark.parametrize("all_states", [False, True], ids=["final", "all states"])
@GRIDS
def test_all_ways_give_the_same_states_and_gradients(
    cells: tuple[int, ...], boundaries: tuple[str, ...], all_states: bool
) -> None:
    case = basin(cells, boundaries)
    nested = evaluate(case, all_states=all_states, mode="nested")
    assert_same(evaluate(case, all_states=all_states), nested, 1e-12)
    assert_same(evaluate(case, all_states=all_states, mode="step"), nested, 1e-12)


@pytest.mark.parametrize(
    "batched", [pytest.param(NAMES, marks=pytest.mark.gpu), ("depth", "velocity"), ("friction", "elevation", "gravity")]
)
def test_a_batch_is_its_members(batched: tuple[str, ...]) -> None:
    case = basin(batch=3, batched=batched)
    assert_same(evaluate(case), evaluate(case, mode="nested"), tolerance(1e-12, 1e-4))


@pytest.mark.parametrize("keep", [[STEPS], [0, 3, 8]], ids=["final", "some steps"])
def test_checkpoints_change_no_bit(keep: list[int]) -> None:
    case = basin()
    whole = rollout(*case, steps=STEPS, keep=keep).plan
    assert whole is not None
    memory = whole.predicted_bytes * 24 // 25
    plan = rollout(*case, steps=STEPS, keep=keep, memory=memory).plan
    assert plan is not None and plan.blocks > 1
    assert_same(evaluate(case, keep=keep, memory=memory), evaluate(case, keep=keep), 0.0)


@pytest.mark.parametrize(("grid", "mode"), [(CHANNEL, "full"), (BASIN, "projected")], ids=["channel", "basin"])
def test_the_derivative_over_the_horizon_is_right(grid: Any, mode: Any) -> None:
    model, params, state = basin(*grid)

    def final(*inputs: Tensor) -> tuple[Tensor, ...]:
        result = rollout(model, *unpacked(*inputs), steps=4)
        return result.elevation, *result.final.tensors()

    gradcheck(final, leaves(params, state), mode=mode, tolerance=1e-6)
    dot_product_test(final, leaves(params, state), tolerance=1e-12)


def test_the_predicted_memory_is_what_it_takes() -> None:
    model, params, state = basin((40, 30), batch=2)
    options: dict[str, Any] = {"batch": 2, "needs": frozenset(Params.names()), "deterministic": True}
    last = {name: values[:, None].copy() for name, values in state.arrays().items()}

    def run() -> ShallowEngine:
        engine = ShallowEngine(model, params.arrays(), None, **options)
        segment = engine.segment(STEPS)
        engine.load(segment, state.arrays())
        engine.advance(segment, first=0, start=0, steps=STEPS)
        engine.pull(segment, first=0, steps=STEPS, adjoint=last)
        return engine

    run()  # memory for compiling kernels does not count
    tracemalloc.start()
    predicted = run().segment_bytes(STEPS, dense=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak == pytest.approx(predicted, rel=0.05)
