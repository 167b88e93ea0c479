"""Rollouts of waves within a memory budget: stored states, states recomputed backward in time, and no states.

Where results are compared to the bit, all plans launch the same compiled kernels, with the same inputs.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys import rollout as rollouts
from simphys.autograd import Tensor, linearize, tensor
from simphys.autograd.errors import InputError
from simphys.rollout import Plan, Trajectory
from simphys.simulators.wave.fused.engine import WaveEngine
from simphys.simulators.wave.model import Wave

from .systems import PLANE, TORUS, Case, assert_same, case, evaluate, weighted_sum

STEPS = 37


def plan(given: Case, **options: Any) -> Plan:
    model, params, state, control, steps = given
    return rollouts.plan(model, params, state, **{"steps": steps, "control": control, **options})


def budgets(given: Case, **options: Any) -> dict[str, int]:
    """Find the largest budget [B] that leads to each kind of plan."""
    found: dict[str, int] = {}
    memory = plan(given, **options).predicted_bytes
    try:
        while True:
            each = plan(given, memory=memory, **options)
            found.setdefault(each.kind, memory)
            memory = min(memory, each.predicted_bytes) - 8
    except InputError:
        return found


@pytest.fixture
def none_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Force states to be recomputed backward in time, whatever fits into memory."""

    def refused(**_: Any) -> Plan:
        raise InputError("rollout, memory", "states fit", "none", "Store none.")

    monkeypatch.setattr(importlib.import_module("simphys.rollout.fused"), "make_plan", refused)


def without_sources(model: Wave, steps: int, **options: Any) -> Case:
    """Build a case with fixed speed and receivers and without sources, whose `pull` needs no states."""
    given = case(replace(model, sources=()), steps, **options)
    fixed = {name: tensor(getattr(given.params, name).data) for name in ("speed", "receiver_position")}
    return given._replace(params=given.params.replace(**fixed))


@pytest.mark.parametrize("all_states", [False, True], ids=["final", "all states"])
@pytest.mark.parametrize("model", [PLANE, TORUS], ids=["plane", "torus"])
def test_stored_states_give_the_same_gradients_to_the_bit(
    model: Wave, all_states: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WaveEngine, "tape_bytes", lambda self, steps: None)
    options: dict[str, Any] = {"keep": [3, 8, STEPS], "fields": ["received"]} if all_states else {"keep": "final"}
    given = case(model, STEPS)
    expected = evaluate(given, all_states=all_states, **options)
    found = budgets(given, **options)
    assert set(found) == {"all", "segments", "binomial"}
    for memory in found.values():
        assert_same(evaluate(given, all_states=all_states, memory=memory, **options), expected, 0)


