"""The memory of kept states is used again for the next rollout, never while anything refers to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, grad, tensor
from simphys.rollout import Trajectory, rollout
from simphys.simulator import arena

from . import decay

STEPS, CELLS = 50, 1000


def run(start: float, rate: Tensor | None = None, **options: Any) -> Trajectory:
    params = decay.Params(tensor(0.5, requires_grad=True) if rate is None else rate)
    state = decay.State(tensor(np.full(CELLS, start)))
    return rollout(decay.Decay(CELLS), params, state, steps=STEPS, keep="all", **options)


def address(trajectory: Trajectory) -> int:
    return int(trajectory.amount.data.__array_interface__["data"][0])


HOLDERS: dict[str, Callable[[Tensor], Any]] = {
    "tensor": lambda amount: amount.detach(),
    "view": lambda amount: amount.data[3:, ::2],
    "memoryview": lambda amount: memoryview(amount.data),  # type: ignore[arg-type]
    "another library": lambda amount: np.from_dlpack(amount.detach(), copy=False),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_states_that_are_held_stay_as_they_are(holder: str) -> None:
    held = HOLDERS[holder](run(1.0).amount)
    before = np.array(held)
    for start in (2.0, 3.0):
        run(start)
    np.testing.assert_array_equal(np.array(held), before)


def test_states_that_a_graph_holds_stay_as_they_are() -> None:
    rate = tensor(0.5, requires_grad=True)

    def loss() -> Tensor:
        amount = run(1.0, rate).amount
        return (amount * amount).sum()

    (expected,), held = grad(loss(), [rate]), loss()
    run(2.0)
    (found,) = grad(held, [rate])
    assert found is not None and expected is not None and found.item() == expected.item()


def test_this_shows_where_states_that_are_held_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    held = HOLDERS["view"](run(1.0).amount)
    before = np.array(held)
    monkeypatch.setattr(arena, "_count_references", lambda arrays, place: arena.UNUSED)
    run(2.0)
    assert not np.array_equal(np.array(held), before)


def test_memory_that_nobody_holds_is_used_again_and_locked() -> None:
    at = address(first := run(1.0))
    del first
    second = run(2.0)
    assert address(second) == at
    assert not second.amount.data.flags.writeable and (second.amount.data[0] == 2.0).all()


def test_rollouts_without_backward_or_with_a_budget_give_memory_back() -> None:
    for trajectory in (run(1.0, tensor(0.5)), run(1.0, memory="100MB")):
        assert not any([trajectory.amount.data is each for each in arena._owned])
