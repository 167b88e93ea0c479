"""Engines that need no states, or recompute them backward in time: the same gradients in less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys import rollout as package
from simphys.autograd import Tensor, linearize
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.rollout import Plan, Trajectory

from .cases import assert_bitwise
from .springs import Params, SpringEngine, State, system

STEPS = 100
Array = np.ndarray[Any, Any]


def run(*, stiff: bool = False, batch: int | None = None, steps: int = STEPS, **options: Any) -> Any:
    """Run a rollout; return the trajectory and its leaves."""
    model, params, state = system(batch=batch, stiff=stiff)
    trajectory = package.rollout(model, params, state, steps=steps, **options)
    return trajectory, [x for x in (*params.tensors(), *state.tensors()) if x.requires_grad]


def plan(*, stiff: bool = False, steps: int = STEPS, **options: Any) -> Plan:
    model, params, state = system(stiff=stiff)
    return package.plan(model, params, state, steps=steps, **options)


def loss_of(trajectory: Trajectory) -> Tensor:
    """Loss that depends on all results, with a different weight for each number."""
    random = np.random.default_rng(3)
    looked_at = [x for x in (*trajectory.states.tensors(), *trajectory.final.tensors()) if x.size]
    loss: Tensor = sum([(x * x * random.uniform(0.5, 1.5, x.shape)).sum() for x in looked_at], Tensor(np.zeros(())))
    return loss if trajectory.running is None else loss + trajectory.running


def gradient(*, stiff: bool = False, batch: int | None = None, **options: Any) -> list[Array]:
    trajectory, leaves = run(stiff=stiff, batch=batch, **options)
    loss_of(trajectory).backward()
    return [x.grad.numpy() for x in leaves]


def store_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the engine need its states, without a tape to recompute them from."""
    monkeypatch.setattr(SpringEngine, "needs_states", True)
    monkeypatch.setattr(SpringEngine, "tape_bytes", lambda self, steps: None)


KEPT = pytest.mark.parametrize(
    "options",
    [{"keep": "final"}, {"keep": "all"}, {"keep": [0, 3, 17, STEPS]}, {"keep": [3, 40], "fields": ["rate"]}],
    ids=str,
)