@pytest.mark.parametrize("all_states", [False, True], ids=["final", "all states"])
@pytest.mark.parametrize("model", [PLANE, TORUS], ids=["layers", "none"])
def test_states_computed_backward_in_time_give_the_same_but_for_rounding(
    model: Wave, all_states: bool, request: pytest.FixtureRequest
) -> None:
    given = case(model, STEPS, batch=2, batched=("source_position",))
    options = {} if all_states else {"keep": "final"}
    expected = evaluate(given, all_states=all_states, **options)
    request.getfixturevalue("none_is_stored")
    whole = plan(given, **options)
    cut = plan(given, **options, memory=whole.predicted_bytes - 8)
    assert (whole.kind, whole.block, cut.kind, cut.block) == ("rebuilt", STEPS, "rebuilt", STEPS // 2)
    for memory in (whole.predicted_bytes, cut.predicted_bytes):
        assert_same(evaluate(given, all_states=all_states, memory=memory, **options), expected, 1e-10)


@pytest.mark.parametrize("options", [{"keep": "final"}, {"keep": [0, 3, STEPS], "fields": ["received"]}, {}], ids=str)
def test_without_states_gradients_are_the_same_to_the_bit(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = without_sources(PLANE, STEPS, batch=2, batched=("height",))
    all_states = options.get("keep") != "final"
    assert plan(given, **options).kind == "stateless"
    without = evaluate(given, all_states=all_states, **options)
    small = plan(given, memory=plan(given, **options).predicted_bytes - 8, **options)
    assert small.kind == "stateless" and small.block < STEPS
    assert_same(evaluate(given, all_states=all_states, memory=small.predicted_bytes, **options), without, 0)
    monkeypatch.setattr(WaveEngine, "needs_states", True)
    assert plan(given, **options).kind == "all"
    assert_same(evaluate(given, all_states=all_states, **options), without, 0)


def test_states_are_stored_where_an_adjoint_needs_them() -> None:
    assert plan(without_sources(PLANE, STEPS)).kind == "stateless"
    assert plan(case(PLANE, STEPS)).kind == "all"
    assert plan(case(replace(PLANE, sources=()), STEPS)).kind == "all"
    given = without_sources(PLANE, STEPS)
    assert plan(given, running=lambda states, steps: states.received.sum()).kind == "all"


def test_without_states_memory_does_not_grow_with_the_horizon() -> None:
    few, many = (plan(without_sources(PLANE, steps), keep="final").predicted_bytes for steps in (5_000, 500_000))
    assert few == many


def test_without_layers_states_computed_backward_take_a_few_numbers_a_step() -> None:
    """The tape holds source positions and strengths, so this plan beats one that computes stored states twice."""
    budget = {8_000: 850_000, 16_000: 1_050_000}
    found = [plan(case(TORUS, steps), keep="final", memory=memory) for steps, memory in budget.items()]
    assert [each.kind for each in found] == ["rebuilt", "rebuilt"]
    assert found[0].block == found[1].block
    assert found[1].predicted_bytes - found[0].predicted_bytes <= 8_000 * 8 * 8


@pytest.mark.parametrize("kind", ["all", "rebuilt", "stateless"])
def test_backward_can_run_twice(kind: str, request: pytest.FixtureRequest) -> None:
    trajectory, wanted = cut(kind, request)
    loss = weighted_sum(trajectory, all_states=False)
    loss.backward(retain_graph=True)
    first = [x.grad.numpy().copy() for x in wanted if x.grad is not None]
    loss.backward()
    again = [x.grad.numpy() for x in wanted if x.grad is not None]
    assert first
    for one, both in zip(first, again, strict=True):
        np.testing.assert_array_equal(both, 2 * one)


def cut(kind: str, request: pytest.FixtureRequest, **options: Any) -> tuple[Trajectory, list[Tensor]]:
    """Run a rollout that keeps the final state, in several segments if it stores no states; return its leaves, too."""
    given = without_sources(PLANE, STEPS) if kind == "stateless" else case(PLANE, STEPS)
    memory = plan(given, keep="final").predicted_bytes
    if kind == "rebuilt":
        request.getfixturevalue("none_is_stored")
        memory = plan(given, keep="final").predicted_bytes
    trajectory = given.rollout(keep="final", memory=memory - (8 if kind != "all" else 0), **options)
    assert trajectory.plan is not None
    assert trajectory.plan.kind == kind and (trajectory.plan.blocks > 1) == (kind != "all")
    return trajectory, [x for x in given.leaves if x.requires_grad]


def test_the_adjoint_of_the_state_is_kept_without_states_too(monkeypatch: pytest.MonkeyPatch) -> None:
    given = without_sources(PLANE, STEPS)

    def kept() -> Any:
        trajectory = given.rollout(keep_adjoint=True, keep="final")
        weighted_sum(trajectory, all_states=False).backward()
        return trajectory

    without = kept()
    assert without.plan.kind == "stateless"
    monkeypatch.setattr(WaveEngine, "needs_states", True)
    stored = kept()
    assert stored.plan.kind == "all"
    for name in given.state.names():
        adjoint = getattr(without.adjoint, name)
        assert np.isfinite(adjoint).all()
        np.testing.assert_array_equal(adjoint, getattr(stored.adjoint, name))


@pytest.mark.parametrize("kind", ["rebuilt", "stateless"])
def test_tangents_go_through_all_the_same(kind: str, request: pytest.FixtureRequest) -> None:
    given = without_sources(PLANE, STEPS) if kind == "stateless" else case(PLANE, STEPS)
    other = given.rollout(keep="final", mode="nested"), [x for x in given.leaves if x.requires_grad]
    random, pushed = np.random.default_rng(4), []
    tangents = [random.normal(size=x.shape) for x in other[1]]
    for trajectory, wanted in (cut(kind, request), other):
        pushed.append(linearize((trajectory.final.height, trajectory.final.received), wanted)(*tangents))
    for value, expected in zip(*pushed, strict=True):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