@KEPT
@pytest.mark.parametrize("batch", [None, 2])
def test_without_states_gradients_are_the_same_to_the_bit(
    options: dict[str, Any], batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    trajectory, _ = run(batch=batch, **options)
    whole = trajectory.plan
    assert whole.kind == "stateless" and whole.recomputed_steps == 0
    found = [gradient(batch=batch, memory=memory, **options) for memory in ("all", whole.predicted_bytes - 8)]
    assert run(batch=batch, memory=whole.predicted_bytes - 8, **options)[0].plan.block == whole.block // 2
    store_states(monkeypatch)
    assert run(batch=batch, **options)[0].plan.kind == "all"
    for each in found:
        assert_bitwise(each, gradient(batch=batch, **options))


@KEPT
def test_states_computed_backward_give_the_same_to_rounding(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    least = least_memory(**options)
    trajectory, _ = run(stiff=True, memory=least, **options)
    assert trajectory.plan.kind == "rebuilt" and trajectory.plan.block == 1
    before = SpringEngine.advanced, SpringEngine.rebuilt
    loss_of(trajectory).backward()
    computed = SpringEngine.advanced - before[0], SpringEngine.rebuilt - before[1]
    assert computed == (0, trajectory.plan.recomputed_steps) == (0, STEPS)
    found = gradient(stiff=True, memory=least, **options)
    store_states(monkeypatch)
    for one, other in zip(found, gradient(stiff=True, **options), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


def least_memory(**options: Any) -> int:
    """Smallest budget that is enough for states recomputed backward one step at a time."""
    memory = plan(stiff=True, **options).predicted_bytes
    while True:
        try:
            found = plan(stiff=True, memory=memory, **options)
        except InputError:
            return memory + 8
        memory = min(memory, found.predicted_bytes) - 8


def test_memory_does_not_grow_with_the_horizon() -> None:
    for stiff in (False, True):
        found = [plan(stiff=stiff, steps=steps, keep="final", memory=1_000) for steps in (10**4, 10**6)]
        assert {each.kind for each in found} == {"rebuilt" if stiff else "stateless"}


def test_stored_states_are_preferred_where_fewer_steps_are_computed_again() -> None:
    assert plan(stiff=True).kind == "all"
    everything = plan(stiff=True, keep="final").predicted_bytes
    assert plan(stiff=True, keep="final", memory=everything - 8).kind == "segments"
    assert plan(stiff=True, keep="final", memory=1_200).kind == "rebuilt"


def test_a_running_sum_needs_states(monkeypatch: pytest.MonkeyPatch) -> None:
    def energy(states: Any, steps: Array) -> Tensor:
        return (states.rate * states.rate - states.angle * states.rate).sum()

    for stiff in (False, True):
        assert plan(stiff=stiff, running=energy).kind == "all"
        found = plan(stiff=stiff, running=energy, keep="final")
        assert plan(stiff=stiff, running=energy, keep="final", memory=found.predicted_bytes - 8).kind == "segments"
    with_sum = gradient(running=energy, keep="final")
    store_states(monkeypatch)
    assert_bitwise(with_sum, gradient(running=energy, keep="final"))


def test_too_little_memory_is_an_error_whose_remedies_work() -> None:
    with pytest.raises(InputError, match="Give at least memory="):
        plan(memory=300, keep="final")
    assert plan(memory=least_memory(keep="final"), stiff=True, keep="final").predicted_bytes > 300


@pytest.mark.parametrize("kind", ["stateless", "rebuilt"])
def test_backward_can_be_repeated(kind: str) -> None:
    stiff = kind == "rebuilt"
    options: dict[str, Any] = {"keep": [3, 40], "stiff": stiff}
    options["memory"] = least_memory(keep=[3, 40]) if stiff else "all"
    trajectory, leaves = run(**options)
    assert trajectory.plan.kind == kind
    loss = loss_of(trajectory)
    expected = gradient(**options)
    for count in (1, 2):
        loss.backward(retain_graph=count < 2)
        assert_bitwise([x.grad.numpy() for x in leaves], [count * g for g in expected])


@pytest.mark.parametrize("kind", ["stateless", "rebuilt"])
def test_the_adjoint_of_the_state_can_be_kept(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stiff = kind == "rebuilt"
    options: dict[str, Any] = {"stiff": stiff, "keep_adjoint": True, "keep": "final"}
    memory = least_memory(keep_adjoint=True, keep="final") if stiff else "all"

    def kept(**more: Any) -> Trajectory:
        trajectory, _ = run(**options, **more)
        loss_of(trajectory).backward()
        return trajectory

    found = kept(memory=memory)
    assert found.plan is not None and found.plan.kind == kind
    store_states(monkeypatch)
    expected = kept()
    for name in State.names():
        one, other = (getattr(each.adjoint, name) for each in (found, expected))
        assert one.shape == (STEPS + 1, 3) and one.any()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["stateless", "rebuilt"])
def test_tangents_and_differences_agree(kind: str) -> None:
    stiff = kind == "rebuilt"
    model, params, state = system(stiff=stiff)
    memory: Any = least_memory(keep=[3, 40]) if stiff else "all"

    def states(*leaves: Tensor) -> tuple[Tensor, ...]:
        at = (params if not stiff else Params(leaves[0])), State(*leaves[-2:])
        trajectory = package.rollout(model, *at, steps=STEPS, keep=[3, 40], memory=memory)
        assert trajectory.plan is None or trajectory.plan.kind == kind  # None if nothing is recorded
        return *trajectory.states.tensors(), *trajectory.final.tensors()

    inputs = [*(params.tensors() if stiff else ()), *state.tensors()]
    gradcheck(states, inputs)
    assert len(linearize(states(*inputs), inputs)(*[np.ones(3) for _ in inputs])) == 4


def test_a_plan_in_one_line() -> None:
    few = Plan(steps=100, block=8, checkpoints=0, predicted_bytes=2_000, strategy="stateless")
    assert str(few) == "stateless: no state stored, blocks of 8 steps, 2.0 kB predicted, 0 recomputations a step"
    back = Plan(steps=100, block=1, checkpoints=0, predicted_bytes=2_000, strategy="rebuilt")
    assert str(back) == (
        "rebuilt: states computed backward in time, blocks of 1 step, 2.0 kB predicted, 1 recomputation a step"
    )
